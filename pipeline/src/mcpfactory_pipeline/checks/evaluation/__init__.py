"""Evaluation cases with known answers, in YAML next to a server.

Each case checks that a search or a model selects the right tools and calls.
"""
