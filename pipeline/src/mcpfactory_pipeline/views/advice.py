"""Dry runs of suggested commands: the function that would refuse a suggestion tries it, without writing."""

from __future__ import annotations

import argparse
import functools
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NoReturn

from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.base.ids import acting_as, actor
from mcpfactory_pipeline.decisions import decision, promote, stage_decision
from mcpfactory_pipeline.plan.policy import ChannelPolicy, find_channel, person_key
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.workspace import Workspace

_STEPS: Final = 4  # hints that are followed, one after another, for a suggestion that goes through
_REASON: Final = "…"  # placeholder for a reason that a person has to give
# Behind a command a verb with its object; a server may be called `lists`, and have options or nothing behind it.
_SAID: Final = re.compile(r"[,;]? (?:shows|makes|writes|says|names|lists|takes|then) (?!-).*", re.DOTALL)
_STRANGER: Final = "somebody"  # an actor who has decided nothing yet


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A command that acts on one server, with its options by name; an option that is not given is ""."""

    verb: str
    server: str
    options: Mapping[str, str]


class _Parser(argparse.ArgumentParser):
    """Parser that raises its messages instead of printing them."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


@functools.cache
def _parser() -> _Parser:
    parser = _Parser(add_help=False, allow_abbrev=False)
    for name in ("channel", "candidate", "stage", "reason", "sign-with", "server", "tool", "expires"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--force", action="store_const", const="1", default="")
    parser.add_argument("words", nargs="*")
    return parser


def read_suggestion(command: str) -> Suggestion | None:
    """Return the action and server of a command; None if it does not act on exactly one server."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    for verb in _TRIALS:
        parts = ["mcpfactory", *verb.split()]
        if words[: len(parts)] == parts:
            try:
                found = vars(_parser().parse_args(words[len(parts) :]))
            except ValueError:
                return None
            given = found.pop("words")
            if len(given) != len(_WORDS.get(verb, ("name",))):
                return None
            options = {name.replace("_", "-"): value for name, value in found.items()}
            options |= dict(zip(_WORDS.get(verb, ("name",)), given, strict=True))
            return Suggestion(verb, options.pop("name", "") or options["server"], options)
    return None


def hinted_command(hint: str) -> str:
    """Return the command at the beginning of a hint, without its explanation (`… shows the difference`).

    Return "" if the hint does not begin with a command.
    """
    return _SAID.sub("", hint) if hint.startswith("mcpfactory ") else ""


@dataclass(frozen=True, slots=True)
class Adviser:
    """Validator of suggestions for a server: `row` is its `status_row`, `head` returns the `head_histories`."""

    workspace: Workspace
    stages: tuple[Stage, ...]
    channels: tuple[ChannelPolicy, ...]
    now: datetime
    state: ServerState
    row: Mapping[str, Any]
    head: Callable[[], Mapping[str, str]]

    def refusal(self, command: str) -> PipelineError | None:
        """Return the error that would refuse a command from an authorized person.

        None if the command would succeed, or is not an mcpfactory decision.
        """
        suggestion = read_suggestion(command)
        if suggestion is None:
            return None
        try:
            _TRIALS[suggestion.verb](self, suggestion)
        except PipelineError as error:
            return error
        return None

    def workable(self, command: str) -> tuple[str, PipelineError | None]:
        """Return a command that would succeed, and the first refusal, if any.

        It is the given command, else one that the refusal's hint names, else the command that shows the server's
        status.
        """
        first = refused = self.refusal(command)
        for _ in range(_STEPS):
            if refused is None:
                return command, first
            if not (named := hinted_command(refused.hint)):
                break
            command = named
            refused = self.refusal(command)
        return (f"mcpfactory pipeline status {self.state.server}", first) if refused else (command, first)

    def common(self, suggestion: Suggestion) -> dict[str, Any]:
        """Return the arguments that every decision about a candidate or a channel takes."""
        return {**self.dry(suggestion), "stages": self.stages}

    def dry(self, suggestion: Suggestion) -> dict[str, Any]:
        """Return the arguments that every decision takes."""
        return {"reason": suggestion.options["reason"] or _REASON, "dry_run": True, "clock": lambda: self.now}

    def somebody(self, approvers: tuple[str, ...], given: Mapping[str, str]) -> str:
        """Return somebody who may approve and has not: who acts, where that is so."""
        said = {person_key(who) for who in given}
        able = [who for who in (actor(), *approvers, _STRANGER) if not approvers or who in approvers]
        return next((who for who in able if person_key(who) not in said), able[0])


def _run(adviser: Adviser, suggestion: Suggestion) -> None:
    if not suggestion.options["force"] and not adviser.row.get("stale"):
        raise NotFoundError(
            f"{suggestion.server} has no stages to run", hint=f"mcpfactory pipeline status {suggestion.server}"
        )


def _promote(adviser: Adviser, suggestion: Suggestion) -> None:
    promote.require_promotable(
        adviser.workspace,
        suggestion.server,
        suggestion.options["channel"] or "production",
        candidate=suggestion.options["candidate"] or None,
        stages=adviser.stages,
        clock=lambda: adviser.now,
        head=adviser.head(),
    )


def _decide(adviser: Adviser, suggestion: Suggestion) -> None:
    options, signed = suggestion.options, suggestion.options["sign-with"]
    if signed:  # whose key it is only its owner can try
        return
    candidate = options["candidate"] or None
    approve = suggestion.verb.endswith("approve")
    if stage := options["stage"]:
        known = next((one for one in adviser.stages if one.name == stage), None)
        approvers = known.approval.approvers if known and known.approval else ()
        made = adviser.state.decisions.get(stage)
        with acting_as(adviser.somebody(approvers, made.approvals if made else {})):
            function = stage_decision.approve_stage if approve else stage_decision.reject_stage
            function(adviser.workspace, suggestion.server, stage, candidate=candidate, **adviser.common(suggestion))
        return
    channel = find_channel(adviser.channels, options["channel"] or "production")
    chosen = adviser.state.candidates.get(decision.choose_candidate(adviser.state, candidate, channel))
    given = chosen.approvals.get(channel.name, {}) if chosen else {}
    with acting_as(adviser.somebody(channel.approvers, given)):
        decide = decision.approve if approve else decision.reject
        decide(adviser.workspace, suggestion.server, channel.name, candidate=candidate, **adviser.common(suggestion))


def _of_channel(function: Callable[..., Any]) -> Callable[[Adviser, Suggestion], None]:
    def trial(adviser: Adviser, suggestion: Suggestion) -> None:
        if suggestion.options["sign-with"]:
            return
        channel = suggestion.options["channel"] or "production"
        chosen = {"candidate": suggestion.options["candidate"]} if suggestion.options["candidate"] else {}
        function(adviser.workspace, suggestion.server, channel, **chosen, **adviser.common(suggestion))

    return trial


def _retire(adviser: Adviser, suggestion: Suggestion) -> None:
    channel = suggestion.options["channel"] or None
    decision.retire(adviser.workspace, suggestion.server, channel, **adviser.dry(suggestion))


def _revive(adviser: Adviser, suggestion: Suggestion) -> None:
    decision.revive(adviser.workspace, suggestion.server, **adviser.dry(suggestion))


def _log(adviser: Adviser, suggestion: Suggestion) -> None:
    stage = suggestion.options["stage"]
    if not (adviser.workspace.artifacts / suggestion.server / "logs" / f"{stage}.log").is_file():
        raise NotFoundError(
            f"no log of {stage} of {suggestion.server} on this machine",
            hint=f"mcpfactory pipeline run {suggestion.server} --force",
        )


def _waive(adviser: Adviser, suggestion: Suggestion) -> None:
    from mcpfactory_pipeline.checks.waive import waive  # noqa: PLC0415 - all rules come with it, and few items are about one

    options = suggestion.options
    waive(
        adviser.workspace,
        suggestion.server,
        options["rule"],
        until=options["expires"],
        tool=options["tool"],
        **adviser.dry(suggestion),
    )


# What follows the name of a command, where that is not the server alone.
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {"pipeline history": ("name", "stage"), "waive": ("rule",)}
_TRIALS: Final[Mapping[str, Callable[[Adviser, Suggestion], None]]] = {
    "pipeline run": _run,
    "pipeline promote": _promote,
    "pipeline approve": _decide,
    "pipeline reject": _decide,
    "pipeline rollback": _of_channel(promote.rollback),
    "pipeline hold": _of_channel(decision.hold),
    "pipeline unhold": _of_channel(decision.release),
    "pipeline retire": _retire,
    "pipeline revive": _revive,
    "pipeline history": _log,
    "waive": _waive,
}
