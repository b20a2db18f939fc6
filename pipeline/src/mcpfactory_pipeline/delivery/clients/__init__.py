"""Installation of servers into the MCP clients of a user or a project.

`client_profiles.CLIENTS` has one row per client. Only this table contains the names of clients. `config_edits` changes
the text of a client's configuration: the editor of each format (`jsonc`, `toml_edits`, `yaml_edits`) changes only one
entry. The result is parsed and compared with the expected data, so that unknown syntax causes an error and no data is
lost. `launch_commands` returns the command or URL of a server. `entry` builds the entry. `config_files` finds, backs up
and replaces files. Installations are not recorded: `installed_servers` reads the clients' files.
"""
