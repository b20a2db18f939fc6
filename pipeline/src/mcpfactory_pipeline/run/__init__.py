"""Execution of a plan: jobs run in an executor, and the run records their results.

A job is one stage of one server, described in JSON. An executor runs jobs, but never writes state.
"""
