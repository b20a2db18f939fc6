"""Releases in a monorepo. Each server has its own versions, changelog and tags, and only changed servers are released.

`plan` uses the Git history, the tool lists, and changelog fragments (`changelog`). Only the module `git` runs Git.
`apply` reverts the writes of a killed process, then makes one commit and the tags. Tags record finished releases, and
commit trailers record unfinished releases. The release commit contains the server's tool list
(`changes/released.json`). `package_group` handles packages that share one version.
"""
