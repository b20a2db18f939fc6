"""Observation of client requests for operators: metrics, trace spans and log lines.

Loaded only if enabled.
"""
