"""Telling people what waits for them: each thing once, to the receivers that the workspace names."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.notices import make_notifier
from mcpfactory_pipeline.notices.settings import read_events
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.views.decided import decided_channel, decision_path
from mcpfactory_pipeline.views.inbox import InboxItem, read_inbox
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["tell_waiting", "waiting_id"]

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
