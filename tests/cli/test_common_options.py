"""What every command shares: help, version, errors, exit codes."""

from __future__ import annotations

import pytest

from mcpfactory.main import COMMANDS


def test_help_describes_everyday_commands_and_names_advanced_ones(empty):
    done = empty("--help")
    everyday, _, rest = done.out.partition("\n\nAdvanced:\n  ")
    described = [name for name, one in COMMANDS.items() if f"  {name.ljust(9)}  {one.summary}\n" in f"{everyday}\n"]
    assert (done.code, [*described, *rest.partition("\n")[0].split(", ")]) == (0, list(COMMANDS))


def test_help_in_a_pipe_has_whole_lines(empty):
    listed = {line.split()[0]: line for line in empty("--help").out.splitlines() if line.startswith("  ")}
    assert listed["update"].endswith("template changed")
    assert [line for line in listed.values() if "..." in line] == []
    assert any("vendored" in line and "default: vendored]" in line for line in empty("init", "--help").out.splitlines())


def test_the_version_is_one_line(empty):
    done = empty("--version")
    assert (done.code, done.out.split()[0], done.err) == (0, "mcpfactory", "")


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",),
        ("inspect", "x"),
        ("run", "x"),
        ("call", "x", "y"),
        ("new", "--template", "minimal"),
        ("pipeline", "plan"),
        ("pipeline", "status"),
        ("dashboard", "--export", "site"),
    ],
)
def test_outside_a_workspace_commands_say_so_with_a_hint(empty, command):
    done = empty(*command)
    assert (done.code, done.out) == (3, "")
    assert "error:" in done.err
    assert "hint:" in done.err


def test_no_colour_reaches_a_pipe(shop):
    assert "\x1b" not in shop("inspect").out + shop("doctor").out
