"""`[pipeline.events]` of the workspace: which events go where. Reading is strict; secrets come from the environment only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.events import KINDS as RUN_KINDS
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

__all__ = ["DECISIONS", "KINDS", "EventSettings", "read_events"]

DECISIONS: Final = (
    "approved",
    "rejected",
    "promoted",
    "rolled-back",
    "held",
    "released",
    "retired",
    "revived",
    "renamed",
    "waived",
    "published",
)
KINDS: Final = (*RUN_KINDS, *DECISIONS)
DEFAULT_KINDS: Final = (
    "step.finished",
    "trouble",
    "run.finished",
    *DECISIONS,
)  # what chat and incident tools want; the rest is for looking on
_FIELDS: Final = ("log", "webhook", "webhook_variable", "secret_variable", "kinds", "timeout", "attempts")
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Where events go. `log` is a path below the workspace; `timeout` is in seconds, for one attempt.

    `problem` says why there is no webhook although one is configured.
    """

    kinds: frozenset[str] = frozenset(DEFAULT_KINDS)
    log: str = ""
    url: str = ""
    secret: str = ""
    timeout: float = 5.0
    attempts: int = 3
    problem: str = ""

    def wants(self, kind: str) -> bool:
        """Whether events of this kind are sent."""
        return kind in self.kinds


def read_events(workspace: Workspace) -> EventSettings:
    """Return the settings of a workspace; by default no receiver.

    Raises:
        ConfigError: for settings that cannot be used.
    """
    table: Any = workspace.settings.get("events", {})
    if not isinstance(table, dict):
        raise _bad("is not a table", '[pipeline.events]\nlog = "pipeline/artifacts/events.jsonl"')
    if found := unknown_field(table, _FIELDS, "pipeline.events"):
        raise setting_error(*found)
    url, secret, problem = _target(table)
    return EventSettings(
        _kinds(table),
        _log(table),
        url,
        secret,
        _number(table, "timeout", 5.0, 60),
        int(_number(table, "attempts", 3, 10)),
        problem,
    )


def _kinds(table: Mapping[str, Any]) -> frozenset[str]:
    value = table.get("kinds", list(DEFAULT_KINDS))
    if not isinstance(value, list) or not all(isinstance(kind, str) for kind in value):
        raise _bad("kinds is not a list of texts", 'kinds = ["step.finished", "promoted"], or ["*"]')
    if unknown := [kind for kind in value if kind not in {*KINDS, "*"}]:
        raise _bad(f"there is no kind {unknown[0]!r}", listed(unknown[0], KINDS, "kinds"))
    return frozenset(KINDS) if "*" in value else frozenset(value)


def _log(table: Mapping[str, Any]) -> str:
    value = _text(table, "log")
    if value and (PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts):
        raise _bad(f"log {value!r} leaves the workspace", 'log = "pipeline/artifacts/events.jsonl"')
    return value


def _target(table: Mapping[str, Any]) -> tuple[str, str, str]:
    """URL, secret, and why there is no webhook although one is configured."""
    url, variable, secret = _text(table, "webhook"), _text(table, "webhook_variable"), _text(table, "secret_variable")
    for name in (variable, secret):
        if name and not _VARIABLE.fullmatch(name):
            raise _bad(f"{name!r} is no name of an environment variable", 'secret_variable = "EVENTS_SECRET"')
    if url and variable:
        raise _bad("has webhook and webhook_variable", "give one of the two")
    if variable:
        url = os.environ.get(variable, "")
        if not url:
            return "", "", f"the webhook is off, for {variable} is not set"
    if url and not re.fullmatch(r"https?://[^\s/]+\S*", url):
        raise _bad("webhook is no URL", 'webhook = "https://…"')
    if url and secret and not os.environ.get(secret):
        return "", "", f"the webhook is off, for {secret} is not set and events would go unsigned"
    return url, os.environ.get(secret, "") if secret else "", ""


def _text(table: Mapping[str, Any], field: str) -> str:
    value = table.get(field, "")
    if not isinstance(value, str):
        raise _bad(f"{field} is not text", f'{field} = "…"')
    return value


def _number(table: Mapping[str, Any], field: str, default: float, most: float) -> float:
    value = table.get(field, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise _bad(f"{field} is {value!r}", f"a number above 0, {most:g} at most")
    return value


def _bad(message: str, hint: str) -> ConfigError:
    return setting_error(f"pipeline.events {message}", hint)
