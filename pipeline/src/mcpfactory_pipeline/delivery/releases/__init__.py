"""Releases in a monorepo: each server has its own versions, changelog and tags; only changed servers are released.

`plan` decides from git (`git`, the only module that runs it), the contract and notes (`changelog`); `apply` makes one
commit and the tags, and first reverts the writes of a killed process. Finished releases are known from tags, and
unfinished ones from the commit's trailers: no other record exists. The tool list of a release is in its commit,
`changes/released.json`; `changes/` is not part of a package. `packages` are distributions that share one version.
"""
