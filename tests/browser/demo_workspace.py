"""Workspace of the browser tests: two servers with complete pipeline runs (one of them twice), and one without runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "a-token-for-the-trial-of-the-browser"
TOKENS = {"Ada": TOKEN, "Grace": "another-token-for-the-trial-of-the-browser"}
_POLICY = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
"""


def command(*words: str) -> list[str]:
    """Run an mcpfactory command as a process."""
    return [sys.executable, "-m", "mcpfactory", *words]


def make(place: Path) -> Path:
    """Create the workspace; this takes a minute or two."""
    root = place / "shop"
    run(place, "init", str(root), "--factory", "index")
    config = root / "mcpfactory.toml"
    config.write_text(config.read_text() + _POLICY)
    run(root, "new", "--from-openapi", str(ROOT / "docs/examples/bookshop/openapi.yaml"), "--name", "bookshop")
    run(root, "new", "notes", "--template", "minimal")
    run(root, "pipeline", "run")
    set_version(root, "bookshop", "0.2.0")
    readme = root / "servers/bookshop/README.md"
    readme.write_text(readme.read_text() + "\nA second candidate.\n")
    run(root, "pipeline", "run", "bookshop")
    run(root, "new", "later", "--template", "minimal")
    return root


def set_version(root: Path, server: str, version: str) -> None:
    """Give the next candidate of a server another version."""
    file = next((root / "servers" / server / "src").glob("*/__init__.py"))
    text, times = re.subn(r'^__version__ = ".*"', f'__version__ = "{version}"', file.read_text(), flags=re.MULTILINE)
    assert times == 1, f"{file} has no version"
    file.write_text(text)


def run(folder: Path, *words: str, fails: bool = False) -> None:
    """Run a command as Grace. It must succeed, or with `fails` report a failure."""
    environ = {**os.environ, "MCPFACTORY_ACTOR": "Grace"}
    done = subprocess.run(
        command(*words), cwd=folder, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600,
        check=False,
    )  # fmt: skip
    if done.returncode != int(fails):
        raise SystemExit(f"error: {' '.join(words)} ended with {done.returncode}\n{done.stdout}{done.stderr}")


@contextmanager
def dashboard(root: Path) -> Iterator[str]:
    """Run the dashboard as a process, with actions for Ada and Grace; yield its URL."""
    tokens = root.parent / "tokens"
    tokens.touch(mode=0o600)
    tokens.write_text("".join(f"{name}: {token}\n" for name, token in TOKENS.items()))
    environ = {name: value for name, value in os.environ.items() if name != "MCPFACTORY_DASHBOARD_TOKEN"}
    words = command("dashboard", "--allow-actions", "--token-file", str(tokens), "--port", "0", "--json")
    with subprocess.Popen(
        words, cwd=root, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
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
