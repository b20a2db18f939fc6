"""Generated tests of a server: calls of each tool, with the expected requests and responses."""
