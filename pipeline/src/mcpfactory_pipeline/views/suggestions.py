"""Dry runs of suggested commands, so that only commands that would succeed are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.base.ids import acting_as, current_actor
from mcpfactory_pipeline.decisions.decision import choose_candidate
from mcpfactory_pipeline.decisions.promote import require_promotable
from mcpfactory_pipeline.operations.decisions import Approve, Decision, Promote, Reject, Retire, Revive, Waive
from mcpfactory_pipeline.operations.operation import Operation, OperationContext
from mcpfactory_pipeline.operations.run import Run
from mcpfactory_pipeline.operations.table import parse_operation_command
from mcpfactory_pipeline.plan.policy import find_channel, normalize_person_name
from mcpfactory_pipeline.plan.stage import Stage
from mcpfactory_pipeline.run.runner import log_file
from mcpfactory_pipeline.state.state import ServerState
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from mcpfactory_pipeline.workspace.workspace import Workspace

_STEPS: Final = 4  # maximum number of suggested commands to try until a command succeeds
_LOG: Final = re.compile(r"mcpfactory pipeline history (?P<server>[\w.-]+) (?P<stage>[a-z][\w.-]*)")
# Explanation after a command in a hint. Before an option, a word such as `lists` is the name of a server.
_SAID: Final = re.compile(r"[,;]? (?:shows|makes|writes|says|names|lists|takes|then) (?!-).*", re.DOTALL)
# Only these operations are tried, because dry runs of other operations start servers or read documents.
_TRIED: Final = (Decision, Retire, Revive, Waive)
_STRANGER: Final = "somebody"  # actor of dry runs; no decision has this name


def hinted_command(hint: str) -> str:
    """Return the command at the beginning of a hint, without its explanation; "" without a command."""
    return _SAID.sub("", hint) if hint.startswith("mcpfactory ") else ""


@dataclass(frozen=True, slots=True)
class SuggestionValidator:
    """Validator of suggestions for a server.

    `row` is the server's `status_row`. `head` returns the `head_history_blobs`.
    """

    workspace: Workspace
    stages: tuple[Stage, ...]
    channels: tuple[ChannelPolicy, ...]
    now: datetime
    state: ServerState
    row: Mapping[str, Any]
    head: Callable[[], Mapping[str, str]]

    def refusal(self, command: str) -> PipelineError | None:
        """Return the error that an authorized person would get for a command; None without an error.

        The result is also None if the command cannot be tried.
        """
        try:
            if operation := parse_operation_command(command):
                self._try(operation)
            elif log := _LOG.fullmatch(command):
                server, stage = log["server"], log["stage"]
                if not log_file(self.workspace, server, stage).is_file():
                    again = f"mcpfactory pipeline run {server} --force"
                    return NotFoundError(f"the log of {stage} of {server} is not on this machine", hint=again)
        except PipelineError as error:
            return error
        return None

    def _try(self, operation: Operation) -> None:
        """Try an operation without writing. Signed decisions are skipped, because they need the person's key."""
        context = OperationContext(self.workspace, dry_run=True, clock=lambda: self.now, stages=self.stages)
        if isinstance(operation, Promote):
            require_promotable(
                self.workspace,
                operation.server,
                operation.channel,
                candidate=operation.candidate,
                stages=self.stages,
                clock=context.clock,
                head=self.head(),
            )
        elif isinstance(operation, Run):
            if not (operation.force or operation.again) and not self.row.get("stale"):
                server = self.state.server
                raise NotFoundError(f"{server} has no stages to run", hint=f"mcpfactory pipeline status {server}")
        elif isinstance(operation, _TRIED) and getattr(operation, "sign_with", None) is None:
            with acting_as(self._decider(operation)):
                operation.run(context)

    def replace_refused_command(self, command: str) -> tuple[str, PipelineError | None]:
        """Return a command that would succeed, and the first refusal or None.

        The method tries the given command, then commands in hints, and finally the command that shows the server's
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

    def _decider(self, operation: Operation) -> str:
        """Return a person who may perform the operation."""
        if not isinstance(operation, Approve | Reject):
            name = getattr(operation, "channel", "")
            return self.eligible_approver(find_channel(self.channels, name).operators if name else (), {})
        if operation.stage:
            known = next((one for one in self.stages if one.name == operation.stage), None)
            approvers = known.approval.approvers if known and known.approval else ()
            made = self.state.decisions.get(operation.stage)
            return self.eligible_approver(approvers, made.approvals if made else {})
        channel = find_channel(self.channels, operation.channel)
        chosen = self.state.candidates.get(choose_candidate(self.state, operation.candidate, channel))
        return self.eligible_approver(channel.approvers, chosen.approvals.get(channel.name, {}) if chosen else {})

    def eligible_approver(self, approvers: tuple[str, ...], given: Mapping[str, str]) -> str:
        """Return a person who may approve but has not approved yet, preferably the current actor."""
        said = {normalize_person_name(who) for who in given}
        able = [who for who in (current_actor(), *approvers, _STRANGER) if not approvers or who in approvers]
        return next((who for who in able if normalize_person_name(who) not in said), able[0])
