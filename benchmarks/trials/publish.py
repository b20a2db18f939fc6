"""Publishing for real: pypiserver on loopback, an MCP registry on loopback, the servers of this repository, and a process that dies.

pypiserver is installed into the trial's folder; where packages that it lacks come from is what it sends its clients to. First
every server is published, then installed and asked with `uvx --index-url …` in an empty home; then everything that must be
refused is tried; then a publish is killed (-9) at as many moments as `--times` says, and continued.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import uv

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.trials.ground import ROOT
from benchmarks.trials.mcp_registry import GITHUB_TOKEN, Registry, serving
from benchmarks.trials.promoted import SERVERS, plain, promoted, tools
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.channels.candidate import build_candidate, store_candidate
from mcpfactory_pipeline.publish.publish import find_release
from mcpfactory_pipeline.publish.publish import publish as bring
from mcpfactory_pipeline.publish.registry import server_json
from mcpfactory_pipeline.publish.server_rules import judge
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["PASSWORD", "USER", "install_index", "package_index", "run"]

INDEX, BILLS = "pypiserver[passlib]==2.4.2", "cyclonedx-python-lib[json-validation]>=11"
_JUDGE = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(wrong) if wrong else 0)
"""
USER, PASSWORD = "trial", "index-secret-password"
_SETTINGS = """\
[workspace]
name = "trial"
[publish.pypi]
url = "{index}/"
index = "{index}/simple/"
user = "{user}"
runtime = "publish"
[publish.registry]
url = "{registry}"
auth = "github"
"""


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Everything once, and `times` kills; the figure says how many of the promises held."""
    program = install_index(folder / "index-program")
    if program is None:
        return unavailable(f"{INDEX} cannot be installed here")
    space = promoted(folder / "space", SERVERS)
    secrets = {"PYPI_TOKEN": PASSWORD, "MCP_REGISTRY_TOKEN": GITHUB_TOKEN}
    with (
        package_index(program, folder / "index") as url,
        serving(Registry(_descriptions(folder / "index"))) as registry,
    ):
        registry.namespace = "com.example/"
        (space.root / "mcpfactory.toml").write_text(_SETTINGS.format(index=url, registry=registry.url, user=USER))
        trial = _Trial(Workspace.find(space.root), url, folder / "index", registry, random.Random(seed))
        with patch.dict(os.environ, secrets):
            snapshot = trial.snapshot(folder / "snapshot")
            rows = [
                *trial.published(folder / "home"),
                *trial.bills(program.parent / "python"),
                *trial.refused(),
                *trial.kills(snapshot, times),
            ]
    for row in rows:
        print(f"{'ok   ' if row.good else 'FAULT'} {row.what:52} {row.seen}", flush=True)
    faults = [row for row in rows if not row.good]
    return judged(
        f"{len(rows)} promises, {len(faults)} broken; {trial.killed} of {times} killed under way", good=not faults
    )


@dataclass(frozen=True)
class _Row:
    what: str
    good: bool
    seen: str


@dataclass
class _Trial:
    space: Workspace
    url: str
    folder: Path
    registry: Registry
    choose: random.Random
    killed: int = 0

    def published(self, home: Path) -> Iterator[_Row]:
        """Every server goes there, is the bytes of its candidate, and answers where nothing of ours is."""
        for server in SERVERS:
            document = server_json(find_release(self.space, server, "production"))
            yield _Row(
                f"server.json of {server} validates", not judge(document), f"{document['name']} {document['version']}"
            )
            code, out = self.publish(server)
            words = [f"{one['target']} {one['outcome']}" for one in out]
            yield _Row(
                f"publish {server}", code == 0 and words == ["pypi published", "registry published"], ", ".join(words)
            )
            files = Store(self.space).state(server).candidates[self.candidate(server)].files
            same = sum(hash_file(self.folder / name) == content for name, content in files.items())
            yield _Row(f"the index has the bytes of {server}", same == len(files) == 2, f"{same} of {len(files)} files")
            command = [
                *plain(home / server),
                uv.find_uv_bin(),
                "tool",
                "run",
                "--index-url",
                f"{self.url}/simple/",
                f"{server}-mcp",
            ]
            begun = time.monotonic()
            try:
                answered = tools(command, cwd=home)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
                answered = []
                print(f"{server} does not answer: {error}", flush=True)
            yield _Row(
                f"uvx --index-url … {server}-mcp in an empty home",
                bool(answered),
                f"tools/list: {len(answered)} tools, {time.monotonic() - begun:.1f} s",
            )

    def bills(self, python: Path) -> Iterator[_Row]:
        """The bill of materials of every server passes the strict schema of its makers, and is the same when it is made anew."""
        for server in SERVERS:
            texts = []
            for _ in range(2):
                shutil.rmtree(
                    self.space.artifacts / server / self.candidate(server) / "publish" / "sbom", ignore_errors=True
                )
                (outcome,) = bring(self.space, server, ["sbom"])
                texts.append((Path(outcome.folder) / next(iter(outcome.files))).read_text())
            judged = subprocess.run(
                [str(python), "-c", _JUDGE], input=texts[0], capture_output=True, text=True, check=False
            )
            good = judged.returncode == 0 and texts[0] == texts[1]
            packages = len(json.loads(texts[0])["components"])
            yield _Row(
                f"bill of materials of {server}",
                good,
                f"{packages} packages; {judged.stderr.strip()[:80] or 'valid, twice the same bytes'}",
            )

    def refused(self) -> Iterator[_Row]:
        """What is there is said to be there; what is other is refused; neither changes anything."""
        server, before = SERVERS[0], self.listing()
        code, out = self.publish(server)
        words = [f"{one['target']} {one['outcome']}" for one in out]
        yield _Row("publish again", code == 0 and words == ["pypi there", "registry there"], ", ".join(words))
        first = self.candidate(server)
        self.rebuild(server)
        code, out = self.publish(server)
        message = out[0]["problems"][0]["message"] if out and out[0]["problems"] else ""
        yield _Row(
            "other bytes of the same version",
            code == 1 and "other bytes" in message,
            f"exit code {code}: {message[:60]}…",
        )
        with Store(self.space).transaction(server) as transaction:
            transaction.append("rolled-back", channel="production", candidate=first, version="0.1.0", reason="trial")
        yield _Row("nothing changed at the index", self.listing() == before, f"{len(before)} files")
        with patch.dict(os.environ, {"PYPI_TOKEN": "wrong"}):
            self.empty()
            done = self.command(server)
        yield _Row(
            "a wrong password",
            done.returncode == 1 and "wrong" not in done.stdout + done.stderr,
            done.stderr.splitlines()[0][:70],
        )

    def kills(self, snapshot: Path, times: int) -> Iterator[_Row]:
        """A publish dies before or after some file operation or request; the next one finishes it, and nothing is twice."""
        server, faults = SERVERS[1], []
        self.reset(snapshot)
        operations = self.operations(self.command(server, kill=10**9))
        for number in range(times):
            self.reset(snapshot)
            moment = self.choose.randint(1, operations)
            died = self.command(server, kill=moment).returncode == -9
            self.killed += died
            under_way = sorted(path.name for path in self.folder.iterdir())
            code, out = self.publish(server)
            state, events = Store(self.space).state(server), Store(self.space).history(server)
            files = state.candidates[self.candidate(server)].files
            ended = [event["target"] for event in events if event["event"] == "published"]
            wrong = [
                word
                for word, bad in (
                    (f"exit code {code}", code != 0),
                    ("bytes", any(hash_file(self.folder / name) != content for name, content in files.items())),
                    ("state", set(state.published) != {"pypi", "registry"} or bool(state.publishing)),
                    ("recorded twice", sorted(ended) != ["pypi", "registry"]),
                    ("registry", len(self.registry.entries) != 1),
                    ("verify", bool(verify(self.space, [server]))),
                )
                if bad
            ]
            faults += [f"kill before operation {moment}: {', '.join(wrong)}"] if wrong else []
            print(
                f"kill {number + 1}, at {moment} of {operations}: {len(under_way)} files there; then "
                f"{', '.join(one['target'] + ' ' + one['outcome'] for one in out)}{'; FAULT ' + str(wrong) if wrong else ''}",
                flush=True,
            )
        yield _Row(
            f"{times} publishes killed (-9), then continued",
            not faults,
            "; ".join(faults) or f"{operations} moments to die at",
        )

    # --- doing ---

    def command(self, server: str, *words: str, kill: int = 0) -> subprocess.CompletedProcess[str]:
        """`mcpfactory publish`, as a process of its own."""
        begin = [sys.executable, "-m", "benchmarks.trials.publish_child", str(kill), str(self.space.root)]
        return subprocess.run(
            [*begin, "publish", server, "--json", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def publish(self, server: str) -> tuple[int, list[dict[str, Any]]]:
        """The exit code, and the outcomes."""
        done = self.command(server)
        if not done.stdout:
            print(done.stderr, flush=True)
        return done.returncode, json.loads(done.stdout or "[]")

    @staticmethod
    def operations(done: subprocess.CompletedProcess[str]) -> int:
        """How many moments there were to die at."""
        return int(done.stderr.split()[-1])

    def candidate(self, server: str) -> str:
        """What production offers."""
        return Store(self.space).state(server).channels["production"].candidate

    def rebuild(self, server: str) -> None:
        """Another candidate of the same version, in production."""
        folder = self.space.root / "servers" / server
        (folder / "README.md").write_text((folder / "README.md").read_text() + "\nAnother sentence.\n")
        made = build_candidate(folder, self.folder.parent / "rebuilt")
        store_candidate(made, self.space.artifacts / server / made.id)
        with Store(self.space).transaction(server) as transaction:
            built = {"version": "0.1.0", "files": dict(made.files), "facts": {}}
            run = new_id()
            transaction.append("stage.started", stage="build", run=run)
            transaction.append(
                "stage.finished",
                stage="build",
                run=run,
                outcome="passed",
                fingerprint="g",
                inputs={},
                candidate=made.id,
                built=built,
            )
            transaction.append("promoted", channel="production", candidate=made.id, version="0.1.0")

    def listing(self) -> dict[str, str]:
        """What the index has."""
        return {path.name: hash_file(path) for path in sorted(self.folder.iterdir())}

    def empty(self) -> None:
        """The index has nothing."""
        for path in self.folder.iterdir():
            path.unlink()

    def snapshot(self, folder: Path) -> Path:
        """State and history as they are before anything is published."""
        for part in ("state", "history"):
            shutil.copytree(self.space.pipeline / part, folder / part)
        return folder

    def reset(self, snapshot: Path) -> None:
        """Everything as it was before anything was published."""
        self.empty()
        self.registry.entries.clear()
        for part in ("state", "history"):
            shutil.rmtree(self.space.pipeline / part)
            shutil.copytree(snapshot / part, self.space.pipeline / part)


def _descriptions(folder: Path) -> Callable[[str], str | None]:
    """The descriptions in the wheels that the index has, as PyPI gives them out."""

    def description(project: str) -> str | None:
        for wheel in sorted(folder.glob(f"{project.replace('-', '_')}-*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
                return archive.read(name).decode()
        return None

    return description


def install_index(folder: Path) -> Path | None:
    """The real index server, in an environment of its own; None where it cannot be had."""
    commands = (
        ["venv", "--quiet", str(folder)],
        ["pip", "install", "--quiet", "--python", str(folder / "bin/python"), INDEX, BILLS],
    )
    for words in commands:
        if subprocess.run([uv.find_uv_bin(), *words], check=False, timeout=300).returncode:
            return None
    return folder / "bin" / "pypi-server"


@contextmanager
def package_index(program: Path, folder: Path) -> Iterator[str]:
    """The index with an empty folder, on a free port: uploads need a password, downloads do not."""
    folder.mkdir()
    digest = base64.b64encode(hashlib.sha1(PASSWORD.encode()).digest()).decode()
    secrets = folder.parent / "htpasswd"
    secrets.write_text(f"{USER}:{{SHA}}{digest}\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["run", "-i", "127.0.0.1", "-p", str(port), "-P", str(secrets), "-a", "update", str(folder)]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen([str(program), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _until_it_answers(url, process)
            yield url
        finally:
            process.terminate()


def _until_it_answers(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{url}/simple/", timeout=5):
                return
        except OSError:
            if process.poll() is not None:
                raise
            time.sleep(0.1)
    raise TimeoutError(f"{url} does not answer")
