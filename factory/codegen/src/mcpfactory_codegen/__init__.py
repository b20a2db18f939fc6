"""From an API document or a template to the files of an MCP server.

`read` → `openapi` → the intermediate form (`ir`) → `select` → `naming` → `describe` → `emit`; nothing after `openapi` sees the
document. `read` may use the network and `servers` the disk; everything between them is pure.
"""
