"""Install servers into the MCP clients of a person or a project; `docs/architecture.md` says which module does what."""
