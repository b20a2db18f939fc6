"""The page of an action: what it needs to know, and what would happen. Every action is checked before it can be confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_pipeline.dashboard.actions import Action, Deed, Done, Field
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["ActionPage", "Input", "action_page", "values_of"]

_TEXT: Final = 500  # characters of one value


@dataclass(frozen=True, slots=True)
class Input:
    """One field of the form, with its value. `kind` is text, choice, date or flag; `values` are those to choose from."""

    name: str
    label: str
    about: str
    kind: str
    required: bool
    value: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ActionPage:
    """An action at a server. `ready` says that it can be confirmed: with exactly the values of `settled`, and the ticket, once.

    `happens` is what would happen, in words; `problem` why it cannot be done now, with a `hint`.
    """

    workspace: str
    server: str
    action: str
    title: str
    about: str
    inputs: tuple[Input, ...]
    ready: bool
    happens: tuple[str, ...]
    settled: Mapping[str, str]
    problem: str
    hint: str
    ticket: str


def values_of(action: Action, given: Mapping[str, object]) -> dict[str, str]:
    """Return what was given for the fields of an action, as text; what is no field is left out, and so is what is empty."""
    found = {}
    for one in action.fields:
        value = given.get(one.name)
        text = ("1" if value else "") if isinstance(value, bool) else str(value if value is not None else "").strip()
        if text and not (one.kind == "flag" and text.lower() in {"0", "false"}):
            found[one.name] = "1" if one.kind == "flag" else text[:_TEXT]
    return found


def action_page(
    workspace: Workspace, detail: ServerDetail, action: Action, values: Mapping[str, str], *, asked: bool
) -> ActionPage:
    """Return the page with these values; with all that are required, the action is checked. `asked`: say what is missing."""
    inputs = tuple(_input(workspace, detail, one, values) for one in action.fields)
    full = {one.name: one.value for one in inputs if one.value}
    missing = [one.label for one in inputs if one.required and not one.value]
    done, problem, hint = Done(""), "", ""
    if missing:
        problem = f"{missing[0]} is missing" if asked else ""
        if not next(one for one in inputs if one.label == missing[0]).values and missing[0] == "Channel":
            problem, hint = (
                f"there is no channel of {detail.facts.name} that this fits",
                "the server's page has its channels",
            )
    else:
        try:
            done = action.perform(Deed(workspace, detail.facts.name, full, dry_run=True))
        except PipelineError as error:
            problem, hint = str(error), error.hint
    ready = not (missing or problem)
    return ActionPage(
        workspace=workspace.name,
        server=detail.facts.name,
        action=action.name,
        title=action.title,
        about=action.about,
        inputs=inputs,
        ready=ready,
        happens=(done.says, *done.also) if ready else (),
        settled={**full, **done.settled} if ready else {},
        problem=problem,
        hint=hint,
        ticket="",
    )


def _input(workspace: Workspace, detail: ServerDetail, one: Field, values: Mapping[str, str]) -> Input:
    choices = one.values(workspace, detail)
    value = values.get(one.name, "")
    if one.kind == "choice" and not value and choices:
        value = choices[0]
    return Input(one.name, one.label, one.about, one.kind, one.required, value, choices)
