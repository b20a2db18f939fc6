"""Candidates, channels, pruning, and the contract with callers.

The state lists a candidate's breaking changes, so the gate `contract` reads only the state.
"""
