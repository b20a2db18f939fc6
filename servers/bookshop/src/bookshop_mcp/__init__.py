"""MCP server bookshop."""

__version__ = "0.1.0"
