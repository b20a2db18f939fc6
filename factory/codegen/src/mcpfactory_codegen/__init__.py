"""Generation of MCP servers from API documents and templates.

`read` → `openapi` → the intermediate form (`ir`) → `select` → `naming` → `describe` → `emit`. No stage after `openapi`
uses the document. Only `read` and `servers` access the network and files; the other stages have no side effects.
"""
