"""Workspaces with recorded runs. The store writes the events, because real stages take minutes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.base.ids import new_id
from mcpfactory_pipeline.channels.candidate import copy_into_channel, find_artifact
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace


def make(root: Path, *servers: str) -> Workspace:
    """Return a workspace with these servers, without any runs."""
    space = apply_setup(plan_workspace_setup(root), git=False)
    for name in servers:
        folder = root / "servers" / name
        (folder / "tests").mkdir(parents=True)
        (folder / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "{name}"\ntemplate = "none"\n')
    return space


def finish(space: Workspace, server: str, stage: str, outcome: str = "passed", **facts: Any) -> None:
    """Record the end of a stage."""
    inputs, run = {"stage": "1"}, facts.pop("run", new_id())
    with Store(space).transaction(server) as transaction:
        transaction.append(
            "stage.finished", stage=stage, run=run, outcome=outcome, seconds=1.0, inputs=inputs,
            **{"fingerprint": hash_named_texts(inputs), "message": f"{stage} {outcome}", "summary": {}, **facts},
        )  # fmt: skip


def stage(space: Workspace, server: str, text: str, *, score: int = 97) -> str:
    """Put a checked candidate into staging, with that text as its wheel and a new version; return its ID."""
    content, known = hash_bytes(text.encode()), Store(space).state(server).candidates.values()
    version = next((one.version for one in known if content in one.files.values()), f"1.{len(known)}")
    name = f"{server}-{version}-py3-none-any.whl"
    files = {name: content}
    candidate = hash_named_texts(files).removeprefix("sha256:")[:16]
    folder = space.artifacts / server / candidate
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    finish(space, server, "generate")
    finish(space, server, "build", candidate=candidate, built={"version": version, "files": files, "facts": {}})
    finish(space, server, "test", candidate=candidate, summary={"passed": 3})
    finish(space, server, "validate", candidate=candidate, summary={"score": score, "critical": 0, "gates": []})
    artifact = find_artifact(space, Store(space).state(server))
    assert artifact is not None
    copy_into_channel(space, "staging", artifact, build=False)
    finish(space, server, "staging", candidate=candidate, channel="staging", version=version)
    return candidate


def interrupt() -> NoReturn:
    """Raise KeyboardInterrupt in place of a clock."""
    raise KeyboardInterrupt


def contents(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder, except locks."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "locks" not in path.parts}
