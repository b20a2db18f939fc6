"""Features of generated servers: manifest, search mode, dialects for clients with limits, and the owner's hooks.

Tools are listed from `manifest.json`. The module of a tool is loaded at its first call, and the tool's results satisfy
the listed `outputSchema`.
"""
