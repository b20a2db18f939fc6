"""MCP server reonomy."""

__version__ = "0.1.0"
