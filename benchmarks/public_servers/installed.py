"""A server of the table on this machine: installed into the cache folder of the benchmarks, and the command that starts it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.peers import home
from benchmarks.peers.outsiders import environment, node, npm_package, source_of
from benchmarks.public_servers.table import Server

__all__ = ["Start", "playground", "start"]

_NOWHERE: dict[str, Any] = {  # a cluster that nobody answers for
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "none", "user": {}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "current-context": "none",
}


class Start(NamedTuple):
    """How an installed server is started: its command, and its variables as `NAME=VALUE`."""

    command: list[str]
    environ: list[str]


def playground() -> Path:
    """A fresh folder that servers may write into: it is their home, holds a git repository and a kubeconfig, and stood empty before."""
    folder = home() / "public-playground"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "kubeconfig.json").write_text(json.dumps(_NOWHERE), encoding="utf-8")
    (folder / "notes.txt").write_text("one\ntwo\n", encoding="utf-8")
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def start(server: Server, folder: Path) -> Start:
    """Install a server that is not there yet; how it is started.

    Args:
        server: of the table.
        folder: that it may write into.

    Raises:
        CalledProcessError: it cannot be installed.
    """
    values = {"playground": str(folder), **(_npm if server.registry == "npm" else _pypi)(server)}
    environ = [f"HOME={folder}", *(one.format(**values) for one in server.environ)]
    return Start([word.format(**values) for word in server.command], environ)


def _npm(server: Server) -> dict[str, str]:
    program = node().node
    folder = npm_package(program, f"public-{server.name}", server.package, server.version, scripts=False)
    return {"node": program, "package": str(folder)}


def _pypi(server: Server) -> dict[str, str]:
    python = environment(f"public-{server.name}", [f"{server.package}=={server.version}", *server.beside])
    source = (
        str(source_of(server.package, server.version)) if any("{source}" in word for word in server.command) else ""
    )
    return {"python": python, "bin": str(Path(python).parent), "source": source}
