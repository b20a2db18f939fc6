"""What changes for callers, for people: the breaking changes first, the cosmetic ones cut short."""

from __future__ import annotations

from typing import Any, Final

from mcpfactory import output

__all__ = ["print_changes"]

_STYLES: Final = {"breaking": "bad", "additive": "good", "cosmetic": "dim"}
_MOST_COSMETIC: Final = 8


def print_changes(changes: Any) -> None:
    """Print the changes of `mcpfactory_codegen.servers.diff`; says so when there are none."""
    if not changes:
        output.line("nothing changes for callers")
        return
    for kind, style in _STYLES.items():
        found = [change for change in changes if change.kind == kind]
        shown = found[:_MOST_COSMETIC] if kind == "cosmetic" else found
        if found:
            output.line(output.styled(f"{kind}: {len(found)}", style))
        for change in shown:
            output.line(f"  {change.code}  {change.message}")
        if len(shown) < len(found):
            output.line(f"  … and {len(found) - len(shown)} more; --json prints all of them")
