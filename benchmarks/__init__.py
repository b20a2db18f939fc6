"""Measurements against the peers, side by side in one run; nothing in here is a test."""
