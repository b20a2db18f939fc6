"""`mcpfactory serve`: the factory as a separate MCP server, and a gateway to the servers of a workspace."""
