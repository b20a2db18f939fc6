"""Generation of MCP servers from API documents and templates.

The stages are `read`, `openapi`, `select`, `naming`, `describe` and `emit`. `openapi` converts the document to the
intermediate form (`ir`), and later stages use only this form. Only `read` and `servers` access the network and files.
"""
