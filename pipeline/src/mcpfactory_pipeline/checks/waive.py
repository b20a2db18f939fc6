"""Accepting findings of a rule for a time: the waiver in waivers.toml beside the server, and who did it in its history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from difflib import get_close_matches
from typing import Any

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError
from mcpfactory_pipeline.base.ids import Clock, actor, utc_now
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.waivers import (
    Waiver,
    WaiverPolicy,
    add_waiver,
    read_waiver_policy,
    read_waivers,
    refused_waivers,
)
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["waive"]


def waive(
    workspace: Workspace,
    server: str,
    rule: str,
    *,
    reason: str,
    until: str,
    tool: str = "",
    person: str = "",
    dry_run: bool = False,
    clock: Clock = utc_now,
) -> dict[str, Any]:
    """Accept a rule's findings about a server until a day (YYYY-MM-DD, the last one); by default in the name of the actor.

    Returns the waiver with `server`, `file` (below the workspace) and `dry_run`.

    Raises:
        NotFoundError: for an unknown server or rule.
        ConfigError: for a day that is none or over, for a missing reason, for what `[waivers]` of the workspace does not
            allow, and as `read_waivers` does.
    """
    folder = workspace.server(server).folder
    waiver = Waiver(_known_rule(rule), person or actor(), _reason(reason), _until_day(until, clock), tool)
    _require_allowed(
        read_waiver_policy(workspace.config.get("waivers", {})), read_waivers(folder), waiver, clock().date()
    )
    with Store(workspace, clock).transaction(server, rehearsal=dry_run) as transaction:
        facts = {"rule": waiver.rule, "tool": tool or None, "until": waiver.until.isoformat()}
        if not dry_run:
            add_waiver(folder, waiver)
        transaction.append("waived", **facts, reason=waiver.reason, person=waiver.person)
    file = f"servers/{server}/waivers.toml"
    return {**waiver.to_json(), "server": server, "file": file, "dry_run": dry_run}


def _require_allowed(policy: WaiverPolicy, known: Sequence[Waiver], waiver: Waiver, today: date) -> None:
    """Refuse a waiver that would not count, and anybody's who may not waive."""
    others = [one for one in known if (one.rule, one.tool) != (waiver.rule, waiver.tool)]
    reason = refused_waivers([*others, waiver], policy, today).get(waiver, "")
    if policy.by and actor() not in policy.by:
        reason = f"{actor()} may not waive: {', '.join(policy.by)} may"
    if reason:
        raise ConfigError(
            f"the waiver of {waiver.rule} is not allowed: {reason}",
            hint="[waivers] of mcpfactory.toml: limit, max_days, by",
        )


def _known_rule(rule: str) -> str:
    known = [one.id for one in RULES]
    if rule not in known:
        near = get_close_matches(rule, known, 3)
        raise NotFoundError(
            f"there is no rule {rule!r}", hint=f"perhaps {', '.join(near)}" if near else "docs/reference/rules.md"
        )
    return rule


def _reason(text: str) -> str:
    if not text.strip():
        raise ConfigError("a waiver without a reason is none", hint="--reason 'why it is accepted'")
    return text


def _until_day(text: str, clock: Clock) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"--expires {text!r} is no date", hint="--expires YYYY-MM-DD") from error
    if day < clock().date():
        raise ConfigError(f"--expires {text} is over", hint="name a day to come: an expired waiver is none")
    return day
