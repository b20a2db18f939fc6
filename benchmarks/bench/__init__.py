"""Timings beside peers, and of large workspaces."""
