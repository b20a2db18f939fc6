"""Manifests: details of stage ends, in `pipeline/artifacts/<server>/manifests/`, which Git does not track.

A manifest has the hashes of the stage's log and reports (`artifacts`), the `reasons` of the run, and after a build the
other inputs (`made_from`). Stage and run make each manifest unique. The event in the history has the manifest's hash.
Without the file, as in a fresh clone, only these details are unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.files import read_regular_file, replace_file
from mcpfactory_pipeline.base.hashing import hash_bytes, shorten_hash
from mcpfactory_pipeline.state.event_schema import MANIFEST, Event
from mcpfactory_pipeline.state.state import StageRecord

MANIFESTS: Final = "manifests"
_LARGEST: Final = 1 << 24  # maximum size of a manifest in bytes


def manifest_file(folder: Path, name: str) -> Path:
    """Return the path of a manifest in a folder with manifests."""
    return folder / f"{name}.json"


def write_manifest(folder: Path, details: Mapping[str, Any]) -> str:
    """Write a manifest, and return its hash, which is its name.

    Raises:
        StateError: the disk is full, or the folder is not writable.
    """
    data = json.dumps(details, sort_keys=True, ensure_ascii=False).encode()
    name = _name(data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(manifest_file(folder, name), data)
    except OSError as error:
        hint = "free space, or make the folder writable"
        raise StateError(f"a manifest cannot be written below {folder}: {error.strerror}", hint=hint) from error
    return name


def find_manifest(name: str, folders: Iterable[Path]) -> bytes:
    """Return a manifest from the first folder that has it; empty if the file is missing or changed."""
    for folder in folders:
        with suppress(OSError):
            data = read_regular_file(manifest_file(folder, name), _LARGEST)
            if _name(data) == name:
                return data
    return b""


def with_details(event: Event, *folders: Path) -> Event:
    """Return an event with the details in its manifest, or the event itself without a valid manifest."""
    try:
        details = MANIFEST.validate_json(find_manifest(str(event.get("manifest", "")), folders))
    except ValueError:
        return event
    return {**event, **{name: details[name] for name in ("artifacts", "reasons", "made_from")}}


def recorded_artifacts(record: StageRecord, *folders: Path) -> Mapping[str, str]:
    """Return the hashes of a stage's log and reports by path, if this machine has the manifest."""
    found: Mapping[str, str] = with_details({"manifest": record.manifest}, *folders).get("artifacts", record.artifacts)
    return found


def _name(data: bytes) -> str:
    return shorten_hash(hash_bytes(data)).removeprefix("#")
