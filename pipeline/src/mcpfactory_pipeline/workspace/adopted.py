"""Files and known drift of adopted servers.

`mcpfactory inbox --refresh` writes the differences into `drift.json`, or deletes this file if there are none.
`drift.json` is valid only for the adopted version. `drift.json` also contains the hash of the offer that replaced the
adopted version. A waiver is valid only for the offer with the hash in `drift.json`.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.servers.config import AdoptedSettings
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import replace_file, unreadable_json_reason
from mcpfactory_pipeline.base.hashing import hash_file, hash_named_texts, list_source_files
from mcpfactory_pipeline.base.ids import Clock, utc_now

FILE: Final = "drift.json"
# Kinds of drift that block the server. A newer version is also drift, but does not block the server.
STOPPING: Final = ("replaced", "offers")
DRIFT_RULE: Final = "security.drift"  # rule of `validate` that reports drift; waivers contain this name
OFFERS: Final = "offers.json"
_SCHEMA: Final = 2
_SHORT: Final = 12  # characters of a hash in messages


def adopted_files(adopted: AdoptedSettings, root: Path) -> list[str]:
    """Return the files that the server's command runs, else all sources in the server's folder.

    Raises:
        StageError: a link points outside the folder.
    """
    folder = adopted.folder(root)
    if folder is None:
        return []
    if adopted.kind != "command":
        return list_source_files(folder)
    found = {word for word in adopted.start if not word.startswith(("-", "/")) and (folder / word).is_file()}
    for name in adopted.files:
        if (folder / name).is_dir():
            found |= {f"{name.rstrip('/')}/{path}" for path in list_source_files(folder / name)}
        else:
            found.add(name)
    return sorted(found)


def adopted_version(adopted: AdoptedSettings, folder: Path) -> str:
    """Return the version of the server in `folder`; "" if unknown."""
    read = _VERSION_FILES.get(adopted.kind)
    if read is None:
        return adopted.version
    file, parse, keys = read
    own = adopted.folder(folder.parents[1]) if adopted.kind != "url" else None
    try:
        found: Any = parse(((own or folder) / file).read_text(encoding="utf-8"))
        for key in keys:
            found = found[key]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return found if isinstance(found, str) else ""


# Kind of server → file that contains the version, parser of the file, and keys of the version.
_VERSION_FILES: Final[Mapping[str, tuple[str, Callable[[str], Any], tuple[str, ...]]]] = {
    "python": ("pyproject.toml", tomllib.loads, ("project", "version")),
    "node": ("package.json", json.loads, ("version",)),
    "url": (OFFERS, json.loads, ("server", "version")),
}


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference from the sources, its effect on callers (`means`), and the next command.

    `server` is set only if the server's folder was deleted. If the difference stops an adopted server, `offer` is the
    hash of the offer that replaced the adopted version, and `seen` is its discovery date (YYYY-MM-DD). If `unanswered`
    is True, the source did not respond.
    """

    kind: str
    message: str
    means: str
    command: str
    server: str = ""
    offer: str = field(default="", compare=False)
    seen: str = field(default="", compare=False)
    unanswered: bool = field(default=False, compare=False)

    def to_json(self) -> dict[str, str]:
        """Return plain data."""
        return {name: getattr(self, name) for name in ("kind", "message", "means", "command")}


def read_known_drift(folder: Path, adopted: AdoptedSettings | None) -> tuple[Drift, ...]:
    """Return the known drift in a server's folder; empty if the server has another adopted version now."""
    try:
        text = (folder / FILE).read_bytes() if adopted else b""
        if adopted is None or (data := json.loads(text))["of"] != _pinned(folder, adopted):
            return ()
        if data["drift"] != _SCHEMA:
            raise ValueError("the format is unknown")
        found: list[dict[str, Any]] = [{name: str(value) for name, value in one.items()} for one in data["found"]]
        return tuple(Drift(**one) for one in found)
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{folder.name}/{FILE} cannot be read: {unreadable_json_reason(error)}",
            hint=f"mcpfactory inbox --refresh {folder.name} writes the file again",
        ) from error


def replacement_hash(known: Sequence[Drift]) -> str:
    """Return one hash of everything that replaced the adopted version; "" if nothing replaced it."""
    return (
        known[0].offer if len(known) == 1 else hash_named_texts({one.kind: one.offer for one in known}) if known else ""
    )


def describe_offer(offer: str, seen: str) -> str:
    """Describe the offer that a waiver covers, such as `what was offered on 2026-11-28, sha256 0123456789ab`."""
    return f"what was offered on {seen}, sha256 {offer.removeprefix('sha256:')[:_SHORT]}"


def write_known_drift(
    folder: Path, adopted: AdoptedSettings, found: Sequence[Drift], *, clock: Clock = utc_now
) -> None:
    """Write the known drift of a server; delete the file if there is no drift.

    Earlier drift keeps its discovery date.

    Raises:
        OSError: the file cannot be written.
    """
    file = folder / FILE
    if not found:
        file.unlink(missing_ok=True)
        return
    days: dict[tuple[str, str], str] = {}
    with suppress(ConfigError):  # an unreadable file is overwritten
        days = {(one.kind, one.offer): one.seen for one in read_known_drift(folder, adopted)}
    today = clock().date().isoformat()
    dated = [{**one.to_json(), "offer": one.offer, "seen": days.get((one.kind, one.offer), today)} for one in found]
    data = {"drift": _SCHEMA, "of": _pinned(folder, adopted), "found": dated}
    replace_file(file, (json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())


def _pinned(folder: Path, adopted: AdoptedSettings) -> str:
    pins = {"kind": adopted.kind, "package": adopted.package, "version": adopted.version, "hash": adopted.hash}
    return hash_named_texts({**pins, "url": adopted.url, "offers": hash_file(folder / OFFERS)})
