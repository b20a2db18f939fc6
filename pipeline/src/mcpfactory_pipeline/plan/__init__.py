"""Stages, policies, gates, and the plan of the stages to run.

Only the module `fingerprint` reads files; all other modules are pure.
"""
