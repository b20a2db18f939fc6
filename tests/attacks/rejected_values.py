"""Rows of attacks: each value is passed to a function that must refuse it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.attacks.http_target import HarmError

Rows = dict[str, tuple[str, Callable[[Path], str]]]


def named(value: Any) -> str:
    """Return a value as the short, printable name of an attack."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def each_refused(
    what: str, values: Iterable[Any], carry_out: Callable[[Path, Any], object], error: type[Exception] = HarmError
) -> Rows:
    """Return rows that pass each value to `carry_out`. It must raise `error`, or return a reason."""

    def row(value: Any) -> Callable[[Path], str]:
        def attempt(folder: Path) -> str:
            try:
                said = carry_out(folder, value)
            except HarmError:
                raise
            except error as refusal:
                return str(refusal).replace(str(folder), "…").partition("\n")[0][:100] or type(refusal).__name__
            if error is not HarmError or not said:
                raise HarmError(f"{named(value)} is taken: {said!r}")
            return str(said)[:100]

        return attempt

    return {f"{what} {named(value)}": ("refused", row(value)) for value in values}
