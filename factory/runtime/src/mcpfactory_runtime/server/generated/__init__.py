"""What only generated servers use: their manifest, search mode, dialects for clients with limits, and the owner's hooks.

Tools are listed from `manifest.json`; the module of a tool is loaded at its first call, and its results satisfy the `outputSchema` listed.
"""
