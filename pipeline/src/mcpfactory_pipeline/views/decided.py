"""Where the dashboard has what speaks for and against a thing that waits. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from mcpfactory_pipeline.views.inbox import InboxItem

__all__ = ["decided_channel", "decision_path"]

_KINDS: Final = frozenset(
    {"approval", "ready", "gate", "problem"}
)  # of things that may be about a candidate for a channel


def decided_channel(item: InboxItem, channels: Collection[str]) -> str:
    """Return the channel whose page of decisions has what speaks for and against a thing that waits; "" for none."""
    decides = item.kind in _KINDS and item.about in channels and " --stage " not in item.command
    return item.about if decides else ""


def decision_path(server: str, about: str, channel: str) -> str:
    """Return the path of the dashboard where a thing is decided: the page of the decision, of the server, or the inbox where that is gone."""
    if about == "gone":
        return ""
    return f"servers/{server}/" + (f"decide/{channel}/" if channel else "")
