"""Transports of a server: stdio and HTTP."""
