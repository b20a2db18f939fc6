"""State of each server, derived from an append-only history; only `store` writes state and history.

State is canonical text without clock times, hosts or absolute paths, so that two clones with equal histories have
equal state files.
"""
