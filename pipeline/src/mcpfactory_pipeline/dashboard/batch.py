"""One decision about several candidates: each is checked by itself, all are confirmed at once. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.dashboard.actions import Action, ActionPage, next_action, values_of
from mcpfactory_pipeline.dashboard.inbox import InboxEntry

BATCHED: Final = ("approve", "promote", "reject")  # actions that can be done to several candidates at once
_MAX: Final = 60  # candidates at once: as many as the inbox shows on a page
_TOLD: Final = 5  # decisions that the next page names


@dataclass(frozen=True, slots=True)
class BatchChoice:
    """A candidate of a server for a channel, and the token of what its reader saw of it (`decisions.basis`)."""

    server: str
    channel: str
    candidate: str
    expect: str

    @property
    def mark(self) -> str:
        """The choice as the value of a field of a form; none of its parts has a space."""
        return " ".join((self.server, self.channel, self.candidate, self.expect))

    def values(self, action: Action, reason: str) -> dict[str, str]:
        """Return the values of the action at the server."""
        about = {"channel": self.channel, "candidate": self.candidate, "expect": self.expect}
        return values_of(action, {**about, "reason": reason})


@dataclass(frozen=True, slots=True)
class BatchPage:
    """One action on several servers. `items` are checked one by one; the permitted ones have a ticket each.

    `done` describes the finished ones. `marks` are the requested ones, as fields of the form.
    """

    workspace: str
    action: str
    title: str
    about: str
    reason: str
    reason_required: bool
    done: tuple[str, ...]
    items: tuple[ActionPage, ...]
    marks: tuple[str, ...]

    @property
    def ready(self) -> tuple[ActionPage, ...]:
        """Those that can be confirmed."""
        return tuple(item for item in self.items if item.ready)

    @property
    def noun(self) -> str:
        """Return the number of confirmable candidates as text, or the number of all if none is confirmable."""
        return pluralize(len(self.ready) or len(self.items), "candidate")

    def mark(self, item: ActionPage) -> str:
        """Return one of them as the value of a field of the form."""
        return _choice({**item.settled, "server": item.server}).mark


def needs_reason(action: Action) -> bool:
    """Return True if an action requires a reason."""
    return any(field.name == "reason" and field.required for field in action.fields)


def batch_page(
    workspace: str,
    action: Action,
    items: Sequence[ActionPage],
    choices: Sequence[BatchChoice] = (),
    *,
    reason: str = "",
    done: Sequence[str] = (),
) -> BatchPage:
    """Return the page of an action at several servers: of `items`, made from these `choices`."""
    return BatchPage(
        workspace=workspace,
        action=action.name,
        title=action.title,
        about=action.about,
        reason=reason,
        reason_required=needs_reason(action),
        done=tuple(done),
        items=tuple(items),
        marks=tuple(choice.mark for choice in choices),
    )


def mark_of(item: InboxEntry) -> str:
    """Return the form value of an inbox entry for a batch decision; "" if its next command is not such a decision."""
    action, values = next_action(item.command) or ("", {})
    if action not in BATCHED or not values.get("channel"):
        return ""
    return _choice({**values, "server": item.server, "expect": item.expect}).mark


def chosen(marks: Sequence[str]) -> list[BatchChoice]:
    """Return the choices that a form names, each once.

    Raises:
        ConfigError: for what names none, and for too many.
    """
    found = []
    for mark in dict.fromkeys(marks):
        parts = mark.split(" ")
        if len(parts) != len(BatchChoice.__slots__) or not (parts[0] and parts[1]):
            raise ConfigError(
                f"{mark[:60]!r} names no candidate", hint="server, channel, candidate and token, with a space between"
            )
        found.append(BatchChoice(*parts))
    _require_few(len(found))
    return found


def confirmed(given: Mapping[str, Any]) -> list[tuple[BatchChoice, str]]:
    """Return the choices that are confirmed, each with its ticket: `item-N` and `ticket-N` of a form, or `items` of a JSON object.

    Raises:
        ConfigError: for what names none.
    """
    items = given.get("items")
    if items is None:
        names = [name for name in given if name.startswith("item-")]
        choices = [chosen([str(given[name])])[0] for name in names]
        pairs = [(one, str(given.get(f"ticket-{name[5:]}", ""))) for one, name in zip(choices, names, strict=True)]
    elif isinstance(items, list) and all(isinstance(one, dict) and one.get("server") for one in items):
        pairs = [(_choice(one), str(one.get("ticket", ""))) for one in items]
    else:
        raise ConfigError("items is no list of objects with a server", hint="send the `settled` values of the check")
    _require_few(len(pairs))
    return pairs


def done_message(done: Sequence[str]) -> str:
    """Return a message about finished actions for the next page."""
    more = (f"{len(done) - _TOLD} more",) if len(done) > _TOLD else ()
    return "; ".join((*done[:_TOLD], *more))


def _choice(values: Mapping[str, Any]) -> BatchChoice:
    return BatchChoice(*(str(values.get(name) or "") for name in ("server", "channel", "candidate", "expect")))


def _require_few(number: int) -> None:
    if not 1 <= number <= _MAX:
        problem = f"{number} are too many for one decision" if number else "nothing is marked"
        raise ConfigError(problem, hint=f"mark 1 to {_MAX} things of the inbox")
