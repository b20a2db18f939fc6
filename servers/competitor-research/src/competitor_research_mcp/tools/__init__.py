"""Tools of the server, grouped by subject."""
