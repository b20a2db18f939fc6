"""`mcpfactory serve`: the factory as an MCP server of its own, and a gateway to the servers of a workspace."""
