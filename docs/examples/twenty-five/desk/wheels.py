"""Stages that judge the candidate by its wheel: mutants, secrets, licences, whether tools are found, and one report of it all."""

from __future__ import annotations

import re
import zipfile
from email.parser import HeaderParser
from typing import Final

from desk.sources import read_tools
from mcpfactory_pipeline import StageInputs, StageOutputs

_SECRET: Final = re.compile(rb"AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{36}|-----BEGIN [A-Z ]*PRIVATE KEY-----")
_NOISE: Final = frozenset({"a", "an", "and", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"})


def mutation(inputs: StageInputs) -> StageOutputs:
    """Break each module of the wheel in turn: what a compiler does not notice would not be noticed when it starts either."""
    modules = {name: data for name, data in _files(inputs).items() if name.endswith(".py") and data.strip()}
    alive = [name for name, data in modules.items() if _compiles(name, data + b"\ndef broken(:\n")]
    broken = [name for name, data in modules.items() if not _compiles(name, data)]
    outcome = "failed" if alive or broken or not modules else "passed"
    return StageOutputs(outcome, f"{len(modules)} mutants, {len(alive)} alive", {"mutants": len(modules)})


def security(inputs: StageInputs) -> StageOutputs:
    """No key of a cloud, token of a forge or private key may be in the wheel."""
    found = sorted(name for name, data in _files(inputs).items() if _SECRET.search(data))
    if found:
        return StageOutputs("failed", f"a secret in {', '.join(found)}", {"secrets": len(found)})
    return StageOutputs("passed", "no secrets", {"secrets": 0})


def licences(inputs: StageInputs) -> StageOutputs:
    """Keep what the wheel depends on; a dependency by URL has no licence that anybody looked at."""
    name = next(name for name in _files(inputs) if name.endswith(".dist-info/METADATA"))
    metadata = HeaderParser().parsestr(_files(inputs)[name].decode())
    needs = metadata.get_all("Requires-Dist", [])
    _keep(inputs, "dependencies.txt", "\n".join(sorted(needs)) + "\n")
    if foreign := [one for one in needs if "@" in one]:
        return StageOutputs("failed", f"depends on {foreign[0]}", {"dependencies": len(needs)})
    return StageOutputs("passed", f"{len(needs)} dependencies", {"dependencies": len(needs)})


def evaluation(inputs: StageInputs) -> StageOutputs:
    """Ask for each tool by the words of its name: it must be among the first three that match."""
    tools = [str(tool["name"]) for tool in read_tools(inputs.folder)]
    words = {name: set(re.findall(r"[a-z]+", name.lower())) - _NOISE for name in tools}
    hits = 0
    for name in tools:
        ranked = sorted(tools, key=lambda other: (-len(words[name] & words[other]), len(words[other]), other))
        hits += name in ranked[:3]
    share = 100 * hits // max(1, len(tools))
    outcome = "passed" if share >= inputs.settings["least"] else "failed"
    return StageOutputs(outcome, f"{hits} of {len(tools)} tools are found by their words", {"found": share})


def report(inputs: StageInputs) -> StageOutputs:
    """Keep one page for whoever approves: what the wheel holds."""
    files = _files(inputs)
    size = sum(len(data) for data in files.values())
    tools = [f"- `{tool['name']}`" for tool in read_tools(inputs.folder)]
    lines = [f"# {inputs.server}", "", f"{len(files)} files, {size} bytes, {len(tools)} tools", "", *tools]
    _keep(inputs, "report.md", "\n".join(lines) + "\n")
    return StageOutputs("passed", f"{len(files)} files, {size} bytes", {"files": len(files), "bytes": size})


def _files(inputs: StageInputs) -> dict[str, bytes]:
    assert inputs.candidate is not None
    with zipfile.ZipFile(inputs.candidate.wheel) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}


def _compiles(name: str, data: bytes) -> bool:
    try:
        compile(data, name, "exec")
    except SyntaxError:
        return False
    return True


def _keep(inputs: StageInputs, name: str, text: str) -> None:
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / name).write_text(text, encoding="utf-8")
