"""Stages before anything is built: what the API document is, whether it is fit for models, and the list of tools to approve."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcpfactory_pipeline import StageInputs, StageOutputs


def research(inputs: StageInputs) -> StageOutputs:
    """Find the API documents, and keep a note about each: its size and its first lines."""
    documents = _documents(inputs.folder)
    if not documents:
        return StageOutputs("failed", "there is no API document in api/")
    lines = [f"# {inputs.server}", ""]
    for file in documents:
        text = file.read_text(encoding="utf-8")
        lines += [f"- {file.name}: {len(text.splitlines())} lines", *(f"  - {one}" for one in text.splitlines()[:3])]
    _keep(inputs, "notes.md", "\n".join(lines) + "\n")
    return StageOutputs("passed", f"{len(documents)} API documents", {"documents": len(documents)})


def document(inputs: StageInputs) -> StageOutputs:
    """A document without a single description gives tools that no model can choose from."""
    texts = [file.read_text(encoding="utf-8") for file in _documents(inputs.folder)]
    described = sum(text.count("description") + text.count("summary") for text in texts)
    if not described:
        return StageOutputs("failed", "no operation is described", {"described": 0})
    return StageOutputs("passed", f"{described} descriptions", {"described": described})


def curate(inputs: StageInputs) -> StageOutputs:
    """Keep the list of tools that a person approves; too many are a failure. What was said of the last list is on top."""
    tools = read_tools(inputs.folder)
    said = [f"> {inputs.rejection}", ""] if inputs.rejection else []
    lines = [f"- `{tool['name']}`: {tool.get('title') or tool.get('summary') or ''}".rstrip(": ") for tool in tools]
    _keep(inputs, "tools.md", "\n".join([f"# Tools of {inputs.server}", "", *said, *lines]) + "\n")
    most = inputs.settings["most"]
    outcome = "passed" if 0 < len(tools) <= most else "failed"
    return StageOutputs(outcome, f"{len(tools)} tools, {most} at most", {"tools": len(tools)})


def read_tools(folder: Path) -> list[dict[str, Any]]:
    """Return the tools of a server's folder, by the report of their generation."""
    report = json.loads((folder / ".mcpfactory" / "report.json").read_text(encoding="utf-8"))
    return list(report["tools"])


def _documents(folder: Path) -> list[Path]:
    return sorted(file for file in (folder / "api").glob("*") if file.suffix in {".yaml", ".yml", ".json"})


def _keep(inputs: StageInputs, name: str, text: str) -> None:
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / name).write_text(text, encoding="utf-8")
