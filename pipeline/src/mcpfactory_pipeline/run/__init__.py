"""Execution of a plan: jobs run in an executor, and the run records their results."""
