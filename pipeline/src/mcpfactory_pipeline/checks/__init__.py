"""Validation of MCP servers: rules that check observations, a score, and a report with evidence."""
