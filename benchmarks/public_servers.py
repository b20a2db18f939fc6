"""Public MCP servers, unmodified, examined by `mcpfactory validate --command`.

  python -m benchmarks.public_servers                 all of them
  python -m benchmarks.public_servers time memory     some of them
  python -m benchmarks.public_servers --reports DIR   and the whole reports, one JSON file each

They are installed from npm and the Python index at first use, into the cache folder of the benchmarks. The last lines are a
table: server, seconds, verdict, findings by severity, the rules that spoke. Exit code 1 when an examination crashed or took
longer than two minutes; findings are the servers' own affair (docs/explanation/public-servers.md says which, and why).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.peers import home, prepare
from benchmarks.peers.outsiders import environment

LONGEST = 120  # seconds that one examination may take
REFERENCE = ("mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19")
SDK = "mcp==2.3.0"
FASTMCP = "fastmcp==4.1.2"
NPM = {
    f"@modelcontextprotocol/server-{name}": "2026.8.31"
    for name in ("everything", "filesystem", "memory", "sequential-thinking")
}


@dataclass(frozen=True)
class Examined:
    """What came of one server: `crash` says what went wrong with the examination itself."""

    seconds: float
    report: dict[str, Any]
    crash: str = ""


def _reference(*command: str) -> Callable[[Path], list[str]]:
    return lambda _playground: [environment("public-reference", REFERENCE), "-m", *command]


def _git(playground: Path) -> list[str]:
    if not (playground / ".git").is_dir():
        subprocess.run(["git", "init", "--quiet", str(playground)], check=True)
    return [environment("public-reference", REFERENCE), "-m", "mcp_server_git", "--repository", str(playground)]


def _sdk_everything(_playground: Path) -> list[str]:
    """The everything server of the Python SDK's repository; its own `main` speaks HTTP only."""
    python = environment("public-sdk", (SDK, "click", "httpx2"))
    folder = _source(SDK) / "examples/servers/everything-server"
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); from mcp_everything_server.server import mcp; mcp.run()"
    return [python, "-c", code]


def _fastmcp_everything(_playground: Path) -> list[str]:
    """The server that FastMCP keeps for the conformance suite: everything that it can do."""
    python = environment("public-fastmcp", (FASTMCP, "fastmcp-tasks"))
    server = _source(FASTMCP) / "tests/conformance/server.py"
    return [str(Path(python).with_name("fastmcp")), "run", f"{server}:server", "--no-banner"]


def _typescript_example(_playground: Path) -> list[str]:
    values = prepare()
    example = "node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/mcpServerOutputSchema.js"
    return [values["node"], str(Path(values["home"]) / example)]


def _npm(name: str, program: str = "dist/index.js") -> Callable[[Path], list[str]]:
    def command(playground: Path) -> list[str]:
        extra = [str(playground)] if name == "filesystem" else []
        return [
            prepare()["node"],
            str(_npm_folder() / f"node_modules/@modelcontextprotocol/server-{name}" / program),
            *extra,
        ]

    return command


SERVERS: dict[str, Callable[[Path], list[str]]] = {
    "python-sdk-everything": _sdk_everything,
    "fastmcp-everything": _fastmcp_everything,
    "typescript-sdk-example": _typescript_example,
    "everything": _npm("everything"),
    "filesystem": _npm("filesystem"),
    "memory": _npm("memory"),
    "sequential-thinking": _npm("sequential-thinking"),
    "fetch": _reference("mcp_server_fetch"),
    "git": _git,
    "time": _reference("mcp_server_time"),
}


def _npm_folder() -> Path:
    """Where the npm servers are; installed at first use."""
    folder = home() / "public-npm"
    wanted = json.dumps({"private": True, "dependencies": NPM})
    listed = folder / "package.json"
    if not (folder / "node_modules").is_dir() or listed.read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        listed.write_text(wanted)
        node = Path(prepare()["node"])
        npm = node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
        path = f"{node.parent}{os.pathsep}{os.environ['PATH']}"
        command = [str(node), str(npm), "install", "--silent", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True)
    return folder


def _source(requirement: str) -> Path:
    """The source distribution of a requirement `name==version`, unpacked; its examples are in no wheel."""
    name, _, version = requirement.partition("==")
    folder = home() / "public-sources"
    unpacked = folder / f"{name}-{version}"
    if not unpacked.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        own = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name]
        subprocess.run([*own, "--dest", str(folder), requirement], check=True)
        with tarfile.open(folder / f"{name}-{version}.tar.gz") as archive:
            archive.extractall(folder, filter="data")
    return unpacked


def examine(command: list[str]) -> Examined:
    """The report of `mcpfactory validate` on a command, and how long it took in seconds."""
    program = [sys.executable, "-m", "mcpfactory", "validate", "--command", shlex.join(command), "--json"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*program, "--timeout", str(LONGEST - 20)], capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return Examined(time.monotonic() - began, {}, f"not over after {LONGEST} s")
    seconds = time.monotonic() - began
    try:
        return Examined(seconds, json.loads(done.stdout))
    except ValueError:
        return Examined(seconds, {}, f"exit {done.returncode}: {done.stderr.strip()[-300:]}")


def line(name: str, examined: Examined) -> str:
    """One row of the table."""
    if examined.crash:
        return f"{name:24} {examined.seconds:6.1f}  CRASHED  {examined.crash}"
    report = examined.report
    counts = Counter(finding["severity"] for finding in report["findings"])
    severities = " ".join(f"{severity}:{counts[severity]}" for severity in (5, 3, 2, 1))
    verdict = {"passed": "promotable", "not shown": "not shown", "refused": "NOT PROMOTABLE"}[report["verdict"]]
    rules = dict.fromkeys(finding["rule"] for finding in report["findings"])
    unchecked = [f"?{entry['rule']}" for entry in report["not_checked"]]
    words = " ".join([*rules, *unchecked]) or "none"
    return f"{name:24} {examined.seconds:6.1f}  {report['score']:3} {verdict:14}  {severities}  {words}"


def main() -> None:
    """Examines the servers and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", nargs="*", help=f"of {', '.join(SERVERS)}")
    parser.add_argument("--reports", type=Path, help="a folder for the whole reports")
    wish = parser.parse_args()
    if unknown := set(wish.servers) - set(SERVERS):
        parser.error(f"unknown server: {', '.join(unknown)}")
    playground = home() / "public-playground"
    playground.mkdir(parents=True, exist_ok=True)
    print(
        "server                  seconds  score and verdict   findings by severity, rules (? not checked)", flush=True
    )
    crashed = False
    for name in wish.servers or SERVERS:
        examined = examine(SERVERS[name](playground))
        crashed |= bool(examined.crash)
        print(line(name, examined), flush=True)
        if wish.reports:
            wish.reports.mkdir(parents=True, exist_ok=True)
            text = json.dumps(examined.report, indent=2, ensure_ascii=False)
            (wish.reports / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    sys.exit(crashed)


if __name__ == "__main__":
    main()
