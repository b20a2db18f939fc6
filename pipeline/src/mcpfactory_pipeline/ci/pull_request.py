"""What a pull request may not bring: events of its own, and snapshots of histories. What was found is told by jobs, and what people decide is on the branch.

The one exception can be checked: approvals that are signed, for channels that ask for signed ones, by keys that the base lists too,
and whose signature stands in no other event.
A push to the branch brings decisions, for that is where people decide: about candidates that the commit before it knows. A candidate and
the decision about it do not come together, as they do where a pull request was merged that nobody looked at. Promotions of a push are
judged again (`pushed`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from mcpfactory_pipeline.base.git import git_output
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.ci.pushed import unpermitted
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.promotion.signatures import SIGNERS, event_fault
from mcpfactory_pipeline.state.against import brought, lost
from mcpfactory_pipeline.state.state import Event
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["RefusedHistory", "refusals"]

_DECISIONS: Final = frozenset({"approved", "promoted", "published"})
_HINTS: Final = {
    False: "a pull request brings no decisions and no results: git checkout {base} -- pipeline/history pipeline/state",
    True: "push what was built first, look at what CI says of it, then decide; or sign approvals. Nobody did? git revert to {base}",
}
_PROMOTED_HINT: Final = (
    "push changes of stages and channels first, then run mcpfactory pipeline promote; git revert what nobody did"
)


@dataclass(frozen=True, slots=True)
class RefusedHistory:
    """A history that a pull request changes: which, how, and what to do."""

    server: str
    message: str
    hint: str


def refusals(
    workspace: Workspace, base: str, *, pushed: bool = False, stages: Sequence[Stage] | None = None
) -> list[RefusedHistory]:
    """Return what a pull request for the commit `base` changes in histories and may not; what is checked out has its changes.

    `pushed`: they are those of a push, and `base` is the commit before it. `stages` take the place of those of the workspace.

    Raises:
        NotFoundError: there is no such commit.
        ConfigError: the channels cannot be read.
    """
    found = [
        RefusedHistory(one["server"], f"{one['message']}: {one['changes'][0]}", one["hint"])
        for one in lost(workspace, base)
    ]
    found += [_refused_lock(place) for place in _tracked_locks(workspace)]
    signed = {channel.name for channel in read_channels(workspace) if channel.signed}
    if not _same_signers(workspace, base):
        signed = set()  # who brings a key could sign with it in anybody's name
    store = Store(workspace)
    for server, events in brought(workspace, base).items():
        history = store.history(server)
        uses = Counter(event.get("nonce") for event in history)
        own = [one for one in events if uses[one.get("nonce")] > 1 or not _is_signed(workspace, server, one, signed)]
        if pushed:
            found += [
                RefusedHistory(server, f"{store.where(server, 'history')}: {words}", _PROMOTED_HINT)
                for words in unpermitted(workspace, base, server, history, events, stages=stages)
            ]
            own = _about_new_candidates(history, own)
        if own:
            where = store.where(server, "history")
            words = ", ".join(dict.fromkeys(f"{event.get('event')} by {event.get('actor')}" for event in own[:3]))
            message = f"{where} has {pluralize(len(own), 'event')} that {base} does not have: {words}"
            hint = _HINTS[pushed].format(base=base)
            found.append(RefusedHistory(server, message, hint))
    return found


def _about_new_candidates(history: Sequence[Event], events: Sequence[Event]) -> list[Event]:
    """Return the decisions among events that a push brings about candidates that come with it."""
    brought = {event["id"] for event in events}
    known = {event["candidate"] for event in history if event.get("built") and event["id"] not in brought}
    return [event for event in events if event["event"] in _DECISIONS and event.get("candidate") not in {None, *known}]


def _tracked_locks(workspace: Workspace) -> list[str]:
    """Return the files of pipeline/locks that the repository has: with them comes what others would read in place of histories."""
    listed = git_output(
        workspace.root, "ls-files", "-z", "--", Store(workspace).locks.relative_to(workspace.root).as_posix()
    )
    return [place for place in (listed or b"").decode(errors="replace").split("\0") if place]


def _refused_lock(place: str) -> RefusedHistory:
    name = PurePosixPath(place).name.partition(".")[0]
    return RefusedHistory(name, f"{place} is tracked, and is of one machine alone", f"git rm --cached -- {place}")


def _same_signers(workspace: Workspace, base: str) -> bool:
    """Whether the public keys are those of the commit."""
    there = git_output(workspace.root, "show", f"{base}:./{SIGNERS}")
    return there is not None and hash_bytes(there) == hash_file(workspace.root / SIGNERS)


def _is_signed(workspace: Workspace, server: str, event: Event, channels: set[str]) -> bool:
    if event.get("event") != "approved" or event.get("channel") not in channels:
        return False
    return not event_fault(workspace, server, event)
