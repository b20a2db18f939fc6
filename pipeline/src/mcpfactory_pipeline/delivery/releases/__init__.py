"""Releases in a monorepo: each server has versions, a changelog and tags of its own; only what changed is released.

`plan` decides from git (`git`, the only module that runs it), the contract and notes (`notes`); `apply` makes one commit and the tags,
and restores what a killed one wrote before. What was released is known from tags, and what is half done from the commit's trailers:
nothing else keeps a record. The tool list of a release is in its commit, `changes/released.json`; `changes/` is no part of a package.
`packages` are distributions that have one version together.
"""
