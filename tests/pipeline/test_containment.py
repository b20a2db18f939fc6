"""One server's broken file stops that server, in every command, and no other: it is named, with what to do about it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpfactory.main import main
from mcpfactory_pipeline.base.events import ServerUnusable
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from mcpfactory_pipeline.maintenance.workspace_setup import apply_setup, plan_workspace_setup
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.store import Store
from tests.pipeline.conftest import Recorder
from tests.pipeline.fake_stages import STAGES, add_server
from tests.pipeline.inprocess_executor import InProcessExecutor

BROKEN, SOUND = "books", "notes"


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A workspace whose two servers went through all stages."""
    space = apply_setup(plan_workspace_setup(tmp_path_factory.mktemp("origin") / "space"), git=False)
    for name in (BROKEN, SOUND):
        add_server(space.root, name)
    assert not run_pipeline(space, stages=STAGES, executor=InProcessExecutor(), jobs=1).errored
    return space


@pytest.fixture
def store(workspace, origin) -> Store:
    """The same in a workspace of the test's own."""
    shutil.copytree(origin.root, workspace.root, dirs_exist_ok=True)
    return Store(workspace)


def changed(**members: object) -> Callable[[Path], None]:
    """The second event of a history with other members; what is None is left out."""

    def change(file: Path) -> None:
        lines = file.read_text().splitlines()
        event = {**json.loads(lines[1]), **members}
        lines[1] = json.dumps({name: value for name, value in event.items() if value is not None})
        file.write_text("\n".join(lines) + "\n")

    return change


def first_line(data: bytes) -> Callable[[Path], None]:
    return lambda file: file.write_bytes(data + b"\n" + file.read_bytes()) and None


def member(*path: str, value: object) -> Callable[[Path], None]:
    """A state with another value somewhere."""

    def change(file: Path) -> None:
        content = place = json.loads(file.read_text())
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
        file.write_text(json.dumps(content, indent=2, sort_keys=True) + "\n")

    return change


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


DEEP = b"[" * 100_000
HISTORIES = {
    "no moment": changed(at=None),
    "a kind that a newer version has": changed(event="blessed"),
    "nested without end": first_line(b'{"event": ' + DEEP),
    "too long": first_line(b'{"event": "' + b"x" * 5000 + b'"}'),
    "not text": first_line(b"\xff\xfe\x00"),
    "a pipe": pipe,
}
STATES = {
    "a stage that is a list": member("stages", "build", value=[]),
    "nested without end": lambda file: file.write_bytes(DEEP) and None,
    "not text": lambda file: file.write_bytes(b"\xff\xfe\x00") and None,
    "a folder": folder,
    "a pipe": pipe,
}
COMMANDS = (
    "pipeline status", "inbox", "pipeline plan", "pipeline verify", "pipeline prune", "pipeline restore",
    "pipeline promote --due --channel production --dry-run", "pipeline verify --repair",
)  # fmt: skip
CASES = [("history", *case) for case in HISTORIES.items()] + [("state", *case) for case in STATES.items()]


def mcpfactory(command: str, monkeypatch, capsys) -> tuple[int, str]:
    monkeypatch.setattr("sys.argv", ["mcpfactory", *command.split()])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    return int(ended.value.code or 0), told.out + told.err


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}, {case[1]}")
def test_a_broken_file_stops_its_own_server_only(store, workspace, monkeypatch, capsys, case):
    kind, name, breaks = case
    monkeypatch.chdir(workspace.root)
    monkeypatch.setattr(history, "MAX_EVENT_BYTES", 4096)
    breaks(getattr(store, f"{kind}_file")(BROKEN))
    where = store.where(BROKEN, kind)
    for command in COMMANDS:
        code, told = mcpfactory(command, monkeypatch, capsys)
        assert code in {0, 1, 5}, f"{command} ended in {code}: {told}"
        if command == "pipeline verify":
            assert where in told
            assert ("update mcpfactory" in told) == (name == "a kind that a newer version has")
    recorder = Recorder()
    outcome = run_pipeline(
        workspace, stages=STAGES, executor=InProcessExecutor(), jobs=1, force=True, reporter=recorder
    )
    trouble = [f"{event.message} {event.hint}" for event in recorder.of(ServerUnusable)]
    assert outcome.servers[SOUND] == "passed"
    assert {row.name: "problem" in row.row for row in WorkspaceReader(workspace.root).workspace().servers}[
        SOUND
    ] is False
    if outcome.servers[BROKEN] == "errored":  # else --repair could write it anew from its history
        assert where in trouble[0]
    else:
        assert kind == "state"
