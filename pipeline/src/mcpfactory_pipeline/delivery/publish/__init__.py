"""Publication of a channel's release, byte for byte, at targets outside the workspace (`publish.TARGETS`).

`release.CandidateRelease` is the promoted candidate, read from its own bytes and never from the working tree. A
`target.PublishTarget` is a row of `publish.TARGETS`. Only `publish.publish` calls the functions of a target in order
and writes the events. The settings of a target, such as its destination and its token variable, are in
`[publish.<target>]` of the workspace. Settings of the server (`[publish]` of its `mcpfactory.toml`) are read from the
source distribution, whose bytes were checked. `http.HttpClient` is the client of all targets, except for `uv publish`.
`http.request_job_token` returns the identity of a CI job; `pypi` and `registry` exchange this identity for a token.
File targets share `program`, which starts a server in a bundle. It resolves the packages of the server once with
hashes, and installs them with uv. The state contains the results, so that `status`, `inbox` and the dashboard send no
requests.
"""
