"""Evaluation cases with known answers, in YAML next to a server.

The cases check that a search and a model select the right tools and calls.
"""
