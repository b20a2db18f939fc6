"""`make demo`: an end-to-end demo in a temporary directory, against a real HTTP service. Exits with 1 on any failure.

It makes a server from an API document, calls its tools, runs the pipeline to staging, and exports the dashboard.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHOP = HERE / "bookshop"


class Demo:
    """Runner of commands in one folder: prints each command with its output, and stops at the first failure."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder, self.environ = folder, environ

    def run(self, *command: str, show: bool = True) -> str:
        """Run `mcpfactory …`, print the command and each line of its output as it comes, and return its stdout."""
        print(f"\n$ mcpfactory {shlex.join(command)}", flush=True)
        printed = []
        with subprocess.Popen(
            [sys.executable, "-m", "mcpfactory", *command],
            cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=sys.stdout, text=True,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            for line in process.stdout:
                printed.append(line)
                print(line if show else "", end="", flush=True)
        if not show:
            print(f"({len(printed)} lines of JSON, which this demo reads)", flush=True)
        if process.returncode:
            sys.exit(
                f"\ndemo failed: the command above ended with exit {process.returncode}; everything is still in {self.folder}"
            )
        return "".join(printed)

    def check(self, holds: bool, what: str) -> None:
        """Exit with a failure if a result is wrong."""
        if not holds:
            sys.exit(f"\ndemo failed: {what}; everything is still in {self.folder}")


@contextlib.contextmanager
def bookshop() -> Iterator[str]:
    """Start the example service on a free loopback port, and yield its base URL."""
    command = [sys.executable, str(SHOP / "service.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def main() -> None:
    """Run the demo."""
    started = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="mcpfactory-demo-"))
    with bookshop() as url:
        print(f"the bookshop, a real HTTP service, listens on {url}")
        environ = {**os.environ, "MCPF_BOOKSHOP_BASE_URL": url, "MCPF_BOOKSHOP_API_KEY": "bookworm"}
        Demo(folder, environ).run("init", "my-servers")
        demo = Demo(folder / "my-servers", environ)
        demo.run("new", "--from-openapi", str(SHOP / "openapi.yaml"), "--name", "bookshop")
        demo.run("inspect", "bookshop")
        found = json.loads(demo.run("call", "bookshop", "list_books", "--arg", "q=austen", "--arg", "max_price=8"))
        demo.check(found["books"][0]["title"] == "Pride and Prejudice", "the search did not find the book")
        order = json.loads(
            demo.run(
                "call", "bookshop", "place_order", "--args",
                '{"lines": [{"isbn": "9780141439518", "copies": 2}], "address": {"name": "Ada", "street": "1 Loop", "city": "Ulm"}}',
            )
        )  # fmt: skip
        demo.check(order["total"] == 15.0, "the order has a wrong total")
        demo.run("pipeline", "run")
        demo.run("pipeline", "run")
        demo.run("pipeline", "status")
        status = json.loads(demo.run("pipeline", "status", "--json", show=False))
        demo.check("staging" in status[0]["channels"], "the server is not in staging")
        demo.run("dashboard", "--export", "site")
    root = folder / "my-servers"
    print(f"""
Everything worked, in {time.monotonic() - started:.0f} s. Files below {root}:
  servers/bookshop/            the server: your code, and src/bookshop_mcp/_generated/, which the factory owns
  pipeline/state/              the current state, tracked in Git; pipeline/history/ has the events
  pipeline/channels/staging/   an index that `uv pip install --index` and `uvx --index` read
  site/index.html              the dashboard, as static pages

Try next, from that folder, with {Path(sys.executable).parent}/mcpfactory:
  mcpfactory run bookshop                        speak MCP on stdio, as a client would start it
  mcpfactory run bookshop --http --port 8000     the same at http://127.0.0.1:8000/mcp
  edit a description in servers/bookshop/api/openapi.yaml, then: mcpfactory pipeline plan
  mcpfactory dashboard                           live, in the browser
""")


if __name__ == "__main__":
    main()
