"""MCP server closebot."""

__version__ = "0.1.0"
