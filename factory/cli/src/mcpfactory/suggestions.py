"""What `new` and `inspect` say about an API whose tools are too much for a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpfactory import output

__all__ = ["show"]


def show(groups: Sequence[dict[str, Any]], tokens: int, search: str) -> None:
    """Print groups with what they cost and how to select them, and how to have search mode; nothing without groups."""
    if not groups:
        return
    output.line()
    output.line(f"{tokens:,} tokens are much for a model to read before it begins. Select groups for `mcpfactory new`:")
    output.line()
    rows = [(group["name"], str(group["tools"]), str(group["tokens"]), group["flag"]) for group in groups]
    output.table(("GROUP", "TOOLS", "TOKENS", "TO SELECT IT"), rows)
    output.note(f"hint: to keep all of it within some 500 tokens, {search}")
