"""Validate MCP servers: rules check observations, and a report gives a score and the evidence."""
