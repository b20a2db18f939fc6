"""State of each server: derived from an append-only history; `store` is the only writer of both.

State is canonical text without clock times, hosts or absolute paths: two clones with the same history have the same
bytes.
"""
