"""MCP server google-search-console."""

__version__ = "0.1.0"
