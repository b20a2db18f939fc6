"""Stages of kind `approval`: `[[pipeline.stages]]` in which a person decides. Reading is strict; such a stage is never run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.plan.approval import AGENT_DECISIONS, ApprovalPolicy
from mcpfactory_pipeline.plan.fingerprint import SHOWN
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.stages.fields import read_texts
from mcpfactory_pipeline.workspace.workspace import setting_error

__all__ = ["approval_stage", "check_restart", "never_run"]

_FIELDS: Final = (
    "name",
    "kind",
    "needs",
    "before",
    "shows",
    "approvals",
    "approvers",
    "message",
    "on_rejection",
    "signed",
    "agents",
)
_RESTART: Final = "restart:"


def approval_stage(name: str, table: Mapping[str, Any]) -> Stage:
    """Return the stage of a table with `kind = "approval"`; by default it shows what the stages found that it needs.

    Raises:
        ConfigError: on one that cannot be used.
    """
    if found := unknown_field(table, _FIELDS, f"stage {name}"):
        raise setting_error(*found)
    needs = read_texts(table, name, "needs", ("build",))
    shows = read_texts(table, name, "shows", tuple(f"stage:{one}" for one in needs if ":" not in one))
    for part in shows:
        kind, colon, rest = part.partition(":")
        if not colon or kind not in SHOWN or not rest or ".." in PurePosixPath(rest).parts or rest.startswith("/"):
            raise setting_error(f"stage {name} shows {part!r}", 'shows = ["stage:validate", "file:README.md"]')
    message = table.get("message", "")
    if not isinstance(message, str):
        raise setting_error(f"stage {name}: message is no text", 'message = "Are these the tools that callers need?"')
    return Stage(
        name=name,
        needs=needs,
        reads=shows,
        writes=(),
        version=1,
        run=never_run,
        check=True,
        settings={"message": message} if message else {},
        approval=_policy(name, table, message),
        before=read_texts(table, name, "before", ()),
    )


def _policy(name: str, table: Mapping[str, Any], message: str) -> ApprovalPolicy:
    approvals, approvers = table.get("approvals", 1), read_texts(table, name, "approvers", ())
    if not isinstance(approvals, int) or isinstance(approvals, bool) or not 1 <= approvals <= 20:
        raise setting_error(f"stage {name}: approvals is {approvals!r}", "approvals = 1")
    if approvers and len(set(approvers)) < approvals:
        raise setting_error(
            f"stage {name} wants {approvals} approvals and names {len(set(approvers))} approvers", "name more of them"
        )
    rejected = table.get("on_rejection", "stop")
    if rejected != "stop" and not (isinstance(rejected, str) and rejected.removeprefix(_RESTART) not in {rejected, ""}):
        raise setting_error(
            f"stage {name}: on_rejection is {rejected!r}", '"stop", or "restart:" and a stage that stands before it'
        )
    restart = "" if rejected == "stop" else rejected.removeprefix(_RESTART)
    if not isinstance(signed := table.get("signed", False), bool):
        raise setting_error(f"stage {name}: signed is {signed!r}", "signed = true")
    return ApprovalPolicy(
        approvals, tuple(approvers), message, restart, signed, _agents(name, table.get("agents", False))
    )


def _agents(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return AGENT_DECISIONS if value else ()
    if not isinstance(value, list) or not all(one in AGENT_DECISIONS for one in value):
        raise setting_error(f"stage {name}: agents is {value!r}", f"true, or a list of {', '.join(AGENT_DECISIONS)}")
    return tuple(one for one in AGENT_DECISIONS if one in value)


def check_restart(stage: Stage, before: set[str]) -> None:
    """Refuse a stage that sends the work back to one that does not stand before it.

    Raises:
        ConfigError: naming those that do.
    """
    if stage.approval and stage.approval.restart and stage.approval.restart not in before:
        raise setting_error(
            f"stage {stage.name}: on_rejection names {stage.approval.restart!r}, which does not stand before it",
            listed(stage.approval.restart, sorted(before), "stages"),
        )


def never_run(_inputs: StageInputs) -> StageOutputs:
    """Stand in for the function of a stage that people decide.

    Raises:
        StageError: always.
    """
    raise StageError("this stage is decided, not run", hint="mcpfactory pipeline approve NAME --stage STAGE")
