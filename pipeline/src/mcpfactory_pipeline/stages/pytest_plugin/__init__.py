"""A pytest plugin for servers' tests; the import path of the test process contains this folder."""
