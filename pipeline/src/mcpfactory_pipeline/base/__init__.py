"""Utilities for every part of the pipeline: errors, hashes, locks, IDs, atomic file writes, terminal text."""
