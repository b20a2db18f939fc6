"""Features of generated servers: manifest, search mode, dialects for limited clients, and the owner's hooks."""
