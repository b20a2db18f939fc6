"""Generation of MCP servers from API documents and templates.

The stages are `read`, `openapi`, `select`, `naming`, `describe` and `emit`. All stages after `openapi` use only the
intermediate form (`ir`). Only `read` and `servers` access the network and files.
"""
