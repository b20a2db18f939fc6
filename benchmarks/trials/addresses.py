"""Two FastAPI apps on loopback become servers by their URLs: called, sent through the pipeline, called again, then behind one endpoint.

Each app records the keys that it is shown: a key of one that reaches the other is a fault, with one address set for both as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.peers.outsiders import environment
from mcpfactory_runtime.client import connect_stdio

__all__ = ["run"]

Row = tuple[str, bool, str]  # what was to happen, whether it did, what was seen

APP = Path(__file__).resolve().parents[1] / "peers/servers/shop_api.py"
NEEDS = ("fastapi==0.165.0", "uvicorn==0.54.0")
KEYS = {"one": "key-of-one", "two": "key-of-two"}
PATIENCE = 600  # seconds for one command
PRIVATE = "on this machine; permitted by allow_private"


def run(folder: Path, times: int, seed: int) -> Outcome:
    """A table of what was to happen; the figure counts it."""
    del times, seed  # nothing is left to chance, and once is enough
    try:
        python = environment("fastapi", NEEDS)
    except subprocess.CalledProcessError:
        return unavailable(f"{' and '.join(NEEDS)} cannot be installed here")
    with ExitStack() as stack:
        urls = {name: stack.enter_context(_api(python, name)) for name in KEYS}
        rows = []
        for row in _road(folder, urls):
            rows.append(row)
            print(f"{'ok' if row[1] else 'FAULT':6} {row[0]:58} {row[2]}", flush=True)
    good = sum(row[1] for row in rows)
    return judged(f"{good} of {len(rows)} steps as they should be", good=good == len(rows))


@contextmanager
def _api(python: str, name: str) -> Iterator[str]:
    with subprocess.Popen([python, str(APP), name], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _road(folder: Path, urls: dict[str, str]) -> Iterator[Row]:
    space = folder / "space"
    _mcpfactory(folder, "init", str(space), "--no-git")
    for name, url in urls.items():
        made = _mcpfactory(space, "new", "--from-openapi", f"{url}/openapi.json", "--name", name)
        yield (
            f"new {name} says where its API is, and that it may be",
            PRIVATE in made.stderr,
            made.stderr.split("note: ")[-1].strip(),
        )
    yield from _called(space, "before")
    piped = _mcpfactory(space, "pipeline", "run", "--json")
    yield "the pipeline brings both to staging", piped.returncode == 0, f"exit {piped.returncode}"
    yield from _called(space, "after")
    yield (
        "both behind one endpoint",
        asyncio.run(_together(space)) == {name: name for name in KEYS},
        "each answers for itself",
    )
    for command in (("serve", "--server", "one,two"), ("call", "two", "get_book", "--arg", "number=1")):
        refused = _mcpfactory(space, *command, MCPFACTORY_BASE_URL=urls["one"])
        told = refused.stderr.partition("\n")[0]
        yield (
            f"{command[0]}, with one address for both: refused",
            refused.returncode == 4,
            f"exit {refused.returncode}: {told}",
        )
    for name, url in urls.items():
        with urllib.request.urlopen(f"{url}/seen", timeout=PATIENCE) as answer:
            seen = set(json.load(answer))
        yield f"the API {name} was shown its own key alone", seen == {KEYS[name]}, ", ".join(sorted(seen))


def _called(space: Path, when: str) -> Iterator[Row]:
    for name in KEYS:
        done = _mcpfactory(space, "call", name, "get_book", "--arg", "number=7")
        yield (
            f"{when} the pipeline: call {name}",
            done.stdout.strip() == f'{{"api":"{name}","number":7}}',
            done.stdout.strip(),
        )


async def _together(space: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "mcpfactory", "serve", "--server", ",".join(KEYS), "--workspace", str(space)]
    async with connect_stdio(command, env=_environ(), timeout=PATIENCE) as client:
        found = {}
        for name in KEYS:
            result = await client.call_tool(f"{name}_get_book", {"number": 7})
            found[name] = str(result["structuredContent"]["api"])
        return found


def _mcpfactory(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "mcpfactory", *command]
    return subprocess.run(
        line, cwd=folder, env={**os.environ, **_environ(), **more}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip


def _environ() -> dict[str, str]:
    return {f"MCPF_{name.upper()}_API_KEY": key for name, key in KEYS.items()}
