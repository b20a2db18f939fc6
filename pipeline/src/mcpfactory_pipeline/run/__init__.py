"""Execution of a plan: send jobs of many servers to an executor, and record the results.

A job is one stage of one server, in the form of JSON. An executor runs jobs and never writes state.
"""
