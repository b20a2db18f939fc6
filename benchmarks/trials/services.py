"""Services and tools of others that a trial needs: a package index, the official CLI for bundles, an empty home."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uv

from mcpfactory_runtime.client import Client

_INDEX: Final = "pypiserver[passlib]==2.4.2"
_CLI: Final = "@anthropic-ai/mcpb@2.1.2"
_ASK: Final = """\
import { readFileSync } from "node:fs";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";
const [folder, config] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(folder + "/manifest.json", "utf8"));
const found = await getMcpConfigForManifest({ manifest, extensionPath: folder, systemDirs: {}, userConfig: JSON.parse(config), pathSeparator: "/" });
console.log(JSON.stringify(found));
"""
USER, PASSWORD = "trial", "index-secret-password"


def plain(home: Path, *programs: Path, **variables: str) -> list[str]:
    """Return the beginning of a command that runs with an empty home, these folders in `PATH`, and no other variables.

    Settings of uv, pip and the network are kept: they select the package index.
    """
    home.mkdir(parents=True, exist_ok=True)
    kept = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(("UV_", "PIP_", "SSL_")) or key.lower().endswith("_proxy")
    }
    path = os.pathsep.join([*map(str, programs), "/usr/local/bin", "/usr/bin", "/bin"])
    given = {**kept, "HOME": str(home), "PATH": path, **variables}
    return ["env", "-i", *(f"{key}={value}" for key, value in given.items())]


def list_tools(command: Sequence[str], cwd: Path | None = None) -> list[str]:
    """Start a server on stdio and return the names of its tools, sorted."""

    async def ask() -> list[str]:
        async with Client.connect_stdio(list(command), cwd=cwd, timeout=120, probe_timeout=120) as client:
            return sorted(tool["name"] for tool in await client.list_tools())

    return asyncio.run(ask())


# --- a package index ---


def install_index(folder: Path) -> Path | None:
    """Install pypiserver into an environment of its own and return its program; None if it is not available."""
    commands = (
        ["venv", "--quiet", str(folder)],
        ["pip", "install", "--quiet", "--python", str(folder / "bin/python"), _INDEX],
    )
    for words in commands:
        if subprocess.run([uv.find_uv_bin(), *words], check=False, timeout=300).returncode:
            return None
    return folder / "bin" / "pypi-server"


@contextmanager
def package_index(program: Path, folder: Path) -> Iterator[str]:
    """Serve an empty index on a free port and yield its URL; uploads need a password, downloads do not."""
    folder.mkdir()
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    secrets = folder.parent / "htpasswd"
    secrets.write_text(f"{USER}:{{SHA}}{digest}\n")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["run", "-i", "127.0.0.1", "-p", str(port), "-P", str(secrets), "-a", "update", str(folder)]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen([str(program), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_until_ready(url, process)
            yield url
        finally:
            process.terminate()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{url}/simple/", timeout=5):
                return
        except OSError:
            if process.poll() is not None:
                raise
            time.sleep(0.1)
    raise TimeoutError(f"{url} is not ready")


# --- the official CLI for bundles ---


def install_cli(folder: Path) -> Path | None:
    """Install the official CLI into a folder of its own; None if node or the package is not available."""
    if shutil.which("npm") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    done = subprocess.run(["npm", "install", "--silent", _CLI], cwd=folder, check=False, timeout=300)
    (folder / "ask.mjs").write_text(_ASK)
    program = folder / "node_modules" / ".bin" / "mcpb"
    return program if done.returncode == 0 and program.exists() else None


def unpack_bundle(cli: Path, bundle: Path, place: Path) -> bool:
    """Unpack a bundle by the official CLI; False if the CLI refuses it."""
    done = subprocess.run([str(cli), "unpack", str(bundle), str(place)], capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def start_bundle(folder: Path, cli: Path, place: Path) -> list[str]:
    """Start an unpacked bundle as the official package says, in an empty home, and return its tools."""
    manifest = json.loads((place / "manifest.json").read_bytes())
    config = {key: "set-by-trial" for key, row in manifest.get("user_config", {}).items() if row.get("required")}
    command = ["node", "ask.mjs", str(place), json.dumps(config)]
    asked = subprocess.run(command, cwd=cli.parents[2], capture_output=True, text=True, check=True, timeout=60)
    launch = json.loads(asked.stdout)
    begin = plain(folder / "home", Path(sys.executable).parent, **launch.get("env", {}))
    try:
        return list_tools([*begin, launch["command"], *launch["args"]], cwd=folder)
    except Exception as error:  # noqa: BLE001 - any failure is the finding
        print(f"{place.name} does not answer: {error}", flush=True)
        return []
