"""Stages behind a channel: what it really offers, and what is told to the world once production does."""

from __future__ import annotations

import hashlib
import json
import zipfile

from mcpfactory_pipeline import StageInputs, StageOutputs


def install(inputs: StageInputs) -> StageOutputs:
    """The index of staging links the candidate's wheel, with the hash of its bytes."""
    assert inputs.candidate is not None
    digest = hashlib.sha256(inputs.candidate.wheel.read_bytes()).hexdigest()
    pages = (inputs.root / "pipeline" / "channels" / "staging" / "simple").glob("*/index.html")
    if any(f"sha256={digest}" in page.read_text(encoding="utf-8") for page in pages):
        return StageOutputs("passed", "staging offers these bytes")
    return StageOutputs("failed", "staging does not offer these bytes")


def smoke(inputs: StageInputs) -> StageOutputs:
    """The wheel is whole, and has the server's package."""
    assert inputs.candidate is not None
    with zipfile.ZipFile(inputs.candidate.wheel) as wheel:
        if bad := wheel.testzip():
            return StageOutputs("failed", f"{bad} is damaged")
        names = wheel.namelist()
    package = inputs.package.replace(".", "/") + "/"
    if not any(name.startswith(package) for name in names):
        return StageOutputs("failed", f"the wheel has no {package}")
    return StageOutputs("passed", f"{len(names)} files")


def registry(inputs: StageInputs) -> StageOutputs:
    """Keep the entry for a registry: name, version, and the hash that installers check."""
    assert inputs.candidate is not None
    package = {"file": inputs.candidate.wheel.name, "sha256": _digest(inputs)}
    entry = {"name": inputs.server, "version": inputs.candidate.version, "package": package}
    _keep(inputs, "server.json", json.dumps(entry, indent=2) + "\n")
    return StageOutputs("passed", f"an entry for {inputs.candidate.version}")


def clients(inputs: StageInputs) -> StageOutputs:
    """Keep what a client's configuration says to start the server."""
    server = {"command": "uvx", "args": [f"{inputs.server}-mcp"]}
    _keep(inputs, "clients.json", json.dumps({"mcpServers": {inputs.server: server}}, indent=2) + "\n")
    return StageOutputs("passed", "a configuration for clients")


def announcement(inputs: StageInputs) -> StageOutputs:
    """Keep the text of the announcement."""
    assert inputs.candidate is not None
    text = f"{inputs.server} {inputs.candidate.version} is in production.\n"
    _keep(inputs, "announcement.txt", text)
    return StageOutputs("passed", text.strip())


def drift(inputs: StageInputs) -> StageOutputs:
    """Runs when the API document or the candidate is another: keeps the hash of the document that production stands for."""
    files = sorted(file for file in (inputs.folder / "api").glob("*") if file.is_file())
    digests = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
    _keep(inputs, "documents.json", json.dumps(digests, indent=2) + "\n")
    return StageOutputs("passed", f"{len(digests)} API documents are as they were", {"documents": len(digests)})


def _digest(inputs: StageInputs) -> str:
    assert inputs.candidate is not None
    return hashlib.sha256(inputs.candidate.wheel.read_bytes()).hexdigest()


def _keep(inputs: StageInputs, name: str, text: str) -> None:
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / name).write_text(text, encoding="utf-8")
