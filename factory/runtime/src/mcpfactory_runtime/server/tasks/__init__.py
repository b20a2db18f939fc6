"""Tasks: tool calls that continue after their request has been answered.

Tasks are a core feature of the last handshake revision, and the extension `io.modelcontextprotocol/tasks` of the newest
revision. Both wire forms (`methods`) use the same `Task` records and transitions (`storage.tasks`), and the same
`manager` of running handlers. The package is loaded at the first use of a task.
"""
