"""Validation of MCP servers: rules over observations, a score, and a report with evidence."""
