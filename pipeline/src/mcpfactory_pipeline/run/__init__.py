"""Execution of a plan: gives jobs of many servers to an executor, and records the results.

A job is a stage of a server as JSON; an executor runs it and never writes state.
"""
