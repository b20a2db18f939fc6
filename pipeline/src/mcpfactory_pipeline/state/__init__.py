"""State of each server, derived from an append-only history.

The state is canonical text without times, hosts or absolute paths. Clones with equal histories therefore have equal
state files.
"""
