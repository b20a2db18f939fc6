"""Reading of API documents: files and URLs, JSON and YAML, overlays, and line numbers."""
