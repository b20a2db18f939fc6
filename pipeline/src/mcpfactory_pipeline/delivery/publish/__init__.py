"""Publishing what a channel offers, byte for byte, to targets outside the workspace: `table.TARGETS` has them.

`release.CandidateRelease` is the promoted candidate, read from its own bytes and never from the tree. A `target.PublishTarget` is a
row of `table.TARGETS`; `publish.publish` alone calls its functions in order and writes the events. Settings are `[publish.<target>]`
of the workspace (where to, which variable holds the token); what belongs to the server (`[publish]` of its `mcpfactory.toml`) is read
from the source distribution, so that it was checked with the rest. `http.HttpClient` is the one client of all targets, but for `uv
publish`; `identity` exchanges the identity of a CI job for a target's token. Targets that are files share `program` (how a bundle
starts the server), `packages` (resolved once with hashes, installed by uv), `rootfs` (a Python of this machine as a file system) and
`layout` (an OCI layout in a folder), which `distribution` pushes and pulls. State holds what was found, so that `status`, `inbox` and
the dashboard ask nobody.
"""
