"""Install servers into the MCP clients of a person or a project.

`table.CLIENTS` has one row a client: where its file is, its format, and the shape of an entry as data; nothing else knows a client by
name. `edits.install` and `edits.uninstall` are pure: an editor for each format (`jsonc`, `toml_text`, `yaml_text`) changes the text
where the entry is, and the result is parsed again and compared with what is expected, so that an unknown way of writing is refused.
`environment.shell_variables` says what a shell has set for a server, and what of it may be written; `launch` how a server is started;
`published` whether a package of an index is ours; `entry.build_entry` fills the shape; `files` finds, backs up and replaces files. No
record is kept of what is installed: `installed` reads the clients' files.
"""
