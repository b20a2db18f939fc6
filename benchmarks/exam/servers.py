"""Where the examinations find things, and the everything server that most of them examine."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STDIO = [sys.executable, "-m", "mcpfactory", "run", "everything"]


@contextlib.contextmanager
def everything() -> Iterator[str]:
    """The everything server over HTTP on a free port; gives its URL."""
    command = [*STDIO, "--http", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "http://" in line)
            port = line.split("http://", 1)[1].split("/", 1)[0].rsplit(":", 1)[1]
            yield f"http://localhost:{port}/mcp"
        finally:
            process.terminate()
