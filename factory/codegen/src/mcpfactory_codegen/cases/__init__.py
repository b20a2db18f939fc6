"""Generated tests of a server: valid and invalid calls of each tool, with the expected requests and responses."""
