"""A plan carried out: jobs of many servers are given to an executor, and what they found is recorded.

A job is a stage of a server as JSON; an executor runs it and never writes state.
"""
