"""Installing servers into the MCP clients of a person or a project.

`table` knows the clients, `edits` changes the text of a configuration, `entry` makes what is put in, `launch` says how a server of
the workspace is started, by the programs of `starters`, `published` whether a package of an index is ours, `files` reads and
replaces; `install` and `installed` bring them together.
"""
