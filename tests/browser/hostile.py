"""Workspace whose third-party texts are words of 300 letters: names, descriptions, reasons, messages, paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.base.ids import acting_as, new_id
from tests.dashboard.conftest import WorkspaceBuilder

WORD = "W" + "o" * 297 + "rd"
_POLICY = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 1
approvers = ["{word}"]
"""
_NAME = "server_" + "n" * 57  # about the maximum length of a server name


def make_hostile(place: Path) -> Path:
    """Write the workspace through the store, without building or running anything."""
    bench = WorkspaceBuilder(place / "hostile")
    config = bench.root / "mcpfactory.toml"
    config.write_text(config.read_text() + _POLICY.format(word=WORD))
    with acting_as(WORD):
        _fill(bench, _NAME)
        _fill(bench, "short")
        _break(bench, "broken")
        _held(bench, "short")
    return bench.root


def _fill(bench: WorkspaceBuilder, name: str) -> None:
    bench.add(name, source=f"https://example.com/{WORD}", tools=[_tool(f"{WORD[:120]}_{one}") for one in range(2)])
    report = bench.root / "servers" / name / ".mcpfactory" / "report.json"
    known = json.loads(report.read_text())
    known["skipped"] = [{"method": "POST", "path": f"/{WORD}", "reason": WORD}]
    known["environment"] = [{"name": WORD.upper(), "required": True, "description": WORD}]
    report.write_text(json.dumps(known))
    bench.passed(name, "generate", message=WORD)
    candidate = bench.built(name, "1.2.0")
    bench.finished(name, "test", "passed", candidate=candidate, message=WORD)
    finding = {"rule": "tool-calls.some-succeed", "severity": 5, "gate": True, "message": WORD, "where": WORD, "hint": WORD,
               "source": WORD, "evidence": {"request": {WORD: WORD}}}  # fmt: skip
    unchecked = [{"rule": "tool-calls.output-schema", "reason": WORD, "gate": True}]
    report_of = {
        "score": 62,
        "passed": True,
        "findings": [finding],
        "not_checked": unchecked,
        "rules_version": 1,
        "revisions": [],
    }
    bench.validated(name, candidate, "passed", report_of)
    bench.passed(name, "staging", candidate=candidate, channel="staging", version="1.2.0")
    _contract(bench, name, candidate)
    run = new_id()
    log = bench.workspace.artifacts / name / "logs" / "test.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"{WORD}\nError: {WORD}\n{'w ' * 300}\n")
    bench.finished(name, "test", "failed", run=run, candidate=candidate, message=f"failed: {WORD}", reasons=[WORD])


def _contract(bench: WorkspaceBuilder, name: str, candidate: str) -> None:
    file = bench.workspace.artifacts / name / candidate / "validate" / "contract.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    tool = {"name": WORD[:120], "title": WORD, "description": WORD, "inputSchema": {"type": "object"}}
    file.write_text(json.dumps({"tools": [tool]}))
    generated = bench.root / "servers" / name / "src" / f"{name}_mcp" / "_generated"
    generated.mkdir(parents=True)
    schema = {"type": "object", "properties": {WORD: {"type": "string", "description": WORD}}}
    tools = [
        {"name": f"{WORD[:120]}_{one}", "title": WORD, "description": WORD, "inputSchema": schema} for one in range(2)
    ]
    (generated / "manifest.json").write_text(json.dumps({"tools": tools}))


def _tool(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "operation": {"method": "GET", "path": f"/{WORD}", "operationId": WORD},
        "arguments": {WORD: {"in": "query", "name": WORD}},
        "tokens": 180,
    }


def _held(bench: WorkspaceBuilder, name: str) -> None:
    """Record events as older versions did, with long reasons."""
    about = {"channel": "production", "candidate": "1.2.0-0123456789ab", "version": "1.2.0"}
    with bench.store.transaction(name) as transaction:
        for event in ("promoted", "rolled-back", "approved", "rejected", "held"):  # at one moment
            transaction.append(event, **about, reason=WORD * 10)


def _break(bench: WorkspaceBuilder, name: str) -> None:
    bench.add(name)
    (bench.root / "servers" / name / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\n{WORD} = "{WORD}"\n')
