"""MCP server n8n."""

__version__ = "0.1.0"
