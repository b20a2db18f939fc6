"""Stages, policies, gates and the plan, which lists the steps to run with reasons, from state and fingerprints.

All modules are pure except `fingerprint`, which reads the files of a server.
"""
