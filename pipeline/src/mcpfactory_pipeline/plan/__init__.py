"""Stages, policies, gates and the plan: the steps to run, each with its reasons, from state and fingerprints.

All modules are pure except `fingerprint`, which reads the files of a server.
"""
