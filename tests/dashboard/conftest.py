from __future__ import annotations

import json
import shutil
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.fingerprint import InputReader, stage_inputs
from mcpfactory_pipeline.stages import workspace_stages
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

EVIL = "<script>alert(1)</script>"
LONG_NAME = '"<&' * 34  # a person's name of maximum length; each character takes several bytes of a page

TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_book",
        "operation": {"method": "GET", "path": "/books/{bookId}", "operationId": "getBook"},
        "arguments": {"book_id": {"in": "path", "name": "bookId"}},
        "tokens": 180,
    },
    {
        "name": "search_books",
        "operation": {"method": "GET", "path": "/books", "operationId": None},
        "arguments": {"query": {"in": "query", "name": "q"}, "limit": {"in": "query", "name": "limit"}},
        "tokens": 420,
    },
]


class WorkspaceBuilder:
    """Builder of a workspace. It adds servers in a given state, through the real store."""

    def __init__(self, root: Path, run: str = "") -> None:
        made = (root / "mcpfactory.toml").is_file()
        self.workspace = Workspace.find(root) if made else apply_setup(plan_workspace_setup(root, "library"), git=False)
        self.root = root
        self.store = Store(self.workspace)
        self.run = run or new_id()

    def copy(self, root: Path) -> WorkspaceBuilder:
        """Return the same workspace in another folder."""
        return WorkspaceBuilder(Path(shutil.copytree(self.root, root, symlinks=True)), self.run)

    def add(self, name: str, *, source: str = "api/openapi.yaml", tools: list[dict[str, Any]] | None = None) -> None:
        folder = self.root / "servers" / name
        (folder / ".mcpfactory").mkdir(parents=True)
        config = f'[server]\nname = "{name}"\npackage = "{name}_mcp"\ntemplate = "openapi"\n[api]\nsource = {json.dumps(source)}\n'
        (folder / "mcpfactory.toml").write_text(config)
        report = {
            "tools": TOOLS if tools is None else tools,
            "tokens": 600,
            "skipped": [{"method": "POST", "path": "/upload", "reason": f"multipart with {EVIL}"}],
            "environment": [{"name": f"{name.upper()}_API_KEY", "required": True, "description": "API key"}],
        }
        (folder / ".mcpfactory" / "report.json").write_text(json.dumps(report))

    def passed(self, name: str, *stages: str, **facts: Any) -> None:
        for stage in stages:
            self.finished(name, stage, "passed", **facts)

    def finished(self, name: str, stage: str, outcome: str, *, fresh: bool = True, **facts: Any) -> None:
        """Record a run of a stage with its current inputs; if not `fresh`, with other inputs, so that it is stale."""
        known = next(one for one in workspace_stages(self.workspace) if one.name == stage)
        with self.store.transaction(name) as transaction:
            inputs = stage_inputs(known, InputReader(self.workspace.server(name), transaction.state))
            if not fresh:
                inputs = dict.fromkeys(inputs, "sha256:other")
            run = facts.pop("run", self.run)
            # A start, as in old histories, permits a second end in the same run.
            if stage in transaction.state.stages:
                transaction.append("stage.started", stage=stage, run=run)
            transaction.append(
                "stage.finished", stage=stage, run=run, outcome=outcome, inputs=inputs,
                **{"seconds": 1.5, **facts},
            )  # fmt: skip

    def starts(self, name: str, run: str, *stages: str) -> list[Mapping[str, Any]]:
        """Return the starts of stages, which a run notes while the stages run."""
        last = self.store.state(name).last
        about = {"run": run, "reasons": ["never run"]}
        return [self.store.make_event(last, "stage.started", stage=stage, **about) for stage in stages]

    def built(self, name: str, version: str) -> str:
        candidate = f"{version}-0123456789ab"
        files = {f"{name}_mcp-{version}-py3-none-any.whl": "sha256:" + "ab" * 32}
        self.finished(name, "build", "passed", candidate=candidate, built={"version": version, "files": files})
        folder = self.workspace.artifacts / name / candidate
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file).write_bytes(b"wheel")
        return candidate

    def validated(self, name: str, candidate: str, outcome: str, report: dict[str, Any]) -> None:
        kept = f"{candidate}/validate/report.json"
        file = self.workspace.artifacts / name / kept
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(report))
        summary = {"score": report["score"], "findings": len(report["findings"])}
        self.finished(
            name, "validate", outcome, candidate=candidate, summary=summary,
            message=f"score {report['score']}", artifacts={kept: "sha256:" + "cd" * 32},
        )  # fmt: skip


FINDING = {
    "rule": "tool-calls.some-succeed",
    "severity": 5,
    "gate": True,
    "message": f"every called tool returned an error: {EVIL}",
    "where": "get_book",
    "hint": "implement the tools",
    "source": "a server that does nothing is of no use",
    "evidence": {"request": {"method": "tools/call"}, "response": {"isError": True, "text": EVIL}},
}


@pytest.fixture(autouse=True)
def own_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redirect the dashboard's user files to a temporary folder."""
    folder = str(tmp_path_factory.mktemp("person"))
    for name in ("HOME", "LOCALAPPDATA", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, folder)


@pytest.fixture(scope="session")
def empty_builder(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceBuilder:
    """Return a workspace without servers; tests copy it."""
    return WorkspaceBuilder(tmp_path_factory.mktemp("empty") / "library")


@pytest.fixture
def builder(empty_builder: WorkspaceBuilder, tmp_path: Path) -> WorkspaceBuilder:
    return empty_builder.copy(tmp_path / "library")


@pytest.fixture(scope="session")
def filled_builder(empty_builder: WorkspaceBuilder, tmp_path_factory: pytest.TempPathFactory) -> WorkspaceBuilder:
    """Return the original of `four_servers`."""
    builder = empty_builder.copy(tmp_path_factory.mktemp("filled") / "library")
    builder.add("bookshop")
    builder.passed("bookshop", "generate", message="2 tools")
    candidate = builder.built("bookshop", "1.2.0")
    builder.passed("bookshop", "test", candidate=candidate, message="4 tests")
    clean = {"score": 99, "passed": True, "rules_version": 1, "revisions": [], "findings": [], "not_checked": []}
    builder.validated("bookshop", candidate, "passed", clean)
    builder.passed("bookshop", "staging", candidate=candidate, channel="staging", version="1.2.0")

    builder.add("atlas", source=f"https://example.com/{EVIL}")
    builder.passed("atlas", "generate")
    candidate = builder.built("atlas", "0.3.0")
    builder.passed("atlas", "test", candidate=candidate)
    unchecked = [{"rule": "tool-calls.output-schema", "reason": "no tool was called", "gate": True}]
    builder.validated(
        "atlas", candidate, "failed", {"score": 62, "passed": False, "findings": [FINDING], "not_checked": unchecked}
    )

    builder.add("weather")
    builder.finished("weather", "generate", "passed", fresh=False)

    builder.add("zebra", tools=[])
    return builder


@pytest.fixture
def four_servers(filled_builder: WorkspaceBuilder, tmp_path: Path) -> WorkspaceBuilder:
    """Return four servers: passed, with failed validation, stale, and never run."""
    return filled_builder.copy(tmp_path / "library")


@contextmanager
def serving(root: Path, people: dict[str, str] | None = None, **options: Any) -> Iterator[str]:
    """Serve the dashboard over HTTP, as the command does; yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    app = create_app(root, ended=lambda: server.should_exit, people=people, **options)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", proxy_headers=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture
def address(four_servers: WorkspaceBuilder) -> Iterator[str]:
    """Serve the dashboard of `four_servers` over HTTP; yield its address."""
    with serving(four_servers.root) as address:
        yield address
