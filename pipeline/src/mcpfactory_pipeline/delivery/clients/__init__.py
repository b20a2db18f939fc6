"""Installation of servers into the MCP clients of a user or a project.

Only the table `client_profiles.CLIENTS` contains the names of clients. Installations are not recorded:
`installed_servers` reads the clients' files.
"""
