"""Candidates, channels for promoted candidates, pruning, and the contract with callers.

A channel is a folder with a package index (PEP 503). The contract of a server is the tool list that `validate` stored
for the candidate in a channel. The state lists a candidate's breaking changes, so the gate `contract` reads only the
state.
"""
