"""Waivers: findings that a person accepts until a date, in `waivers.toml` next to a server's `mcpfactory.toml`.

```toml
[[waivers]]
rule = "descriptions.arguments"
tool = "search"                      # optional; by default, the waiver covers all tools
person = "Ada"
reason = "the vendor promised descriptions for the next release"
until = 2027-01-31                   # last day on which it is valid
```

A waiver of `security.drift` covers one offer: `offer` is the hash of the version that replaced the adopted version, and
`seen` is its discovery date.

Waivers have their own file, so that a repository can require specific reviewers for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

from mcpfactory_codegen.settings import Settings
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.text import MAX_REASON_LENGTH
from mcpfactory_pipeline.workspace.adopted import DRIFT_RULE, describe_offer
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.workspace import read_settings_file

FILE: Final = "waivers.toml"
EXPIRES_SOON_DAYS: Final = 14  # days; the inbox lists waivers that expire within this time
Text = Annotated[str, Field(pattern=r"\S", max_length=MAX_REASON_LENGTH)]
_HEAD: Final = "# Findings of `mcpfactory validate` that are accepted for a time (mcpfactory waive).\n"


class Waiver(Settings):
    """One rule whose findings a person accepts."""

    rule: Text = Field(description="the rule", examples=["descriptions.arguments"])
    tool: str = Field(
        default="", description="tool whose findings are accepted [default: all tools]", examples=["search"]
    )
    person: Text = Field(description="person who accepts the findings", examples=["Ada"])
    reason: Text = Field(description="reason", examples=["the vendor promised descriptions"])
    offer: str = Field(default="", description="drift only: hash of the covered offer", examples=["sha256:…"])
    seen: str = Field(default="", description="drift only: discovery date of that offer", examples=["2031-01-31"])
    until: date = Field(description="last day on which it is valid, without quotes", examples=["2031-01-31"])

    @property
    def covers(self) -> str:
        """Describe the offer that a drift waiver covers; "" for other waivers."""
        return f"covers {describe_offer(self.offer, self.seen)}" if self.offer else ""

    def days_left(self, today: date) -> int:
        """Return the days until the waiver's last day; negative after the last day."""
        return (self.until - today).days

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return self.model_dump(mode="json", exclude_defaults=True)


class WaiverFile(Settings):
    """`waivers.toml` of a server."""

    waivers: tuple[Waiver, ...] = Field(default=(), strict=False, description="write [[waivers]] before each waiver")


def uncovered_reason(waiver: Waiver, offer: str) -> str:
    """Return the reason why a waiver cannot cover `offer`; "" if it can.

    `offer` is the hash of the version that replaced the adopted version; "" without a replacement.
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
    """Return the unexpired waivers that are not valid, each with the reason.

    If too many waivers are valid, all of them are refused.
    """
    valid, refused = unexpired_waivers(waivers, today), dict[Waiver, str]()
    for waiver in valid:
        if policy.by and waiver.person not in policy.by:
            refused[waiver] = f"{waiver.person} may not waive: {', '.join(policy.by)} may"
        elif (days := waiver.days_left(today)) > policy.max_days:
            refused[waiver] = f"it ends in {days} days, {policy.max_days} are allowed"
        elif reason := uncovered_reason(waiver, offer):
            refused[waiver] = reason
    allowed = [waiver for waiver in valid if waiver not in refused]
    if len(allowed) > policy.limit:
        refused |= dict.fromkeys(allowed, f"there are {len(allowed)} waivers, {policy.limit} are allowed")
    return refused


def read_waivers(folder: Path) -> tuple[Waiver, ...]:
    """Return the waivers of the server in `folder`, including expired ones; empty without a file."""
    file = folder / FILE
    return read_settings_file(WaiverFile, file).waivers if file.exists() else ()


def unexpired_waivers(waivers: Iterable[Waiver], today: date) -> tuple[Waiver, ...]:
    """Return the waivers that have not expired."""
    return tuple(waiver for waiver in waivers if waiver.days_left(today) >= 0)


def waivers_expiring_soon(folder: Path, *, clock: Clock = utc_now) -> tuple[tuple[Waiver, int], ...]:
    """Return the waivers in `folder` that have expired, or that expire within `EXPIRES_SOON_DAYS`.

    Each waiver is paired with its days left, and the pairs are sorted by days left.
    """
    today = clock().date()
    left = [(waiver, waiver.days_left(today)) for waiver in read_waivers(folder)]
    return tuple(
        sorted((one for one in left if one[1] <= EXPIRES_SOON_DAYS), key=lambda one: (one[1], one[0].rule, one[0].tool))
    )


def add_waiver(folder: Path, waiver: Waiver) -> Path:
    """Write a waiver into the file of the server in `folder`, and return the file.

    The waiver replaces an earlier waiver of the same rule and tool. A replacement removes the comments in the file.
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
    """Return each waiver as name and text, for hashing."""
    return {f"{w.rule} {w.tool}": json.dumps(w.to_json(), sort_keys=True) for w in waivers}


def _text(waiver: Waiver) -> str:
    # JSON escapes are valid in TOML strings, but JSON does not escape DEL. TOML forbids an unescaped DEL.
    lines = [
        f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")
        for key, value in waiver.to_json().items()
        if key != "until"
    ]
    return "\n".join(["", "[[waivers]]", *lines, f"until = {waiver.until.isoformat()}", ""])
