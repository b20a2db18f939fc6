"""What a model sees of each tool: description, arguments, schemas; and what the person decided about it in `mcpfactory.toml`."""
