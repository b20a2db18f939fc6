"""Publication of a channel's release, byte for byte, at external targets (`publish.TARGETS`).

A release is read from the files of the promoted candidate, never from the working tree. The state records each result,
so `status`, `inbox` and the dashboard send no requests.

`[publish.<target>]` of the workspace has the settings of a target, such as its destination and its token variable.
`[publish]` of a server is read from the `mcpfactory.toml` in the source distribution, whose bytes were checked.
`bundle_program` resolves a server's dependencies once, with hashes, and installs them with uv.
"""
