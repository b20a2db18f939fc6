"""MCP server: registry, dispatch, context, results, and the `Server` class that combines them."""
