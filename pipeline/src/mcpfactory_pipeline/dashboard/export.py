"""The dashboard as files: the same pages with relative links, readable from a disk or any static host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.dashboard.board import board
from mcpfactory_pipeline.dashboard.facts import read_server, read_workspace
from mcpfactory_pipeline.dashboard.render import ASSETS, asset, render_board, render_server
from mcpfactory_pipeline.dashboard.server import server_page

__all__ = ["export"]


def export(workspace_root: Path, out: Path) -> list[Path]:
    """Write the site into `out` and return the files, `out/index.html` among them.

    What the site does not have any more is not removed. Raises WorkspaceError when `workspace_root` is in no workspace, OSError
    when `out` cannot be written.
    """
    written = []
    for relative, content in _site(workspace_root):
        file = out / relative
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        written.append(file)
    return written


def _site(root: Path) -> Iterator[tuple[str, bytes]]:
    facts = read_workspace(root)
    view = board(facts)
    yield ".nojekyll", b""  # static hosts that run Jekyll leave out what begins with an underscore
    for name in ASSETS:
        yield f"assets/{name}", asset(name)
    yield "index.html", render_board(view, static=True).encode()
    yield "index.json", _json(view.to_json())
    for server in facts.servers:
        page = server_page(read_server(root, server.name))
        yield f"servers/{server.name}/index.html", render_server(page, static=True).encode()
        yield f"servers/{server.name}/index.json", _json(page.to_json())


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, indent=2, ensure_ascii=False) + "\n").encode()
