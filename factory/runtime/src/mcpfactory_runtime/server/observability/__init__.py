"""Observation of client requests for operators: metrics, trace spans and log lines.

The package is loaded only for servers that enable metrics, spans or log lines.
"""
