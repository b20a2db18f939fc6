"""Features of generated servers: manifest, search mode, dialects for limited clients, and the owner's hooks.

Tools are listed from `manifest.json`. The module of a tool is loaded at the tool's first call. Results conform to the
listed `outputSchema`.
"""
