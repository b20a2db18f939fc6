"""Installation of servers into the MCP clients of a person or a project.

`client_profiles.CLIENTS` has one row per client: the path and the format of the client's file, and the shape of an
entry as data. Only this table contains the names of clients. `edits.install` and `edits.uninstall` are pure: an editor
for each format (`jsonc`, `toml_edits`, `yaml_edits`) changes only the entry. The result is parsed again and compared
with the expected data, so that a file with unknown syntax is refused. `install.entry_variables` returns the variables
that are safe to write into an entry. `launch` returns the command or URL of a server, and checks that a package on an
index is ours. `entry.build_entry` puts the values into the shape. `files` finds, backs up and replaces files.
Installations are not recorded: `installed` reads the clients' files.
"""
