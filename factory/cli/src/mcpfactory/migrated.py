"""What `migrate` and `adopt --as runtime` print of a migration and of a comparison, and which tools they may call."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcpfactory import output

if TYPE_CHECKING:
    from mcpfactory_pipeline.migration import CallPermission, Likeness, Migration

__all__ = ["call_permission", "print_diff", "print_likeness", "print_migration"]

_STYLES: Final = {"+": "good", "-": "bad", "@": "dim"}
_KINDS: Final = ("contract", "calls", "more", "wording", "stricter", "unsteady", "unshown")


def call_permission(calls: Path | None, *, all_tools: bool) -> CallPermission:
    """Return which tools may be called.

    Raises:
        ExamineError: for a file of calls that is none.
    """
    from mcpfactory_pipeline.checks.calls import read_examples
    from mcpfactory_pipeline.migration import CallPermission

    return CallPermission(tuple(read_examples(calls)) if calls else (), all_tools)


def print_diff(before: str, after: str, path: str) -> None:
    """Print the lines that change."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    for line in lines:
        output.line(output.styled(line, _STYLES[line[0]]) if line[:1] in _STYLES else line)


def print_migration(found: Migration, path: str) -> None:
    """Print the diff of a file, and by line what is left to do by hand or left out."""
    print_diff(found.before, found.after, path)
    for title, steps in (("left to do by hand", found.left), ("left out", found.noted)):
        if steps:
            output.line(f"{title}:")
        for step in steps:
            output.line(f"  {path}:{step.line}  {step.what}: {step.says}")


def print_likeness(alike: Likeness) -> None:
    """Print how alike two versions are: what was seen, and what nobody looked at."""
    output.line(f"{alike.made} calls compared: {alike.verdict}")
    for name in _KINDS:
        for text in getattr(alike, name):
            output.line(f"  {name}: {text}")
    if alike.unshown:
        output.note("hint: --calls FILE has calls of tools that change something; --all-tools calls every tool")
