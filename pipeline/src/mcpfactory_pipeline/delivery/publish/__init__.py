"""Publication of a channel's release, byte for byte, at external targets (`publish.TARGETS`).

A release is read from the files of the promoted candidate, never from the working tree. The state records each result,
so `status`, `inbox` and the dashboard send no requests. `[publish.<target>]` in the workspace's settings configures a
target. `[publish]` in a server's settings is read from the source distribution.
"""
