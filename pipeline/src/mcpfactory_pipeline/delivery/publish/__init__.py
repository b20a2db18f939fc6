"""Publication of a channel's release, byte for byte, at external targets (`publish.TARGETS`).

A release is read from the files of the promoted candidate, never from the working tree. The state records each result,
so `status`, `inbox` and the dashboard send no requests. `[publish.<target>]` of the workspace has the settings of a
target. `[publish]` of a server is read from its source distribution.
"""
