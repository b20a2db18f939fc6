"""`[pipeline.events]` of the workspace: which events go where. Reading is strict; secrets come from the environment only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.events import KINDS as RUN_KINDS
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error
from mcpfactory_runtime.urls import split_web_url

DECISIONS: Final = (
    *("approved", "rejected", "promoted", "rolled-back", "held", "released"),
    *("retired", "revived", "renamed", "waived", "published"),
)
KINDS: Final = (*RUN_KINDS, *DECISIONS, "waits")
# What chat and incident tools want; the rest is for looking on.
DEFAULT_KINDS: Final = ("step.finished", "trouble", "run.finished", *DECISIONS)
FOR_PEOPLE: Final = ("waits",)  # default for chats and mail: only events that require action
FORMATS: Final = ("json", "slack", "teams")
_FIELDS: Final = (
    *("log", "webhook", "webhook_variable", "secret_variable", "format"),
    *("dashboard", "kinds", "timeout", "attempts", "mail"),
)
_MAIL_FIELDS: Final = ("to", "from", "smtp", "tls", "user", "password_variable", "kinds")
_ADDRESS: Final = re.compile(r"[^\s@,;<>\"()]+@[A-Za-z0-9.\[\]:-]+")
_TLS: Final = {"starttls": 587, "tls": 465, "none": 25}  # with the usual port of each
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_VARIABLE: Final = re.compile(r"[A-Z_][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class MailSettings:
    """Sender, recipients and server of mail. `tls` is one of `_TLS`, `timeout` in seconds; no login without `user`.

    `problem` is the reason why no mail is sent although it is configured.
    """

    to: tuple[str, ...]
    sender: str
    host: str
    port: int
    tls: str
    user: str
    password: str
    kinds: frozenset[str]
    timeout: float
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Receivers of events. `log` is a path below the workspace; `timeout` is in seconds, for one attempt.

    `problem` is the reason why no webhook is called although one is configured. `form` is the body format of the
    webhook (one of `FORMATS`), `dashboard` the dashboard's public URL, with its last slash, "" if unset.
    """

    kinds: frozenset[str] = frozenset(DEFAULT_KINDS)
    log: str = ""
    url: str = ""
    secret: str = ""
    timeout: float = 5.0
    attempts: int = 3
    problem: str = ""
    form: str = "json"
    dashboard: str = ""
    mail: MailSettings | None = None

    def wants(self, kind: str) -> bool:
        """Return True if a receiver gets events of this kind."""
        return kind in self.kinds or (self.mail is not None and kind in self.mail.kinds)


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
    form = _text(table, "format") or "json"
    if form not in FORMATS:
        raise _bad(f"unknown format {form!r}", listed(form, FORMATS, "formats"))
    timeout = _number(table, "timeout", 5.0, 60)
    return EventSettings(
        _kinds(table, DEFAULT_KINDS if form == "json" else FOR_PEOPLE),
        _log(table),
        url,
        secret,
        timeout,
        int(_number(table, "attempts", 3, 10)),
        problem,
        form,
        _dashboard(table),
        _mail(table.get("mail"), timeout),
    )


def _dashboard(table: Mapping[str, Any]) -> str:
    url = _text(table, "dashboard")
    parts = split_web_url(url)
    if url and (parts is None or parts.query or parts.fragment or re.search(r"\s", url)):
        raise _bad("dashboard is not a valid URL", 'dashboard = "https://factory.example.org"')
    return url.rstrip("/") + "/" if url else ""


def _mail(table: object, timeout: float) -> MailSettings | None:
    if table is None:
        return None
    if not isinstance(table, dict):
        raise _bad("mail is not a table", '[pipeline.events.mail]\nto = ["ada@example.org"]')
    if found := unknown_field(table, _MAIL_FIELDS, "pipeline.events.mail"):
        raise setting_error(*found)
    to, sender, tls = table.get("to"), _text(table, "from"), _text(table, "tls") or "starttls"
    if not isinstance(to, list) or not to or not all(isinstance(one, str) and _ADDRESS.fullmatch(one) for one in to):
        raise _bad("mail.to must be a list of addresses", 'to = ["ada@example.org"]')
    if not _ADDRESS.fullmatch(sender):
        raise _bad("mail.from is not a valid address", 'from = "factory@example.org"')
    if tls not in _TLS:
        raise _bad(f"mail.tls is {tls!r}, which is not valid", f"use one of {', '.join(_TLS)}")
    found_host = re.fullmatch(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?", _text(table, "smtp"))
    if found_host is None:
        raise _bad("mail.smtp is not a valid mail server", 'smtp = "mail.example.org:587"')
    host, user, variable = found_host[1].strip("[]"), _text(table, "user"), _text(table, "password_variable")
    if bool(user) != bool(variable) or (variable and not _VARIABLE.fullmatch(variable)):
        raise _bad("mail needs user and password_variable together", 'password_variable = "MAIL_PASSWORD"')
    if user and tls == "none" and host not in _LOOPBACK:
        raise _bad("mail would send the password unencrypted", 'tls = "starttls"')
    password = os.environ.get(variable, "") if variable else ""
    problem = f"mail is off, for {variable} is not set" if variable and not password else ""
    port = int(found_host[2] or _TLS[tls])
    return MailSettings(tuple(to), sender, host, port, tls, user, password, _kinds(table, FOR_PEOPLE), timeout, problem)


def _kinds(table: Mapping[str, Any], default: Sequence[str]) -> frozenset[str]:
    value = table.get("kinds", list(default))
    if not isinstance(value, list) or not all(isinstance(kind, str) for kind in value):
        raise _bad("kinds must be a list of strings", 'kinds = ["step.finished", "promoted"], or ["*"]')
    if unknown := [kind for kind in value if kind not in {*KINDS, "*"}]:
        raise _bad(f"unknown kind {unknown[0]!r}", listed(unknown[0], KINDS, "kinds"))
    return frozenset(KINDS) if "*" in value else frozenset(value)


def _log(table: Mapping[str, Any]) -> str:
    value = _text(table, "log")
    if value and (PurePosixPath(value).is_absolute() or ".." in PurePosixPath(value).parts):
        raise _bad(f"log {value!r} is outside the workspace", 'log = "pipeline/artifacts/events.jsonl"')
    return value


def _target(table: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return URL, secret, and the reason why no webhook is called although one is configured."""
    url, variable, secret = _text(table, "webhook"), _text(table, "webhook_variable"), _text(table, "secret_variable")
    for name in (variable, secret):
        if name and not _VARIABLE.fullmatch(name):
            raise _bad(f"{name!r} is not a valid name of an environment variable", 'secret_variable = "EVENTS_SECRET"')
    if url and variable:
        raise _bad("must not have both webhook and webhook_variable", "remove one of the two")
    if variable:
        url = os.environ.get(variable, "")
        if not url:
            return "", "", f"the webhook is off, for {variable} is not set"
    if url and (split_web_url(url) is None or re.search(r"\s", url)):
        raise _bad("webhook is not a valid URL", 'webhook = "https://…"')
    if url and secret and not os.environ.get(secret):
        return "", "", f"the webhook is off, for {secret} is not set and events would go unsigned"
    return url, os.environ.get(secret, "") if secret else "", ""


def _text(table: Mapping[str, Any], field: str) -> str:
    value = table.get(field, "")
    if not isinstance(value, str):
        raise _bad(f"{field} must be a string", f'{field} = "…"')
    return value


def _number(table: Mapping[str, Any], field: str, default: float, most: float) -> float:
    value = table.get(field, default)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= most:
        raise _bad(f"{field} is {value!r}, which is not valid", f"use a number above 0, {most:g} at most")
    return value


def _bad(message: str, hint: str) -> ConfigError:
    return setting_error(f"pipeline.events {message}", hint)
