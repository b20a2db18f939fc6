"""`mcpfactory serve`: the factory as an MCP server, and a gateway to the servers of a workspace."""
