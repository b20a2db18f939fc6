"""A pytest plugin for servers' tests. The import path of the tests contains this folder."""
