"""Tasks: tool calls that continue after their request has been answered.

Tasks are a core feature of the last handshake revision, and the extension `io.modelcontextprotocol/tasks` of the newest
revision.
"""
