"""Candidates, the channels that they are promoted into, pruning, and the contract with callers.

A channel is a folder with a package index (PEP 503). The contract of a server is the tool list that `validate` kept of the candidate
that a channel offers. The summary of its check contains what a candidate breaks, so the gate `contract` reads only the state.
"""
