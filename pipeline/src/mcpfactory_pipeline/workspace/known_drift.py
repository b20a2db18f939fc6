"""What is known of an adopted server that is no longer what was adopted: `drift.json` beside its `mcpfactory.toml`.

`mcpfactory inbox --refresh` writes it, and takes it away once nothing differs any more. It is of what is pinned now: as soon as
something else is adopted it says nothing. It holds what differs in words, and the hash of all that is there instead: a waiver is for
that, and for nothing that comes later.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.damage import why_damaged
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_file, hash_record
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.workspace.adopted import Adopted

__all__ = [
    "DRIFT_RULE",
    "FILE",
    "OFFERS",
    "STOPPING",
    "KnownDrift",
    "offer_words",
    "offered_now",
    "read_known_drift",
    "write_known_drift",
]

FILE: Final = "drift.json"
STOPPING: Final = ("replaced", "offers")  # kinds that nothing may pass by; a newer version is none of them
DRIFT_RULE: Final = "security.drift"  # the rule of `validate` that says so, and by which it is waived
OFFERS: Final = "offers.json"
_SCHEMA: Final = 2
_SHORT: Final = 12  # characters of a hash that sentences show


@dataclass(frozen=True, slots=True)
class KnownDrift:
    """One difference that stops a server: its kind (of `STOPPING`), what it is, what it means for callers, and what to type next.

    `offer` is the hash of all that is there instead, `seen` the day (YYYY-MM-DD) on which that was found first.
    """

    kind: str
    message: str
    means: str
    command: str
    offer: str
    seen: str = ""


def read_known_drift(folder: Path, adopted: Adopted | None) -> tuple[KnownDrift, ...]:
    """Return what is known of a server, in its folder; nothing where it was not adopted, or something else is adopted by now.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        text = (folder / FILE).read_bytes() if adopted else b""
        if adopted is None or (data := json.loads(text))["of"] != _pinned(folder, adopted):
            return ()
        if data["drift"] != _SCHEMA:
            raise ValueError("it has another form")
        return tuple(KnownDrift(**{name: str(value) for name, value in one.items()}) for one in data["found"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{folder.name}/{FILE} cannot be read: {why_damaged(error)}",
            hint=f"mcpfactory inbox --refresh {folder.name} writes it anew",
        ) from error


def offered_now(known: Sequence[KnownDrift]) -> str:
    """Return one hash of all that is there instead of what was adopted; "" where nothing is."""
    return known[0].offer if len(known) == 1 else hash_record({one.kind: one.offer for one in known}) if known else ""


def offer_words(offer: str, seen: str) -> str:
    """Return in words which offer a waiver covers: `what was offered on 2026-11-28, sha256 0123456789ab`."""
    return f"what was offered on {seen}, sha256 {offer.removeprefix('sha256:')[:_SHORT]}"


def write_known_drift(folder: Path, adopted: Adopted, found: Sequence[KnownDrift], *, clock: Clock = utc_now) -> None:
    """Write down what is known of a server; without anything the file goes. What was known before keeps the day on which it was found.

    Raises:
        OSError: it cannot be written.
    """
    file = folder / FILE
    if not found:
        file.unlink(missing_ok=True)
        return
    days: dict[tuple[str, str], str] = {}
    with suppress(ConfigError):  # one that cannot be read is written anew
        days = {(one.kind, one.offer): one.seen for one in read_known_drift(folder, adopted)}
    today = clock().date().isoformat()
    dated = [replace(one, seen=days.get((one.kind, one.offer), today)) for one in found]
    data = {"drift": _SCHEMA, "of": _pinned(folder, adopted), "found": [asdict(one) for one in dated]}
    replace_file(file, (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def _pinned(folder: Path, adopted: Adopted) -> str:
    """Return one hash for what pins an adopted server."""
    pins = {"kind": adopted.kind, "package": adopted.package, "version": adopted.version, "hash": adopted.hash}
    return hash_record({**pins, "url": adopted.url, "offers": hash_file(folder / OFFERS)})
