"""From bytes to data: files and URLs with bounds, JSON and YAML, overlays, and the line of each value."""
