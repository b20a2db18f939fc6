"""Earlier spellings of commands and options: they keep working, with a note that names the present one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

__all__ = ["COMMANDS", "OPTIONS", "present_spelling"]

_CHANNEL: Final = {"--to": "--channel"}

COMMANDS: Final[Mapping[str, str]] = {"pipeline release": "pipeline unhold"}
OPTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "pipeline promote": _CHANNEL,
    "pipeline approve": _CHANNEL,
    "pipeline reject": _CHANNEL,
    "pipeline history": {"--limit": "--show"},
    "pipeline run": {"--no-force": ""},
    "pipeline verify": {"--mend": "--repair"},
    "publish": {"--to": "--target"},
    "new": {"--no-strict": ""},
    "waive": {"--until": "--expires"},
    "serve": {"--servers": "--server", "--url": "--public-url"},
    "ci matrix": {"--github": "--provider=github", "--gitlab": "--provider=gitlab"},
    "release check": {"--on": "--branch", "--github": "--provider=github"},
}


def present_spelling(
    words: Sequence[str], with_value: Callable[[Sequence[str]], Set[str]] = lambda _: frozenset()
) -> tuple[list[str], list[str]]:
    """Return a command line as it is spelled now, and a note for each earlier spelling that it had.

    `with_value` gives the options of a command line's command that take a value: the word behind such an option is left alone.
    """
    typed, notes = list(words), []
    for earlier, now in COMMANDS.items():
        if typed[:2] == earlier.split():
            typed[:2] = now.split()
            notes.append(f"`{earlier}` is spelled `{now}` now")
    names = next((names for command, names in OPTIONS.items() if typed[: len(command.split())] == command.split()), {})
    end = typed.index("--") if "--" in typed else len(typed)
    if not any(word.partition("=")[0] in names for word in typed[:end]):
        return typed, notes
    before, respelled, valued = "", list[str](), with_value(typed)
    for word in typed[:end]:
        option, equals, value = word.partition("=")
        now = option if before in valued else names.get(option, option)
        before = "" if before in valued else names.get(word, word)
        if now != option:
            notes.append(
                f"{option} is spelled {now} now" if now else f"{option} is the default, and no option any more"
            )
        if now or not option:
            respelled.append(now + equals + value)
    return respelled + typed[end:], notes
