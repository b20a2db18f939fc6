"""The ground of the trials: workspaces whose stages cost next to nothing, the commands that run on them, and what must hold.

The machinery is the real one: `run_pipeline`, its processes and locks, `mcpfactory pipeline …`. Only what the stages do is
small. Every stage that came to its end is noted outside the pipeline's own history, in `ledger.txt`.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.base.locks import read_run_notes
from mcpfactory_pipeline.channels.candidate import store_candidate
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.plan.stage import BuiltCandidate, BuiltFiles, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state.state import fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.state.verify import refresh_views, verify
from mcpfactory_pipeline.state.view import view_text
from mcpfactory_pipeline.views.drift import find_drift
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.inprocess_executor import InProcessExecutor

ROOT = Path(__file__).resolve().parents[2]
_CONFIG = """\
[workspace]
name = "trials"
[pipeline]
backoff = 0
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = {approvals}
"""


def _note(inputs: StageInputs) -> str:
    """Note that a stage came to its end, and return the token that its record must have."""
    token = f"{inputs.server}:{inputs.work.name}"  # the folder's name has run and stage in it
    descriptor = os.open(inputs.root / "ledger.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{token}\n".encode())
    os.close(descriptor)
    return token


def build(inputs: StageInputs) -> StageOutputs:
    """A "wheel" with the text of source.txt in it, and a version for each text."""
    data = (inputs.folder / "source.txt").read_bytes()
    version = f"1.0.post{int(hash_bytes(data)[-8:], 16)}"
    wheel = inputs.work / f"{inputs.server}-{version}-py3-none-any.whl"
    wheel.write_bytes(data)
    files = {wheel.name: hash_bytes(data)}
    made = BuiltCandidate(hash_named_texts(files).removeprefix("sha256:")[:16], wheel.parent, files)
    store_candidate(made, inputs.artifacts / inputs.server / made.id)
    built = BuiltFiles(made.id, version, files, {"document": False})
    return StageOutputs("passed", "built", {"token": _note(inputs)}, built=built)


def check(inputs: StageInputs) -> StageOutputs:
    """Passes, and keeps a report."""
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / "report.txt").write_text("seen")
    return StageOutputs("passed", "seen", {"token": _note(inputs), "passed": 1, "score": 100})


def ship(inputs: StageInputs) -> StageOutputs:
    """Is in staging."""
    return StageOutputs("passed", "shipped", {"token": _note(inputs)}, channel="staging")


FAKE_STAGES = (
    Stage("build", (), ("source",), ("candidate",), 1, f"{__name__}:build", timeout=60),
    Stage("test", ("build",), ("candidate",), ("checks",), 1, f"{__name__}:check", timeout=60, check=True),
    Stage("validate", ("build",), ("candidate",), ("checks",), 1, f"{__name__}:check", timeout=60, check=True),
    Stage("staging", ("test", "validate"), ("candidate", "checks"), ("channel",), 1, f"{__name__}:ship", timeout=60, channel=ChannelPolicy(name="staging")),
)  # fmt: skip


def environment() -> dict[str, str]:
    """Return the environment in which processes of a trial find its stages, and the actor."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    return {"PYTHONPATH": path, "MCPFACTORY_ACTOR": os.environ.get("MCPFACTORY_ACTOR", "trial")}


def make(root: Path, *servers: str, approvals: int = 0) -> Workspace:
    """Make a workspace with servers that were never run, and so many approvals that production needs."""
    space = apply_setup(plan_workspace_setup(root), git=False)
    (root / "mcpfactory.toml").write_text(_CONFIG.format(approvals=approvals))
    (root / ".gitignore").write_text((root / ".gitignore").read_text() + "ledger.txt\n")
    for name in servers:
        folder = root / "servers" / name
        folder.mkdir(parents=True)
        (folder / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "p"\ntemplate = "none"\n')
        (folder / "source.txt").write_text(f"{name} 0")
    return Workspace.find(space.root)


def stage_all(space: Workspace) -> None:
    """Run the stages of all servers in this process: ground for a trial, not a part of it."""
    outcome = run_pipeline(space, stages=FAKE_STAGES, executor=InProcessExecutor(), jobs=1)
    assert set(outcome.servers.values()) == {"passed"}, outcome


def ledger(space: Workspace) -> list[str]:
    """The tokens of all stages that came to their end."""
    file = space.root / "ledger.txt"
    return file.read_text().split() if file.exists() else []


def violated_invariants(space: Workspace) -> Iterator[str]:
    """Yield violations of the invariants that hold at any moment, also after a kill."""
    store, ended = Store(space), set(ledger(space))
    for server in store.servers():
        try:
            events = store.history(server)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
            yield f"{server}: {error}"
            continue
        text = store.state_text(server)
        views = (view_text(fold(server, events[:end])) for end in range(len(events), -1, -1))
        if text is not None and text not in views:
            yield f"{server}: the state file is not the view of any beginning of its history"
        finished = [event for event in events if event["event"] == "stage.finished"]
        for event in finished:
            if event["outcome"] == "passed" and event["summary"].get("token") not in ended:
                yield f"{server}: {event['stage']} is recorded as finished and did not come to its end"
        runs = [(event["run"], event["stage"]) for event in finished]
        if len(runs) != len(set(runs)):
            yield f"{server}: a stage of one run is recorded twice"
    for page in (space.pipeline / "channels").glob("*/simple/*/index.html"):
        for target, digest in re.findall(r'href="([^"#]+)#sha256=([0-9a-f]{64})"', page.read_text()):
            if hashlib.sha256((page.parent / target).read_bytes()).hexdigest() != digest:
                yield f"{page.relative_to(space.root)}: {target} is half written"


def kept_promises(space: Workspace) -> Iterator[str]:
    """Yield violations of the invariants that hold once all processes have ended."""
    yield from violated_invariants(space)
    yield from (f"{entry['server']}: {entry['message']}" for entry in [*verify(space), *refresh_views(space)])
    store = Store(space)
    for server in space.servers():
        if read_run_notes(store.locks, server.name):
            yield f"{server.name}: it is still noted as running"
        try:
            state = store.state(server.name)
        except StateError as error:
            yield f"{server.name}: {error}"
            continue
        for drift in find_drift(space, server, state, {}):
            if drift.kind == "channel":
                yield f"{server.name}: {drift.message}"
    for litter in {*space.pipeline.rglob("*.tmp"), *(space.artifacts / ".work").rglob("*")}:
        if litter.is_file():
            yield f"left behind: {litter.relative_to(space.root)}"
