"""What is known of an adopted server that is no longer what was adopted: `drift.json` beside its `mcpfactory.toml`.

`mcpfactory inbox --refresh` writes it, and takes it away once nothing differs any more. It is of what is pinned now: as soon as
something else is adopted it says nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_file, hash_record
from mcpfactory_pipeline.workspace.adopted import Adopted

__all__ = ["DRIFT_RULE", "FILE", "STOPPING", "KnownDrift", "read_known_drift", "write_known_drift"]

FILE: Final = "drift.json"
STOPPING: Final = ("replaced", "offers")  # kinds that nothing may pass by; a newer version is none of them
DRIFT_RULE: Final = "security.drift"  # the rule of `validate` that says so, and by which it is waived
_OFFERS: Final = "offers.json"
_SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class KnownDrift:
    """One difference that stops a server: its kind (of `STOPPING`), what it is, what it means for callers, and what to type next."""

    kind: str
    message: str
    means: str
    command: str


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
            raise ValueError("of another form")
        return tuple(KnownDrift(**{name: str(value) for name, value in one.items()}) for one in data["found"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{folder.name}/{FILE} cannot be read: {error}",
            hint=f"mcpfactory inbox --refresh {folder.name} writes it anew",
        ) from error


def write_known_drift(folder: Path, adopted: Adopted, found: Sequence[KnownDrift]) -> None:
    """Write down what is known of a server; without anything the file goes.

    Raises:
        OSError: it cannot be written.
    """
    file = folder / FILE
    if not found:
        file.unlink(missing_ok=True)
        return
    data = {"drift": _SCHEMA, "of": _pinned(folder, adopted), "found": [asdict(one) for one in found]}
    replace_file(file, (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def _pinned(folder: Path, adopted: Adopted) -> str:
    """Return one hash for what pins an adopted server."""
    pins = {"kind": adopted.kind, "package": adopted.package, "version": adopted.version, "hash": adopted.hash}
    return hash_record({**pins, "url": adopted.url, "offers": hash_file(folder / _OFFERS)})
