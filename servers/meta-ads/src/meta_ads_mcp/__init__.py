"""MCP server meta-ads."""

__version__ = "0.1.0"
