"""Five servers that nobody here wrote come into one workspace: all the way to production and a client, to a newer version, and back.

Python with FastMCP and with the official SDK, TypeScript, a Go program that a package of npm ships, and a server at a URL on
loopback. Everything is real: packages of the public index and registry, processes, channels, a client's file. What is typed is
printed, with what it prints.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.exam.results import Outcome, judged, unavailable
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.state.state import state_to_text
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime.client import connect_stdio

PATIENCE = 1200  # seconds for one command
TYPESCRIPT = "@modelcontextprotocol/server-everything"
GO = "kubernetes-mcp-server-linux-amd64"
REMOTE = ("2026.1.26", "2026.8.31")  # of the same TypeScript server, behind a URL
KUBECONFIG = """apiVersion: v1
kind: Config
clusters: [{name: none, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: none, context: {cluster: none, user: none}}]
users: [{name: none, user: {}}]
current-context: none
"""


class Peer(NamedTuple):
    """A server: its name, how it is adopted in two versions, calls that must work, and findings that a person accepts: rule, reason.

    `framework` is what adopt says that it was written with, `hashes` begin those of the two versions, and `news` are tools that only
    the second one has.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    calls: tuple[dict[str, Any], ...]
    waived: tuple[tuple[str, str], ...] = ()
    framework: str = ""
    hashes: tuple[str, str] = ("", "")
    news: frozenset[str] = frozenset()


PEERS = (
    Peer(
        "math",
        ("pypi:math-mcp-learning-server==0.9.2",),
        ("pypi:math-mcp-learning-server==0.10.3",),
        ({"tool": "calculate", "arguments": {"expression": "6*7"}},),
        framework="FastMCP",
        hashes=("sha256:4d2a0e0ebc84", "sha256:741aeb691384"),
        news=frozenset(
            {"matrix_determinant", "matrix_eigenvalues", "matrix_inverse", "matrix_multiply", "matrix_transpose"}
        ),
    ),
    Peer(
        "clock",
        ("pypi:mcp-server-time==2025.9.25", "--constraint", "mcp<2"),
        ("pypi:mcp-server-time==2026.1.26",),
        ({"tool": "get_current_time", "arguments": {"timezone": "UTC"}},),
        framework="the official SDK",
    ),
    Peer(
        "everything",
        (f"npm:{TYPESCRIPT}@2026.1.26",),
        (f"npm:{TYPESCRIPT}@2026.8.31",),
        ({"tool": "echo", "arguments": {"message": "tea"}},),
        (
            (
                "security.secret-exposure",
                "its tool get-env shows variables by design: it is an example, and gets none of ours",
            ),
        ),
    ),
    Peer("kube", ("--command", "./kubernetes-mcp-server --kubeconfig kubeconfig"), (), ()),
    Peer(
        "remote",
        (),
        (),
        ({"tool": "echo", "arguments": {"message": "tea"}},),
        (("http.origin", "it is reached on loopback only, and no browser comes there"),),
    ),
)


class AdoptionScenario:
    """A workspace, what was typed in it, and what did not come out as it should."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.faults = folder / "servers-of-others", folder / "home", list[str]()
        self.home.mkdir()
        apply_setup(plan_workspace_setup(self.folder), git=False)

    def type(self, *words: str, at: str = ".", codes: Sequence[int] = (0,)) -> str:
        """Run a command, print it with what it prints, and note when it ends otherwise than it should."""
        print(f"$ mcpfactory {shlex.join(words)}", flush=True)
        environ = {**os.environ, "HOME": str(self.home), "MCPFACTORY_ACTOR": "Ada"}
        done = subprocess.run(
            [sys.executable, "-m", "mcpfactory", *words], cwd=self.folder / at, env=environ, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        print(done.stdout, flush=True)
        if done.returncode not in codes:
            self.faults.append(f"{shlex.join(words)} ended with {done.returncode}")
        return done.stdout

    def expect(self, what: str, *, good: bool) -> None:
        """Note what must be so."""
        print(f"{'ok' if good else 'FAULT':6} {what}", flush=True)
        if not good:
            self.faults.append(what)

    def state(self, server: str) -> dict[str, Any]:
        """The state of a server."""
        return dict(json.loads(state_to_text(Store(Workspace.find(self.folder)).state(server))))


def run(folder: Path, times: int, seed: int) -> Outcome:
    """The whole story once; the last line counts what did not come out as it should."""
    del times, seed  # nothing is left to chance
    if shutil.which("npm") is None:
        return unavailable("npm is not on this machine")
    ground = AdoptionScenario(folder)
    with _remote(folder, REMOTE[0], 0) as port:
        _first(ground, port)
    with _remote(folder, REMOTE[1], port):
        _second(ground, port)
        _back(ground)
    for fault in ground.faults:
        print(fault)
    return judged(
        f"{len(PEERS)} servers adopted, promoted, renewed, rolled back; {len(ground.faults)} not as promised",
        good=not ground.faults,
    )


def _first(ground: AdoptionScenario, port: int) -> None:
    """Adopt all five, and bring them to production and into a client."""
    _go_program(ground, "0.0.66")
    for peer in PEERS:
        words = (f"http://127.0.0.1:{port}/mcp",) if peer.name == "remote" else peer.first
        told = ground.type(
            "adopt", *words, "--name", peer.name, "--yes", at="tools/kube" if peer.name == "kube" else "."
        )
        _recognised(ground, peer, told, peer.hashes[0])
        if peer.calls:
            place = ground.folder / f"servers/{peer.name}/tests/calls.json"
            place.parent.mkdir(exist_ok=True)
            place.write_text(json.dumps(peer.calls))
        for rule, reason in peer.waived:
            expires = (datetime.now(UTC).date() + timedelta(days=30)).isoformat()
            ground.type("waive", rule, "--server", peer.name, "--reason", reason, "--expires", expires)
    for peer in PEERS:
        ground.type("pipeline", "run", peer.name)
    _to_production(ground)
    ground.type("pipeline", "status")
    for peer in PEERS:
        ground.type("install", peer.name, "--client", "cursor")
    ground.type("install")
    _client_starts(ground, newer=False)


def _second(ground: AdoptionScenario, port: int) -> None:
    """What is newer, and what offers something else, is told; it is adopted, compared, and promoted."""
    told = ground.type("inbox", "--refresh")
    ground.expect("newer versions are told", good=told.count("was adopted") >= 3)
    ground.expect("the URL's other offer is told", good="offers something else than was adopted" in told)
    _go_program(ground, "0.0.67")
    for peer in PEERS:
        if peer.name == "remote":
            ground.type("adopt", f"http://127.0.0.1:{port}/mcp", "--yes")
        elif peer.second:
            _recognised(ground, peer, ground.type("adopt", *peer.second, "--yes"), peer.hashes[1])
        told = ground.type("diff", peer.name, codes=(0, 1))
        if peer.news:
            shown = {line.split()[1] for line in told.splitlines() if line.split()[:1] == ["tool-added"]}
            ground.expect(f"the new tools of {peer.name} are told before it goes anywhere", good=shown == peer.news)
    for peer in PEERS:
        ground.type("pipeline", "run", peer.name)
    _to_production(ground)
    ground.type("pipeline", "status")
    _client_starts(ground, newer=True)


def _back(ground: AdoptionScenario) -> None:
    """Every server goes back; the client starts what was there before."""
    for peer in PEERS:
        ground.type("pipeline", "rollback", peer.name, "--channel", "production", "--reason", "not yet")
        found = ground.state(peer.name)
        first = min(found["candidates"].values(), key=lambda known: known["number"])
        offered = found["candidates"][found["channels"]["production"]["candidate"]]
        ground.expect(f"production offers the first candidate of {peer.name} again", good=offered == first)
    told = ground.type("install", codes=(1,))
    lost = [line.split()[2] for line in told.splitlines() if "drifted" in line]
    ground.expect(
        "a URL, which serves the newer offer still, is told as drifted, and nothing else", good=lost == ["remote"]
    )
    _client_starts(ground, newer=False)
    ground.type("pipeline", "verify")


def _to_production(ground: AdoptionScenario) -> None:
    for peer in PEERS:
        ground.expect(
            f"staging offers {peer.name}",
            good=ground.state(peer.name)["channels"].get("staging", {}).get("candidate")
            == ground.state(peer.name)["candidate"],
        )
        ground.type("pipeline", "approve", peer.name, "--channel", "production")
        ground.type("pipeline", "promote", peer.name, "--channel", "production")


def _go_program(ground: AdoptionScenario, version: str) -> None:
    """Put the Go program of a package of npm into the workspace, as a team has what it builds."""
    place = ground.folder / "tools/kube"
    place.mkdir(parents=True, exist_ok=True)
    work = ground.home / f"go-{version}"
    work.mkdir()
    subprocess.run(
        ["npm", "pack", f"{GO}@{version}", "--silent", "--pack-destination", str(work)],
        check=True,
        cwd=work,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["tar", "xzf", next(work.glob("*.tgz"))], check=True, cwd=work)
    program = next(path for path in (work / "package").rglob("*") if path.is_file() and path.stat().st_size > 1 << 20)
    shutil.copy(program, place / "kubernetes-mcp-server")
    (place / "kubernetes-mcp-server").chmod(0o755)
    (place / "kubeconfig").write_text(KUBECONFIG)


@contextmanager
def _remote(folder: Path, version: str, port: int) -> Iterator[int]:
    """The TypeScript server over HTTP on loopback, in one version; gives the port."""
    tree = folder / f"remote-{version}"
    tree.mkdir()
    subprocess.run(
        ["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", f"{TYPESCRIPT}@{version}"],
        check=True,
        cwd=tree,
    )
    if not port:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
    command = ["node", str(tree / "node_modules" / TYPESCRIPT / "dist/index.js"), "streamableHttp"]
    with subprocess.Popen(
        command, env={**os.environ, "PORT": str(port)}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        while "listening" not in line:
            assert line, "the server at the URL ended"
            line = process.stderr.readline()
        try:
            yield port
        finally:
            process.kill()


def _recognised(ground: AdoptionScenario, peer: Peer, told: str, wanted: str) -> None:
    """Note whether it was taken for what it is, and by the bytes that are meant here."""
    if peer.framework:
        ground.expect(f"{peer.name} is written with {peer.framework}", good=f"written with {peer.framework}\n" in told)
    if wanted:
        ground.expect(f"{peer.name} is pinned by {wanted}…", good=f'hash = "{wanted}' in told)


def _client_starts(ground: AdoptionScenario, *, newer: bool) -> None:
    """Start what the client's file names, and note whether all answers, and each with the tools of the version that production offers."""
    entries = json.loads((ground.home / ".cursor/mcp.json").read_bytes())["mcpServers"]

    async def tools(entry: dict[str, Any]) -> frozenset[str]:
        async with connect_stdio([entry["command"], *entry["args"]], {"HOME": str(ground.home)}) as client:
            return frozenset(str(tool["name"]) for tool in await client.list_tools())

    offered = {name: asyncio.run(tools(entry)) for name, entry in entries.items() if "command" in entry}
    print(f"the client's entries list { {name: len(found) for name, found in offered.items()} }", flush=True)
    answering = sum(bool(found) for found in offered.values())
    ground.expect("the client's entries start all that is started here", good=answering == len(PEERS) - 1)
    for peer in PEERS:
        if peer.news:
            seen = peer.news & offered[peer.name]
            ground.expect(
                f"the client {'sees' if newer else 'does not see'} what is new in {peer.name}",
                good=seen == (peer.news if newer else frozenset()),
            )
