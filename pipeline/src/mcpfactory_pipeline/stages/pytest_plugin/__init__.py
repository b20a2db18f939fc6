"""A pytest plugin for servers' tests; this folder is added to the import path of their process."""
