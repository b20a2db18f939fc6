"""Releases in a monorepo: each server has its own versions, changelog and tags; only changed servers are released.

`plan` uses the git history, the contract, and changelog fragments (`changelog`). Only the module `git` runs git.
`apply` first reverts the writes of a killed process, then makes one commit and the tags. Tags record finished releases,
and commit trailers record unfinished releases. There is no other record. The commit of a release contains its tool
list, `changes/released.json`; `changes/` is not part of a package. `packages` handles distributions that share one
version.
"""
