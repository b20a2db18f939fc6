"""What `new` says while it works: steps in a pipe, one line on a terminal, nothing when it is quiet."""

from __future__ import annotations

import io
import sys

import pytest

from mcpfactory import output


@pytest.fixture
def shell(cli, workspace_cache, monkeypatch):
    """A workspace, and nobody is patient."""
    workspace_cache.copy(cli.folder / "ws", ("--factory", "index"))
    monkeypatch.setattr(output, "_LONG", 0.0)
    return cli.at(cli.folder / "ws")


def test_a_pipe_gets_a_line_for_each_step(shell, document):
    done = shell("new", "--from-openapi", document, "--name", "shop")
    steps = [line for line in done.err.splitlines() if line.endswith("…")]
    assert steps[0] == f"reading {document} …"
    assert "naming and describing 11 operations …" in steps
    assert steps[-1].startswith("writing ")
    assert not any(line.endswith(" …") for line in done.out.splitlines())


def test_nobody_is_told_where_nobody_wants_it(shell, document):
    done = shell("new", "--from-openapi", document, "--name", "shop", "--json")
    assert (done.code, "…" in done.err) == (0, False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_one_line_that_goes_away(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "_PATIENCE", 0.0)
    monkeypatch.setattr(output, "_TICK", 0.001)
    for name in ("CI", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with output.progress(quiet=False) as tell:
        tell("reading \x1b[2Ja.yaml")
        while "reading" not in screen.getvalue():
            pass
    shown = screen.getvalue()
    assert "\n" not in shown
    assert "\x1b[2J" not in shown  # the name comes from somebody else
    assert shown.endswith("\r\x1b[K")
