"""Notify people of new inbox items once, with links and the clients that are affected."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.delivery.clients.files import Home
from mcpfactory_pipeline.delivery.clients.installed import installed
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.reporting import make_notifier
from mcpfactory_pipeline.reporting.settings import read_events
from mcpfactory_pipeline.views.inbox import InboxItem, read_inbox
from mcpfactory_pipeline.workspace.workspace import Workspace


def name_holders(items: Iterable[InboxItem], workspace: Workspace, home: Home, project: Path) -> list[InboxItem]:
    """Return what waits; what is about another offer at a URL also names the clients that have it, and what takes it out there.

    The clients' files are read only where there is such an item.
    """
    listed = list(items)
    if not any(_about_url(item) for item in listed):
        return listed
    rows = [row for row in installed(workspace, home, project) if row.state == "drifted"]
    found = []
    for item in listed:
        has = [row for row in rows if _about_url(item) and row.server == item.server]
        words = [
            f"{row.client} has it (mcpfactory uninstall {row.name} --client {row.client}{' --project' * (row.scope == 'project')})"
            for row in has
        ]
        found.append(replace(item, message="; ".join([item.message, *words])))
    return found


def _about_url(item: InboxItem) -> bool:
    return (item.kind, item.about) == ("drift", "offers")


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


_TOLD: Final = "told.json"  # below pipeline/artifacts: what each receiver was told, by id


class _Waits(Protocol):
    """What an id is made of: a thing of the inbox, as its reader or its page has it."""

    @property
    def server(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def since(self) -> str | None: ...


def waiting_id(workspace: str, item: _Waits) -> str:
    """Return a name for a thing that waits: the same as long as it does, whatever is said of it meanwhile."""
    # What nobody knows the beginning of is named by what it says; the words of a waiver that ends count its days.
    key = item.since or ("" if item.kind == "waiver" else item.message)
    return uuid.uuid5(
        uuid.NAMESPACE_URL, json.dumps(["mcpfactory", workspace, item.server, item.kind, item.about, key])
    ).urn


def tell_waiting(
    workspace: Workspace, names: Sequence[str] | None = None, *, stages: Sequence[Stage] | None = None
) -> list[InboxItem]:
    """Tell the receivers of `[pipeline.events]` what waits and was not told yet, at all servers or those named; return that.

    What could not be delivered counts as not told, and is tried again the next time. Without a receiver nothing is read.

    Raises:
        ConfigError: for settings that cannot be used.
        NotFoundError: for an unknown server.
    """
    if not read_events(workspace).wants("waits") or (notifier := make_notifier(workspace)) is None:
        return []
    file, wanting = workspace.artifacts / _TOLD, notifier.who_wants("waits")
    told = _read(file, wanting)
    ids = {waiting_id(workspace.name, item): item for item in read_inbox(workspace, names, stages=stages)}
    channels = {channel.name for channel in read_channels(workspace)}
    for name, item in ids.items():
        about = {"server": item.server, "kind": item.kind, "about": item.about, "since": item.since}
        words = {
            "message": item.message,
            "command": item.command,
            "link": notifier.link(quote(decision_path(item.server, item.about, decided_channel(item, channels)))),
        }
        known = [receiver for receiver in wanting if name in told[receiver]]
        notifier.notify({"event": "waits", "id": name, **about, **words}, but=known)
    missed = notifier.close()
    heard = {one: set(ids) - missed.get(one, frozenset()) for one in wanting}
    fresh = {name for one in wanting for name in heard[one] - told[one]}
    # What waits no more is new when it comes again.
    now = {one: {name for name in told[one] if names or name in ids} | heard[one] for one in wanting}
    if now != told:
        with suppress(OSError):  # a full disk, say: it is told once more
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, json.dumps({receiver: sorted(some) for receiver, some in now.items()}).encode())
    return [item for name, item in ids.items() if name in fresh]


def _read(file: Path, receivers: Iterable[str]) -> dict[str, set[str]]:
    """Return what each receiver was told, by id; nothing from a file that is none of ours."""
    try:
        found: Any = json.loads(file.read_bytes())
        return {one: {str(name) for name in found.get(one, ())} for one in receivers}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return {one: set() for one in receivers}
