"""A small distribution that servers depend on, written as a wheel, so that no index is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

from mcpfactory_codegen.servers.scaffold import runtime_range
from tests.written_packages import wheel, wheel_name

NAME = "mcpfactory-test-fruit"  # imported as `fruit_of_tests`, to test that the two names are distinguished


def fruit_wheel(folder: Path, version: str = "1.0", kind: str = "apple") -> None:
    """Write the wheel into a folder for `--find-links`."""
    folder.mkdir(exist_ok=True)
    files = {"fruit_of_tests.py": f"kind = '{kind} {version}'\n"}
    (folder / wheel_name(NAME, version)).write_bytes(wheel(NAME, version, files))


SERVER = '''\
"""A server for tests."""

import sys

from mcpfactory_runtime import Server

from . import __version__

server = Server("notes", version=__version__)


@server.tool
def where() -> str:
    """Say which environment this is."""
    return sys.prefix


def main() -> None:
    """Speak MCP."""
    server.run()
'''


def write_server(folder: Path, before: str = "", after: str = "") -> Path:
    """Replace the `server.py` of a server from a template by the small one above, with lines before and after it."""
    place = next((folder / "src").glob("*/server.py"))
    # Python uses stale bytecode if the source changed within one second without changing its length.
    shutil.rmtree(place.parent / "__pycache__", ignore_errors=True)
    place.write_text(f"{before}{SERVER}{after}", encoding="utf-8")
    return place


def declare(folder: Path, *dependencies: str) -> None:
    """Write the dependencies of a server, in addition to the runtime."""
    file = folder / "pyproject.toml"
    lines = file.read_text(encoding="utf-8").splitlines()
    mine = ", ".join(f'"{one}"' for one in (f"mcpfactory-runtime{runtime_range()}", *dependencies))
    lines = [f"dependencies = [{mine}]" if line.startswith("dependencies =") else line for line in lines]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
