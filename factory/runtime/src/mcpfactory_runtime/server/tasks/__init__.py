"""Tool calls that outlive their request: tasks, in both forms that the protocol has given them.

The core feature of the last handshake revision and the extension `io.modelcontextprotocol/tasks` of the newest revision are two wire forms
(`methods`) of one thing: a `Task` record in a `TaskStore`, changed by the transitions in `storage.tasks`, worked on by a
handler that `manager` keeps running. Loaded at the first use of a task only.
"""
