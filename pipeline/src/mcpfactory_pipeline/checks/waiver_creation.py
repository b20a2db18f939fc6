"""Create temporary waivers of a rule's findings, in the server's waivers.toml and in its history."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, RefusedError, StateError
from mcpfactory_pipeline.base.ids import Clock, current_actor, utc_now
from mcpfactory_pipeline.base.text import normalize_reason
from mcpfactory_pipeline.channels.contract import stored_contract
from mcpfactory_pipeline.checks.rules import find_rule
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.adopted import DRIFT_RULE, Drift, read_known_drift, replacement_hash
from mcpfactory_pipeline.workspace.coverage import inspection_report
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.waivers import Waiver, add_waiver, read_waivers, refused_waivers
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.errors import Exit


class WaiverArgumentError(ConfigError):
    """Error for a waiver with an invalid day or reason."""

    exit_code = Exit.USAGE


def waive_rule(
    workspace: Workspace,
    server: str,
    rule: str,
    *,
    reason: str,
    expires: date,
    tool: str = "",
    dry_run: bool = False,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """Waive a rule's findings about a server, up to and including a day, in the name of the actor.

    A waiver for drift covers only the drift that is known now. `offer` is then the hash of the known drift, and
    `covers` describes the known drift. The result is the waiver with `server`, `file` (relative to the workspace) and `dry_run`.
    `replaced` describes the waiver that the new one replaces.

    Raises:
        NotFoundError: unknown server, rule or tool.
        WaiverArgumentError: the day is invalid or past, the reason is missing, or a rule that does not concern
            tools gets a tool.
        InvalidReasonError: the reason is too long.
        RefusedError: `[waivers]` of the workspace forbids the waiver, or no drift is known.
        ConfigError: as for `read_waivers`.
    """
    known = workspace.server(server)
    folder = known.folder
    found, reason = find_rule(rule).id, _reason(reason)
    if expires < clock().date():
        raise WaiverArgumentError(f"expires: {expires} is in the past", hint="use today or a later day")
    known_drift = _drift_to_cover(known, rule, tool)
    seen = max((one.seen for one in known_drift), default="")
    waiver = Waiver(
        rule=found,
        person=current_actor(),
        reason=reason,
        until=expires,
        tool=tool,
        offer=replacement_hash(known_drift),
        seen=seen,
    )
    if tool:
        _require_tool(workspace, known, tool)
    there = read_waivers(folder)
    _require_allowed(workspace.settings.waivers, there, waiver, clock().date())
    with Store(workspace, clock).transaction(server, rehearsal=dry_run) as transaction:
        facts = {"rule": waiver.rule, "tool": tool or None, "until": waiver.until.isoformat()}
        facts |= {"offer": waiver.offer or None}
        if not dry_run:
            add_waiver(folder, waiver)
        transaction.append("waived", **facts, reason=waiver.reason, person=waiver.person)
    file = f"servers/{server}/waivers.toml"
    covers = f"it {waiver.covers}: {'; '.join(one.message for one in known_drift)}" if known_drift else ""
    before = next((one for one in there if (one.rule, one.tool) == (waiver.rule, waiver.tool)), None)
    replaced = f"until {before.until} by {before.person}: {before.reason}" if before else ""
    said = {name: text for name, text in (("covers", covers), ("replaced", replaced)) if text}
    return {**waiver.to_json(), **said, "server": server, "file": file, "dry_run": dry_run}


def _drift_to_cover(server: WorkspaceServer, rule: str, tool: str) -> tuple[Drift, ...]:
    """Return the known drift that a waiver of this rule would cover; empty for other rules."""
    if rule != DRIFT_RULE:
        return ()
    if tool:
        raise WaiverArgumentError(
            f"{rule} applies to the whole server, so a waiver for one tool has no effect", hint="leave out --tool"
        )
    if not (known := read_known_drift(server.folder, server.adopted)):
        raise RefusedError(
            f"{server.name} has no recorded drift from the adopted version, so a waiver of {rule} would have no effect",
            hint=f"mcpfactory inbox --refresh {server.name} shows new drift",
        )
    return known


def _require_allowed(policy: WaiverPolicy, known: Sequence[Waiver], waiver: Waiver, today: date) -> None:
    others = [one for one in known if (one.rule, one.tool) != (waiver.rule, waiver.tool)]
    reason = refused_waivers([*others, waiver], policy, today).get(waiver, "")
    if policy.by and current_actor() not in policy.by:
        reason = f"{current_actor()} may not waive: {', '.join(policy.by)} may"
    if reason:
        raise RefusedError(
            f"the waiver of {waiver.rule} is not allowed: {reason}",
            hint="check 'limit', 'max_days' and 'by' in [waivers] of mcpfactory.toml",
        )


def _require_tool(workspace: Workspace, server: WorkspaceServer, tool: str) -> None:
    report = inspection_report(server.folder) or {"tools": []}
    known = {str(one["name"]) for one in report["tools"]} | _kept_names(workspace, server.name)
    if tool.partition(".")[0] not in known and tool not in known and not _in_sources(server.folder / "src", tool):
        raise NotFoundError(f"{server.name} has no tool {tool!r}", hint=did_you_mean(tool, sorted(known), "tools"))


def _kept_names(workspace: Workspace, server: str) -> set[str]:
    try:
        candidate = Store(workspace).state(server).candidate
        contract = stored_contract(workspace.artifacts / server / candidate) if candidate else None
    except StateError:
        return set()
    return {str(tool["name"]) for tool in contract.tools} if contract else set()


def _in_sources(folder: Path, tool: str) -> bool:
    word = re.compile(rf"(?<![\w-]){re.escape(tool)}(?![\w-])")
    return any(
        word.search(file.read_text("utf-8", errors="replace")) for file in folder.rglob("*.py") if file.is_file()
    )


def _reason(text: str) -> str:
    if not text.strip():
        raise WaiverArgumentError("a waiver must have a reason", hint="pass --reason 'why the finding is acceptable'")
    return normalize_reason(text)
