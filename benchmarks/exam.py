"""`make exam`: the examinations from outside, run against this checkout.

  python -m benchmarks.exam                    all that can be run here
  python -m benchmarks.exam conformance cases  some of: conformance, client, typescript, python1, inspector, cases,
                                               documents
  python -m benchmarks.exam documents --only github,stripe
All but `typescript`, `python1` and `inspector` need the folder ../shared; those three need a registry at first use (npm,
a Python index, npm): they are the official TypeScript clients, the official Python client 1.x and the MCP Inspector's
command-line mode, each unmodified.
What cannot be run is said, and the exit code is then 3; 1 when an examination found a fault.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from uv import find_uv_bin

from benchmarks.peers import home, prepare
from benchmarks.peers.outsiders import inspect, python_v1
from mcpfactory_runtime.revisions import REVISIONS

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
EXAMINERS = ("mcp>=2.3", "psutil", "jsonschema-rs")
UNAVAILABLE = 3


def _examiner() -> str:
    """The Python of an environment of its own, with nothing of ours in it."""
    folder = home() / "examiner"
    python = folder / "bin/python"
    if not python.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
        subprocess.run([find_uv_bin(), "pip", "install", "--quiet", "--python", str(python), *EXAMINERS], check=True)
    return str(python)


def _exam(script: str, only: str) -> int:
    if not (SHARED / "exam" / script).exists():
        print(f"{script}: the folder ../shared/exam is not here")
        return UNAVAILABLE
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [_examiner(), str(SHARED / "exam" / script), *(["--only", only] if only else [])]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=False).returncode


@contextlib.contextmanager
def _everything() -> Iterator[str]:
    """The everything server over HTTP on a free port; gives its URL."""
    command = [sys.executable, "-m", "mcpfactory", "run", "everything", "--http", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if "http://" in line)
            port = line.split("http://", 1)[1].split("/", 1)[0].rsplit(":", 1)[1]
            yield f"http://localhost:{port}/mcp"
        finally:
            process.terminate()


def _conformance(_only: str) -> int:
    tool = SHARED / "tools" / "conformance.sh"
    if not tool.exists():
        print("conformance: the folder ../shared/tools is not here")
        return UNAVAILABLE
    worst = 0
    with _everything() as url:
        for revision in list(REVISIONS)[1:]:  # the suite does not know the first one
            print(f"conformance {revision}: ", end="", flush=True)
            worst |= subprocess.run(["bash", str(tool), url, revision], check=False).returncode
        print("conformance, extensions: ", end="", flush=True)
        subprocess.run(["bash", str(tool), url, next(reversed(REVISIONS)), "ext"], check=False)
    return worst


def _client(_only: str) -> int:
    """Our client in the suite's hands, one revision after the other; a line for each, then what was not as it should be."""
    tool = SHARED / "tools" / "conformance_client.sh"
    if not tool.exists():
        print("client: the folder ../shared/tools is not here")
        return UNAVAILABLE
    command = f"{sys.executable} {ROOT / 'benchmarks/peers/conformance_client.py'}"
    worst = 0
    for revision in list(REVISIONS)[1:]:  # the suite does not know the first one
        print(f"client {revision}: ", end="", flush=True)
        run = subprocess.run(["bash", str(tool), command, revision], capture_output=True, text=True, check=False)
        print(run.stdout, end="", flush=True)
        if run.returncode == UNAVAILABLE:
            return UNAVAILABLE
        worst |= run.returncode or " failed 0 " not in run.stdout or "passed 0 " in run.stdout
    return int(worst != 0)


def _typescript(_only: str) -> int:
    places, worst = prepare(), 0
    prompt = {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a", "arg2": "b"}}
    wish = {"tool": "test_simple_text", "arguments": {}, "uri": "test://static-text", "prompt": prompt}
    request = json.dumps(wish)
    stdio = [sys.executable, "-m", "mcpfactory", "run", "everything"]
    with _everything() as url:
        for line in ("v1", "v2"):
            for transport, target in (("stdio", stdio), ("http", [url])):
                command = [places["node"], f"{places['home']}/client.mjs", line, transport, request, *target]
                worst |= subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode
    return int(worst != 0)


def _python_v1(_only: str) -> int:
    worst = 0
    stdio = [sys.executable, "-m", "mcpfactory", "run", "everything"]
    with _everything() as url:
        for transport, target in (("stdio", stdio), ("http", [url]), ("sse", [url.removesuffix("/mcp") + "/sse"])):
            command = [python_v1(), str(ROOT / "benchmarks/peers/python_v1.py"), transport, *target]
            worst |= subprocess.run(command, cwd=ROOT, check=False, timeout=120).returncode
    return int(worst != 0)


def _inspector(_only: str) -> int:
    node, worst = prepare()["node"], 0
    stdio = [sys.executable, "-m", "mcpfactory", "run", "everything"]
    with _everything() as url:
        sse = [url.removesuffix("/mcp") + "/sse"]
        for name, target, era in (
            ("stdio", stdio, "legacy"),
            ("stdio", stdio, "modern"),
            ("http", [url], "legacy"),
            ("http", [url], "modern"),
            ("sse", sse, "legacy"),
        ):
            found = inspect(node, target, era)
            worst |= any(answer != "ok" for answer in found.values())
            print(json.dumps({"transport": name, "era": era, **found}), flush=True)
    return int(worst)


PARTS: dict[str, Callable[[str], int]] = {
    "conformance": _conformance,
    "client": _client,
    "typescript": _typescript,
    "python1": _python_v1,
    "inspector": _inspector,
    "cases": lambda only: _exam("run_cases.py", only),
    "documents": lambda only: _exam("run_documents.py", only),
}


def main() -> None:
    """Runs the examinations and ends with the worst of their exit codes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--only", default="", help="documents or cases, separated by commas")
    wish = parser.parse_args()
    if unknown := set(wish.parts) - set(PARTS):
        parser.error(f"unknown examination: {', '.join(unknown)}")
    codes = []
    for part in wish.parts or PARTS:
        print(f"== {part}", flush=True)
        codes.append(PARTS[part](wish.only))
    sys.exit(1 if 1 in codes else max(codes))


if __name__ == "__main__":
    main()
