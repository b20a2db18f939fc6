"""`pipeline run --all` in a terminal of 80×24, in a pipe, and with NO_COLOR: as it is captured, not as it is meant."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from mcpfactory.output import supports_styling
from mcpfactory_pipeline.base.events import (
    RunFinished,
    RunStarted,
    ServerUnusable,
    StageFinished,
    StageSkipped,
    StageStarted,
)
from mcpfactory_pipeline.base.text import terminal_width
from mcpfactory_pipeline.reporting.live_reporter import RunTable
from tests.cli.recorded_workspaces import make
from tests.cli.terminal_capture import COLUMNS, run, screens

RUN = ("pipeline", "run", "--until", "generate")
LONG = "a_server_with_a_name_that_is_longer_than_people_like_to_read_in_a_terminal"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three servers: one passes, one with a very long name as well, and one fails at once."""
    space = make(tmp_path_factory.mktemp("live") / "ws", "books", "torn", LONG)
    torn = space.root / "servers/torn"
    with (torn / "mcpfactory.toml").open("a") as file:
        file.write('[api]\ndocument = "openapi.yaml"\n')
    (torn / "openapi.yaml").write_text("no: document\n")
    return space.root


@pytest.mark.parametrize(
    ("terminal", "environ"),
    [(True, {}), (False, {})],
    ids=["terminal", "pipe"],
)
def test_a_run_fits_where_it_is_read_and_says_how_each_server_ended(
    folder: Path, terminal: bool, environ: dict[str, str]
) -> None:
    done = run((*RUN, "--force"), folder, terminal=terminal, **environ)
    assert done.code == 1
    *before, end = screens(done.text.replace("\r\n", "\n"))
    if terminal and not environ:
        assert "\x1b[" in done.text
        assert any(" now 0:0" in line for screen in before for line in screen)
        rows = {line.split()[0]: line.split()[-1] for line in end if line}
        assert rows["books"] == "ok"
        assert rows["torn"] in {"FAILED", "ERROR"}
        assert next(mark for name, mark in rows.items() if name.endswith("…")) == "ok"
    else:
        assert "\x1b" not in done.text
        text = " ".join("".join(done.text).split())
        assert "books: generate passed" in text
        assert f"{LONG}: generate passed" in text
        assert "torn: generate failed" in text or "torn: generate errored" in text
    assert any(line.startswith("3 servers: 2 passed, 1 ") for line in end)
    if terminal:
        assert [line for screen in (*before, end) for line in screen if terminal_width(line) > COLUMNS] == []


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variable", "value", "read"),
    [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False), ("NO_COLOR", "", True),
     ("CI", "true", False), ("CI", "false", True)],
)  # fmt: skip
def test_colour_and_movement_are_for_terminals_that_people_read(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, read: bool
) -> None:
    for name in ("NO_COLOR", "CI", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    assert supports_styling(Terminal()) is read
    assert not supports_styling(io.StringIO())


class Clock:
    """A clock that goes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def table(servers: int, stages: tuple[str, ...], clock: Clock) -> RunTable:
    found = RunTable(clock)
    found.update(RunStarted(tuple(f"server-{number:03}" for number in range(servers)), stages))
    return found


def current(shown: RunTable, width: int = 80, height: int = 24) -> list[str]:
    return drawn(shown.current(width, height), width)


def final(shown: RunTable, width: int = 80) -> list[str]:
    return drawn(shown.final(width), width)


def drawn(picture: RenderableType, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as text:
        console.print(picture)
    return [line.rstrip() for line in text.get().splitlines()]


def test_of_two_hundred_servers_those_at_work_and_those_that_failed_are_on_the_screen() -> None:
    clock = Clock()
    shown = table(200, ("build", "test"), clock)
    for number in range(60):
        shown.update(StageSkipped(f"server-{number:03}", "build", "up-to-date"))
    shown.update(StageFinished("server-003", "test", "failed", "no", 1.0))
    shown.update(StageStarted("server-150", "build", ("never run",)))
    clock.now = 75
    lines = current(shown)
    assert len(lines) <= 23
    assert lines[1].split() == ["server-150", "now", "1:15", "·"]
    assert lines[2].split() == ["server-003", "up", "to", "date", "FAILED"]
    assert lines[-2] == "… and 180 servers more"
    assert lines[-1] == "61 of 400 steps, 1 at work, 1 failed; 1:15 so far"
    last = final(shown)
    assert len(last) <= 102
    assert any(line.startswith("server-003") for line in last)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_however_many_stages_there_are_no_line_is_wider_than_the_terminal(width: int) -> None:
    shown = table(3, tuple(f"stage-number-{number}" for number in range(9)), Clock())
    shown.update(StageStarted("server-001", "stage-number-4", ()))
    shown.update(StageFinished("server-002", "stage-number-0", "errored", "", 1.0))
    shown.update(ServerUnusable("server-000", "unreadable"))
    lines = current(shown, width) + final(shown, width)
    assert all(terminal_width(line) <= width for line in lines)
    if width == 80:
        assert "server-001  0/9    stage-number-4 now 0:00" in lines
    shown.update(RunFinished({}, 0, 0.0))  # nothing of it is about a server
