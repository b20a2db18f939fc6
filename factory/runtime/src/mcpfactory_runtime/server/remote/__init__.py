"""Mounting of remote servers in a local server."""
