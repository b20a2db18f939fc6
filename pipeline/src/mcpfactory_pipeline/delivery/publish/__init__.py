"""Publication of a channel's offer, byte for byte, to targets outside the workspace: `publish.TARGETS` lists them.

`release.CandidateRelease` is the promoted candidate, read from its own bytes and never from the working tree. A
`target.PublishTarget` is a row of `publish.TARGETS`; only `publish.publish` calls its functions in order and writes the
events. Settings are in `[publish.<target>]` of the workspace (destination, token variable); settings of the server
(`[publish]` of its `mcpfactory.toml`) are read from the source distribution, so that they were checked with the rest.
`http.HttpClient` is the only client of all targets, except for `uv publish`; `http.job_identity` returns the identity
of a CI job, which `pypi` and `registry` exchange for a token. File targets share `program` (the start of a server in
a bundle, and its packages, resolved once with hashes and installed by uv). The state holds the results, so that
`status`, `inbox` and the dashboard need no request.
"""
