"""Candidates, the channels that they are promoted into, pruning, and the contract with callers.

A channel is a folder with a package index (PEP 503). The contract of a server is the tool list that `validate` kept of the candidate
that a channel offers; what a candidate breaks stands in the summary of its check, so that the gate `contract` reads state only.
"""
