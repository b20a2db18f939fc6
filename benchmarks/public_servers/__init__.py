"""Public MCP servers, unmodified, examined by `mcpfactory validate --command`."""
