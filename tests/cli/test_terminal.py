"""What people and programs read: JSON everywhere, tables that fit, next commands that can be typed, nothing that moves the cursor."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
import typer

from docs.pages.commands import NO_JSON, commands
from mcpfactory.main import app
from mcpfactory_pipeline.base.text import printable, table_lines, terminal_width, truncate, wrap
from mcpfactory_pipeline.views.inbox import InboxItem, next_commands
from tests.cli.conftest import InProcessCli
from tests.cli.recorded_workspaces import finish, make, stage


def parses(command: str) -> bool:
    """Whether the parser takes a command as it stands; nothing is run."""
    name, *words = shlex.split(command)
    parser = typer.main.get_command(app)
    while True:
        with parser.make_context(name, list(words), resilient_parsing=False) as context:
            rest = [*context._protected_args, *context.args] if hasattr(parser, "commands") else []
            if not rest:
                return True
            name, parser, words = parser.resolve_command(context, rest)


def test_every_command_has_json_or_says_why_not() -> None:
    lack = {path for path, command in commands() if not any("--json" in param.opts for param in command.params)}
    assert lack == set(NO_JSON)
    assert sum(1 for _ in commands()) > 30


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> InProcessCli:
    """Four servers: one waits for approval, one failed, one has a broken state, one never ran."""
    space = make(tmp_path_factory.mktemp("terminal") / "ws", "books", "notes", "torn", "fresh")
    stage(space, "books", "one")
    finish(space, "notes", "generate", "failed", message="the document \x1b[2Jcannot\r be used")
    finish(space, "torn", "generate")
    (space.pipeline / "state/torn.json").write_text("[]")
    log = space.artifacts / "notes/logs/generate.log"
    log.parent.mkdir(parents=True)
    log.write_text("1 failed\n")
    return InProcessCli(space.root)


# Commands that answer without doing anything; those that work for a while have a test of their own with --json.
ANSWERS = (
    "inspect", "inbox", "pipeline plan books", "pipeline status", "pipeline history books", "pipeline verify", "pipeline restore",
    "pipeline prune --dry-run", "pipeline history notes generate", "pipeline promote --due --channel production --dry-run",
    "pipeline approve books --dry-run", "install", "doctor",
)  # fmt: skip


@pytest.mark.parametrize("command", ANSWERS)
def test_with_json_stdout_is_one_document(shell: InProcessCli, command: str, monkeypatch, capsys) -> None:
    monkeypatch.chdir(shell.folder)
    app([*command.split(), "--json"], standalone_mode=False)
    json.loads(capsys.readouterr().out)


def test_text_from_elsewhere_moves_no_cursor(shell: InProcessCli) -> None:
    told = shell("inbox")
    assert "the document \\x1b[2Jcannot\\x0d be used" in told.out
    assert "\x1b" not in told.out + shell("pipeline", "history", "notes").out


def test_what_comes_next_can_be_typed(shell: InProcessCli, tmp_path: Path) -> None:
    _, _, rest = shell().out.partition("\nnext:\n")
    typed = [line.strip() for line in rest.splitlines()]
    assert len(typed) == 3
    assert typed[0] == "mcpfactory pipeline verify --repair torn"
    assert f"hint: {typed[0]} shows" in shell("inbox").out, "the command is the one that the hint names"
    assert all(map(parses, typed))
    copy = InProcessCli(shutil.copytree(shell.folder, tmp_path / "copy", symlinks=True))
    assert "torn.json" in copy("inbox").out
    done = copy(*typed[0].split()[1:])
    assert (done.code, "torn" in done.out) == (0, True), done.err
    assert "torn.json" not in copy("inbox").out  # it was what was wrong


def test_the_command_of_every_item_can_be_typed_where_it_is_next(shell: InProcessCli) -> None:
    items = [
        InboxItem(item["kind"], *(item[key] for key in ("server", "about", "message", "command")))
        for item in shell("inbox", "--json").data
    ]
    assert {item.kind for item in items} >= {"problem", "failed", "approval"}
    assert all(map(parses, next_commands(items, 99)))  # fmt: skip
    with pytest.raises(Exception, match="No such option"):
        parses("mcpfactory inbox --frobnicate")


def test_a_command_line_that_is_wrong_is_told_with_place_and_hint(shell: InProcessCli) -> None:
    done = shell("pipeline", "statsu")
    assert done.code == 2
    error, hint = done.err.splitlines()
    assert error == "error: mcpfactory pipeline: No such command 'statsu'. Did you mean 'status'?"
    assert hint.startswith("hint: mcpfactory pipeline plan|run|refresh|status|")
    assert shell("inspect", "--frobnicate").err.startswith("error: mcpfactory inspect: No such option")
    assert "Decide:" in shell("pipeline").err


ROWS = [
    ("SERVER", "WHY", "CHANNELS"),
    ("a-name-without-any-end-" * 3, "because " * 30, "staging 1.0"),
    ("本の店", "日本語のとても長い説明文です" * 6, "-"),
]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_fold_into_a_terminal_and_lose_nothing(width: int) -> None:
    lines = table_lines(ROWS, width)
    assert all(terminal_width(line) <= width for row in lines for line in row)
    for row, cells in zip(lines, ROWS, strict=True):
        kept = "".join("".join(row).split())
        assert len(kept) == sum(len("".join(cell.split())) for cell in cells)


def test_text_is_cut_and_wrapped_by_the_room_it_takes() -> None:
    assert (terminal_width("本"), terminal_width("e\u0301"), terminal_width("\x1b[2mab\x1b[0m")) == (2, 1, 2)
    assert truncate("日本語", 5) == "日本…"
    assert truncate("short", 5) == "short"
    assert wrap("two words", 4) == ["two", "word", "s"]
    assert wrap("", 4) == [""]
    assert printable("a\x1b[31mb\x1b[0m\x1b]0;title\x07\r\n") == "ab\\x1b]0;title\\x07\n"
    assert printable("\x1b[31mb\x1b[2K", color=True) == "\x1b[31mb\\x1b[2K"
    assert printable("a\nb\tc") == "a\nb\tc"
    assert printable("\u202etxt") == "\\u202etxt"
