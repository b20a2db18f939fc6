"""Notify people once of each new inbox item, with links and affected clients."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.delivery.clients.config_files import UserPaths
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.reporting import make_notifier
from mcpfactory_pipeline.views.inbox import InboxItem, read_inbox
from mcpfactory_pipeline.workspace.workspace import Workspace


def add_affected_clients(
    items: Iterable[InboxItem], workspace: Workspace, home: UserPaths, project: Path
) -> list[InboxItem]:
    """Add the affected clients and their uninstall commands to items about a changed server at a URL."""
    listed = list(items)
    if not any(_about_url(item) for item in listed):
        return listed
    from mcpfactory_pipeline.delivery.clients.installed_servers import installed  # noqa: PLC0415 - loads YAML

    rows = [row for row in installed(workspace, home, project) if row.state == "drifted"]
    found = []
    for item in listed:
        has = [row for row in rows if _about_url(item) and row.server == item.server]
        words = [f"{row.client} has it ({row.uninstall_command})" for row in has]
        found.append(replace(item, message="; ".join([item.message, *words])))
    return found


def _about_url(item: InboxItem) -> bool:
    return (item.kind, item.about) == ("drift", "offers")


# Kinds of items that can be about a candidate for a channel.
_KINDS: Final = frozenset({"approval", "ready", "gate", "problem"})


def decision_page_channel(item: InboxItem, channels: Collection[str]) -> str:
    """Return the channel whose decision page shows an item's facts; "" without such a page."""
    decides = item.kind in _KINDS and item.about in channels and " --stage " not in item.command
    return item.about if decides else ""


def decision_path(server: str, about: str, channel: str) -> str:
    """Return the dashboard path for a decision; "" for a deleted server."""
    if about == "gone":
        return ""
    return f"servers/{server}/" + (f"decide/{channel}/" if channel else "")


_SENT: Final = "told.json"  # file in pipeline/artifacts with the IDs of the items that each receiver got


def inbox_item_id(workspace: str, item: InboxItem) -> str:
    """Return the ID of a pending item. The ID stays constant while the item is pending."""
    # Without a start time, the message identifies an item. The message of a waiver changes daily, so it is ignored.
    key = item.since or ("" if item.kind == "waiver" else item.message)
    return uuid.uuid5(
        uuid.NAMESPACE_URL, json.dumps(["mcpfactory", workspace, item.server, item.kind, item.about, key])
    ).urn


def notify_inbox_items(
    workspace: Workspace, names: Sequence[str] | None = None, *, stages: Sequence[Stage] | None = None
) -> list[InboxItem]:
    """Send new pending items to the receivers of `[pipeline.events]`, and return these items.

    Failed notifications are repeated at the next call.

    Raises:
        ConfigError: the settings are invalid.
        NotFoundError: the server is unknown.
    """
    if not workspace.settings.pipeline.events.wants("waits") or (notifier := make_notifier(workspace)) is None:
        return []
    file, wanting = workspace.artifacts / _SENT, notifier.receivers_of("waits")
    sent = _read(file, wanting)
    ids = {inbox_item_id(workspace.name, item): item for item in read_inbox(workspace, names, stages=stages)}
    channels = {channel.name for channel in read_channels(workspace)}
    for name, item in ids.items():
        about = {"server": item.server, "kind": item.kind, "about": item.about, "since": item.since}
        words = {
            "message": item.message,
            "command": item.command,
            "link": notifier.link(quote(decision_path(item.server, item.about, decision_page_channel(item, channels)))),
        }
        known = [receiver for receiver in wanting if name in sent[receiver]]
        notifier.notify({"event": "waits", "id": name, **about, **words}, but=known)
    missed = notifier.close()
    delivered = {one: set(ids) - missed.get(one, frozenset()) for one in wanting}
    fresh = {name for one in wanting for name in delivered[one] - sent[one]}
    # Forget a resolved item, so that it is sent again if it returns.
    now = {one: {name for name in sent[one] if names or name in ids} | delivered[one] for one in wanting}
    if now != sent:
        # If the file cannot be written, for example because the disk is full, the items are sent again.
        with suppress(OSError):
            replace_file(file, json.dumps({receiver: sorted(some) for receiver, some in now.items()}).encode())
    return [item for name, item in ids.items() if name in fresh]


def _read(file: Path, receivers: Iterable[str]) -> dict[str, set[str]]:
    """Return the IDs of the items that each receiver got; empty if the file is unreadable."""
    try:
        found: Any = json.loads(file.read_bytes())
        return {one: {str(name) for name in found.get(one, ())} for one in receivers}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {one: set() for one in receivers}
