"""MCP server competitor-research."""

__version__ = "0.1.0"
