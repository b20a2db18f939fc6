"""From the IR, its names and its tools to the machine's files of a server: pure, `{path: text}`.

Nothing from an API document reaches Python except as a literal or inside an escaped docstring.
"""

from __future__ import annotations

from mcpfactory_codegen.emit._emit import Options, emit

__all__ = ["Options", "emit"]
