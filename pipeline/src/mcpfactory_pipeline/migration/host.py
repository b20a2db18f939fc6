"""Serves the server that a file makes on stdio, whatever it was written with: `python host.py FILE`. Runs in the environment of the server.

It is a program of its own and imports nothing of ours: the environment may have another runtime, or none.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any, Final

__all__ = ["find_server", "main"]

_CLASSES: Final = {"FastMCP", "MCPServer", "Server"}
_NAMES: Final = ("mcp", "server", "app")


def find_server(module: Any) -> Any:
    """Return the server of a module: by the names that `fastmcp run` and `mcp run` look for, else the last one; None without one."""
    found = {name: one for name, one in vars(module).items() if type(one).__name__ in _CLASSES and hasattr(one, "tool")}
    return next((found[name] for name in _NAMES if name in found), next(reversed(found.values()), None))


def main() -> None:
    """Import the file, and serve."""
    file = Path(sys.argv[1]).resolve()
    sys.path.insert(0, str(file.parent))
    sys.argv = [str(file)]  # it may read arguments: it has none
    spec = importlib.util.spec_from_file_location("migrated_server", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    server = find_server(module)
    if server is None:
        makers = [one for name, one in vars(module).items() if name in {"build_server", "create_server", "make_server"}]
        server = makers[0]() if makers else None
    if server is None:
        sys.exit(f"{file.name} makes no server that it keeps under a name")
    run = getattr(server, "run_stdio", None)
    if type(server).__name__ == "Server" and run is not None:
        run()
    elif type(server).__module__.startswith("fastmcp"):
        server.run(show_banner=False)
    else:
        server.run()


if __name__ == "__main__":
    main()
