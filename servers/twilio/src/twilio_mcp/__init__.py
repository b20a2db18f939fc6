"""MCP server twilio."""

__version__ = "0.1.0"
