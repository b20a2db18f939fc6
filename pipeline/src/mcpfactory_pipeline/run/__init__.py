"""Execution of a plan: send jobs of many servers to an executor, and record the results.

A job is one stage of one server, described in JSON. An executor runs jobs, but never writes state.
"""
