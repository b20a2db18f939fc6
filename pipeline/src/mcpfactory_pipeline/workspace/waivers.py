"""Waivers: findings that a person accepts for a time, in `waivers.toml` next to a server's `mcpfactory.toml`.

```toml
[[waivers]]
rule = "descriptions.arguments"
tool = "search"                      # optional: without it the whole rule
person = "Ada"
reason = "the vendor promised descriptions for the next release"
until = 2027-01-31                   # the last day on which it holds
```

A waiver of `security.drift` also names the offer that it covers: `offer`, the hash of the version that replaced the
adopted one, and `seen`, its discovery date. Other offers are not covered.

Waivers have a separate file so that a repository can require specific reviewers.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import unknown_field
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.text import LONGEST_REASON
from mcpfactory_pipeline.workspace.adopted import DRIFT_RULE, offer_words
from mcpfactory_pipeline.workspace.workspace import setting_error

FILE: Final = "waivers.toml"
SOON: Final = 14  # days before the end at which the inbox begins to list a waiver
_FIELDS: Final = ("rule", "tool", "person", "reason", "offer", "seen", "until")
_HEAD: Final = "# Findings of `mcpfactory validate` that are accepted for a time (mcpfactory waive).\n"


@dataclass(frozen=True, slots=True)
class Waiver:
    """One accepted rule: `tool` is the tool that it is accepted for ("" for all), `until` the last valid day.

    `offer` is the hash of the covered offer, and `seen` its discovery date, for a waiver of drift; "" for others.
    """

    rule: str
    person: str
    reason: str
    until: date
    tool: str = ""
    offer: str = ""
    seen: str = ""

    @property
    def covers(self) -> str:
        """Return `covers what was offered on 2026-11-28, sha256 0123456789ab` for a drift waiver; "" for others."""
        return f"covers {offer_words(self.offer, self.seen)}" if self.offer else ""

    def days_left(self, today: date) -> int:
        """Days until the last one; negative when it has expired."""
        return (self.until - today).days

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        about = {"tool": self.tool} if self.tool else {}
        covered = {"offer": self.offer, "seen": self.seen} if self.offer else {}
        return {
            "rule": self.rule,
            **about,
            "person": self.person,
            "reason": self.reason,
            **covered,
            "until": self.until.isoformat(),
        }


@dataclass(frozen=True, slots=True)
class WaiverPolicy:
    """Limits for waivers of one server: the maximum number, days until expiry, and people (empty: anyone).

    It is `[waivers]` of the root `mcpfactory.toml`.
    """

    limit: int = 10
    max_days: int = 365
    by: tuple[str, ...] = ()


def read_waiver_policy(table: object) -> WaiverPolicy:
    """Return the policy of a table `[waivers]`.

    Raises:
        ConfigError: for one that cannot be used.
    """
    usual = WaiverPolicy()
    if not isinstance(table, Mapping):
        raise setting_error("waivers is not a table", "[waivers]\nlimit = 3")
    if found := unknown_field(table, ("limit", "max_days", "by"), "waivers"):
        raise setting_error(*found)
    for name in ("limit", "max_days"):
        value = table.get(name, 0)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise setting_error(
                f"waivers.{name} is {value!r}, but must be a whole number of at least 0",
                f"{name} = {getattr(usual, name)}",
            )
    people = table.get("by", [])
    if not isinstance(people, list) or not all(isinstance(one, str) and one for one in people):
        raise setting_error("waivers.by is not a list of names", 'by = ["Ada", "Grace"]')
    return WaiverPolicy(table.get("limit", usual.limit), table.get("max_days", usual.max_days), tuple(people))


def uncovering(waiver: Waiver, offer: str) -> str:
    """Return the reason why a waiver does not cover `offer`; "" if it can.

    `offer` is the hash of the version that replaced the adopted one, "" if none did.
    """
    if waiver.rule != DRIFT_RULE:
        return ""
    if waiver.tool:
        return f"it names a tool, and {DRIFT_RULE} is about the whole server"
    if not waiver.offer:
        return f"it does not say what was offered: mcpfactory waive {DRIFT_RULE} writes it again"
    if offer and waiver.offer != offer:
        return f"it {waiver.covers}, and this is another offer"
    return ""


def refused_waivers(
    waivers: Sequence[Waiver], policy: WaiverPolicy, today: date, *, offer: str = ""
) -> dict[Waiver, str]:
    """Return the unexpired waivers that do not count, with the reason: policy, or an offer other than `offer`.

    If there are too many, all are refused.
    """
    valid, refused = in_force(waivers, today), dict[Waiver, str]()
    for waiver in valid:
        if policy.by and waiver.person not in policy.by:
            refused[waiver] = f"{waiver.person} may not waive: {', '.join(policy.by)} may"
        elif (days := waiver.days_left(today)) > policy.max_days:
            refused[waiver] = f"it ends in {days} days, {policy.max_days} are allowed"
        elif reason := uncovering(waiver, offer):
            refused[waiver] = reason
    allowed = [waiver for waiver in valid if waiver not in refused]
    if len(allowed) > policy.limit:
        refused |= dict.fromkeys(allowed, f"there are {len(allowed)} waivers, {policy.limit} are allowed")
    return refused


def read_waivers(folder: Path) -> tuple[Waiver, ...]:
    """Return the waivers of the server in `folder`, including expired ones; empty without a file.

    Raises:
        ConfigError: the file cannot be read, or a waiver lacks rule, person, reason or expiry.
    """
    file = folder / FILE
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint="correct that line") from error
    tables = data.get("waivers", [])
    if found := unknown_field(data, ("waivers",), str(file)):
        raise ConfigError(found[0], hint="write [[waivers]] before each waiver")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{file} must contain only waivers", hint="write [[waivers]] before each waiver")
    return tuple(_waiver(f"{file}: waiver {number}", table) for number, table in enumerate(tables, 1))


def in_force(waivers: Iterable[Waiver], today: date) -> tuple[Waiver, ...]:
    """Those that have not expired."""
    return tuple(waiver for waiver in waivers if waiver.days_left(today) >= 0)


def expiring(folder: Path, *, clock: Clock = utc_now) -> tuple[tuple[Waiver, int], ...]:
    """Return the waivers of the server in `folder` that end within `SOON` days, and those that have ended: each with its days left.

    The first to end is the first.

    Raises:
        ConfigError: as `read_waivers` does.
    """
    today = clock().date()
    left = [(waiver, waiver.days_left(today)) for waiver in read_waivers(folder)]
    return tuple(sorted((one for one in left if one[1] <= SOON), key=lambda one: (one[1], one[0].rule, one[0].tool)))


def add_waiver(folder: Path, waiver: Waiver) -> Path:
    """Write a waiver into the file of the server in `folder`, in place of one for the same rule and tool; gives the file.

    Comments in the file are kept as long as nothing is replaced.

    Raises:
        ConfigError: as `read_waivers` does.
    """
    known = read_waivers(folder)
    others = [one for one in known if (one.rule, one.tool) != (waiver.rule, waiver.tool)]
    file = folder / FILE
    before = _HEAD
    if len(others) < len(known):
        before += "".join(_text(one) for one in others)
    elif file.exists():
        before = file.read_text(encoding="utf-8").rstrip("\n") + "\n"
    replace_file(file, (before + _text(waiver)).encode())
    return file


def waiver_rows(waivers: Sequence[Waiver]) -> dict[str, str]:
    """Each waiver as a name and a text, to be hashed."""
    return {f"{w.rule} {w.tool}": json.dumps(w.to_json(), sort_keys=True) for w in waivers}


def _text(waiver: Waiver) -> str:
    # A TOML basic string is written as a JSON string, except for one character (DEL) that JSON does not escape.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for key, value in waiver.to_json().items()
        if key != "until"
    ]
    return "\n".join(["", "[[waivers]]", *lines, f"until = {waiver.until.isoformat()}", ""])


def _waiver(where: str, table: Mapping[str, Any]) -> Waiver:
    if found := unknown_field(table, _FIELDS, where):
        raise ConfigError(*found)
    texts = {}
    for key in ("rule", "person", "reason"):
        value = table.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST_REASON:
            raise ConfigError(
                f"{where}: {key} is missing or longer than {LONGEST_REASON} characters",
                hint=f'{key} = "…", at most {LONGEST_REASON} characters',
            )
        texts[key] = value
    until = table.get("until")
    if not isinstance(until, date) or isinstance(until, datetime):
        raise ConfigError(
            f"{where} has no expiry: a waiver must expire", hint="until = a date such as 2031-01-31, without quotes"
        )
    for key, example in (("tool", "search"), ("offer", "sha256:…"), ("seen", "2031-01-31")):
        if not isinstance(table.get(key, ""), str):
            raise ConfigError(f"{where}: {key} must be a string", hint=f'{key} = "{example}", or leave it out')
        texts[key] = table.get(key, "")
    return Waiver(**texts, until=until)
