"""What several commands print about a server: where its API lives, what changes for callers, groups of tools, problems."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mcpfactory import output

__all__ = ["print_addresses", "print_changes", "print_groups", "print_overview", "print_problems"]

_STYLES: Final = {"breaking": "bad", "additive": "good", "cosmetic": "dim"}
_MAX_COSMETIC: Final = 8
_MAX_PROBLEMS: Final = 12


def print_addresses(
    server: str, address: Mapping[str, Any], environ: Mapping[str, str] | None = None, setting: str = "export"
) -> None:
    """Note on stderr each address of an API that is private, cannot be called, or stays where it is although the root was moved.

    Args:
        server: its name.
        address: of its report; empty for servers that are not made from a document, or by an older mcpfactory.
        environ: what the server will be started with; ours by default.
        setting: how variables are set there, for hints.
    """
    from mcpfactory_pipeline.workspace.upstream import api_addresses

    if not address:
        return
    for one in api_addresses(address, os.environ if environ is None else environ, server=server, setting=setting):
        if one.hint:
            output.warning(one.message)
            output.note(f"  hint: {one.hint}")
        elif one.nature:
            output.note(f"note: {one.message}")


def print_changes(changes: Any) -> None:
    """Print what changes for callers, breaking changes first, the cosmetic ones cut short."""
    if not changes:
        output.line("nothing changes for callers")
        return
    for kind, style in _STYLES.items():
        found = [change for change in changes if change.kind == kind]
        shown = found[:_MAX_COSMETIC] if kind == "cosmetic" else found
        if found:
            output.line(output.styled(f"{kind}: {len(found)}", style))
        for change in shown:
            output.line(f"  {change.code}  {change.message}")
        if len(shown) < len(found):
            output.line(f"  … and {len(found) - len(shown)} more; --json prints all of them")


def print_groups(groups: Sequence[dict[str, Any]], tokens: int, search: str) -> None:
    """Print groups of tools with what they cost and how to select them, and how to have search mode; nothing without groups."""
    if not groups:
        return
    output.line()
    output.line(f"{tokens:,} tokens are much for a model to read before it begins. Select groups for `mcpfactory new`:")
    output.line()
    rows = [(group["name"], str(group["tools"]), str(group["tokens"]), group["flag"]) for group in groups]
    output.table(("GROUP", "TOOLS", "TOKENS", "TO SELECT IT"), rows)
    output.note(f"hint: to keep all of it within some 500 tokens, {search}")


def print_overview(view: Any) -> None:
    """Print on one screen what a server has, what a model finds hard, and what is worth deciding; nothing without a view."""
    from mcpfactory_codegen.servers.overview import overview_lines

    for text in overview_lines(view) if view is not None else ():
        output.line(text)


def print_problems(found: Sequence[Any]) -> None:
    """Print the problems of an API document on stderr, worst first."""
    ordered = sorted(found, key=lambda problem: problem.level != "error")
    for problem in ordered[:_MAX_PROBLEMS]:
        level = output.styled(problem.level, "bad" if problem.level == "error" else "warn", err=True)
        output.note(f"{level} {problem.code}: {problem.message}")
        at = f"{problem.pointer or '/'} (line {problem.line})" if problem.line else problem.pointer or "/"
        output.note(f"  at {at}" + (f"\n  hint: {problem.hint}" if problem.hint else ""))
    if len(ordered) > _MAX_PROBLEMS:
        output.note(f"… and {len(ordered) - _MAX_PROBLEMS} more; hint: --json prints all of them")
