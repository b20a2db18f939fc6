"""Model-facing descriptions of tools: texts, arguments, schemas, and the user's curation in `mcpfactory.toml`."""
