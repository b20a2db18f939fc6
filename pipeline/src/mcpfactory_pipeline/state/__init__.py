"""Where each server stands: state is derived from an append-only history, and `store` is the only writer of both.

State is canonical text without clock, host or absolute path: two clones that did the same have the same bytes.
"""
