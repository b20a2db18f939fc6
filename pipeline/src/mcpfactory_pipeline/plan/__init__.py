"""Stages, policies, gates and the plan: from stages, state and fingerprints to the steps to run, with reasons.

Pure, except for fingerprints, which read the files of a server.
"""
