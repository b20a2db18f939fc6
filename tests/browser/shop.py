"""The workspace that is looked at: two servers that went through the whole pipeline, one of them twice, and one that was never run."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["TOKEN", "command", "dashboard", "make"]

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-the-trial-of-the-browser"
_POLICY = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
"""


def command(*words: str) -> list[str]:
    """An mcpfactory command, as a process."""
    return [sys.executable, "-m", "mcpfactory", *words]


def make(place: Path) -> Path:
    """Makes the workspace; it takes a minute or two."""
    root = place / "shop"
    _run(place, "init", str(root), "--factory", "index")
    config = root / "mcpfactory.toml"
    config.write_text(config.read_text() + _POLICY)
    _run(root, "new", "--from-openapi", str(ROOT / "docs/examples/bookshop/openapi.yaml"), "--name", "bookshop")
    _run(root, "new", "notes", "--template", "minimal")
    _run(root, "pipeline", "run", "--all")
    package = root / "servers/bookshop/pyproject.toml"
    text = package.read_text()
    package.write_text(re.sub(r'^version = ".*"', 'version = "0.2.0"', text, count=1, flags=re.MULTILINE))
    readme = root / "servers/bookshop/README.md"
    readme.write_text(readme.read_text() + "\nA second candidate.\n")
    _run(root, "pipeline", "run", "bookshop")
    _run(root, "new", "later", "--template", "minimal")
    return root


def _run(folder: Path, *words: str) -> None:
    environ = {**os.environ, "MCPFACTORY_ACTOR": "Grace"}
    done = subprocess.run(
        command(*words), cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"error: {' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")


@contextmanager
def dashboard(root: Path) -> Iterator[str]:
    """The dashboard as a process, in which Ada may act: its URL."""
    environ = {**os.environ, "MCPFACTORY_DASHBOARD_TOKEN": TOKEN, "MCPFACTORY_ACTOR": "Ada"}
    words = command("dashboard", "--allow-actions", "--port", "0", "--json")
    with subprocess.Popen(words, cwd=root, env=environ, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, "")
            text = ""
            for line in lines:
                text += line
                if line.startswith("}") or (line.startswith("{") and line.rstrip().endswith("}")):
                    break
            yield str(json.loads(text)["url"])
        finally:
            process.terminate()
