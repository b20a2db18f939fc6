"""Installation of servers into the MCP clients of a person or a project.

`table.CLIENTS` has one row per client: the path of its file, its format, and the shape of an entry as data; no other
module knows a client by name. `edits.install` and `edits.uninstall` are pure: an editor for each format (`jsonc`,
`text_edits`, `yaml_text`) changes the text at the entry, and the result is parsed again and compared with the
expected data, so that an unknown syntax is refused. `install.entry_variables` returns the variables of an entry for a
server that are safe to write; `launch` defines the start of a server, and checks if a package of an index is ours;
`entry.build_entry` fills the shape; `files` finds, backs up and replaces files. Installations are not recorded:
`installed` reads the clients' files.
"""
