"""One option name for one thing: every option of every command, and what it names."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from docs.pages.commands import commands

# These say in each command what exactly they do there; all others have one text wherever they stand.
IN_OWN_WORDS = {
    "--against", "--all", "--branch", "--candidate", "--check", "--client", "--env", "--force", "--from-openapi", "--json",
    "--mode", "--name", "--port", "--public-url", "--server", "--timeout",
}  # fmt: skip


def every_option() -> dict[str, list[tuple[str, Any]]]:
    """The options of all commands by name: the commands that have it, with what the parser knows of it."""
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)
    for path, command in commands():
        for option in command.params:
            if option.param_type_name == "option" and option.name != "help":
                found[next(name for name in option.opts if name.startswith("--"))].append((path, option))
    return found


def test_an_option_reads_the_same_in_every_command():
    for name, found in every_option().items():
        assert len({(option.metavar, tuple(option.opts)) for _, option in found}) == 1, (name, found)
        assert name in IN_OWN_WORDS or len({option.help for _, option in found}) == 1, (name, found)
    assert [name for name in IN_OWN_WORDS if len({option.help for _, option in every_option()[name]}) == 1] == []
