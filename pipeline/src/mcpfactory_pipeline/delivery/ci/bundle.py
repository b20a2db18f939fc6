"""Bundle that a job uploads: histories, logs, and the files that the states list.

```
history/<server>.jsonl            the events
logs/<server>/<stage>.log         logs for people
manifests/<server>/<hash>.json    hashes of logs and reports
files/<sha256>                    candidates' files, logs and reports; states and manifests have their paths
```

A file is accepted only if its bytes match the hash in the events or in a manifest.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from mcpfactory_pipeline.base.errors import JsonRecord, StateError
from mcpfactory_pipeline.base.files import open_below
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.channels.channel import read_verified_file
from mcpfactory_pipeline.state import history
from mcpfactory_pipeline.state.event_schema import Event
from mcpfactory_pipeline.state.manifest import MANIFESTS, recorded_artifacts
from mcpfactory_pipeline.state.state import ServerState, fold
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

_FILES: Final = "files"
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_UNSURE: Final = "do not use this folder: download the job's own upload, and fold that"


@dataclass(frozen=True, slots=True)
class PackedServer(JsonRecord):
    """A packed server, with the number and the total size of its files."""

    server: str
    files: int
    bytes: int


def pack(workspace: Workspace, folder: Path, servers: Iterable[str]) -> list[PackedServer]:
    """Copy the histories, logs and local files of the servers into a folder.

    Raises:
        StateError: the bytes of a candidate differ from the checked bytes.
    """
    store, found = Store(workspace), []
    for server in dict.fromkeys(servers):
        name = workspace.server(server).name
        if not store.history_file(name).exists():
            continue
        (folder / "history").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(store.history_file(name), folder / "history" / f"{name}.jsonl")
        found.append(_pack_files(workspace.artifacts / name, store.state(name), folder))
    return found


def pack_run(workspace: Workspace, folder: Path, recorded: Mapping[str, Sequence[Event]]) -> list[PackedServer]:
    """Write the events of a run, and the files of these events, into a folder.

    Events are taken from memory, because server code could have changed the history on disk.

    Raises:
        StateError: a file differs from its recorded hash. The results of all other servers are complete.
    """
    found, wrong = [], []
    for server, events in sorted(recorded.items()):
        if not events:
            continue
        try:
            packed = _pack_files(workspace.artifacts / server, fold(server, _about_files(events)), folder)
        except StateError as error:
            wrong.append(f"{server}: {error}")
            continue
        file = folder / "history" / f"{server}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        history.append(file, events, f"{folder.name}/history/{server}.jsonl")
        found.append(packed)
    if wrong:
        raise StateError("; ".join(wrong), hint="find the program that changed files of the run, then repeat the run")
    return found


def _about_files(events: Sequence[Event]) -> list[Event]:
    """Return the events that name files, without the key `channel`."""
    return [
        {key: value for key, value in event.items() if key != "channel"}
        for event in events
        if event["event"] == "stage.finished"
    ]


def _copy_folder(artifacts: Path, name: str, into: Path) -> None:
    """Copy only regular files, because server code could have replaced a file with a link."""
    if (artifacts / name).is_dir():
        into.mkdir(parents=True, exist_ok=True)
        for file in sorted((artifacts / name).iterdir()):
            with suppress(OSError), open_below(file, artifacts) as original, (into / file.name).open("wb") as copy:
                shutil.copyfileobj(original, copy)


def manifest_folders(artifacts: Path, server: str, folders: Sequence[Path]) -> list[Path]:
    """Return the folders with a server's manifests: on this machine and in bundles."""
    return [artifacts / MANIFESTS, *(folder / MANIFESTS / server for folder in folders)]


def _pack_files(artifacts: Path, state: ServerState, folder: Path) -> PackedServer:
    (folder / _FILES).mkdir(parents=True, exist_ok=True)
    # Unfinished stages are not in the state, but their logs are useful.
    for name in ("logs", MANIFESTS):
        _copy_folder(artifacts, name, folder / name / state.server)
    sizes: list[int] = []
    reports = _reports(artifacts, state)
    for path, content in {**reports, **_candidates(state)}.items():
        place = _inside(artifacts, path)
        if not place.is_file() or (path in reports and hash_file(place) != content):
            continue  # the log may belong to a later, unrecorded attempt
        data = read_verified_file(place, content)
        (folder / _FILES / _digest(content)).write_bytes(data)
        sizes.append(len(data))
    return PackedServer(state.server, len(sizes), sum(sizes))


def read_bundle_files(artifacts: Path, state: ServerState, folders: Sequence[Path]) -> dict[Path, bytes]:
    """Return the files that the bundles contain and `artifacts` lacks (path → bytes).

    Raises:
        StateError: the bytes of a file differ from the state, or a path is outside `artifacts`.
    """
    bundles = [folder / _FILES for folder in folders]
    found: dict[Path, bytes] = {}
    for path, content in {**_reports(artifacts, state, folders), **_candidates(state)}.items():
        place = _inside(artifacts, path)
        if hash_file(place) == content:
            continue
        for bundle in bundles:
            file = bundle / _digest(content)
            if file.is_file() and not file.is_symlink():
                found[place] = _checked(file, content, f"{state.server}/{path}")
                break
    return found


def _candidates(state: ServerState) -> dict[str, str]:
    return {
        f"{name}/{file}": content for name, known in state.candidates.items() for file, content in known.files.items()
    }


def _reports(artifacts: Path, state: ServerState, folders: Sequence[Path] = ()) -> dict[str, str]:
    places = manifest_folders(artifacts, state.server, folders)
    known = (recorded_artifacts(record, *places) for record in state.stages.values())
    return {path: content for some in known for path, content in some.items()}


def _inside(artifacts: Path, path: str) -> Path:
    """Return the location of a file. Refuse unsafe paths, because another machine may have written the history."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or "\\" in path or ":" in path or set(parts) & {"..", "."}:
        raise StateError(f"a history contains the path {path!r}, which is outside pipeline/artifacts", hint=_UNSURE)
    return artifacts.joinpath(*parts)


def _digest(content: str) -> str:
    found = _DIGEST.fullmatch(content)
    if found is None:
        raise StateError(f"a history has an invalid file hash: {content!r}", hint=_UNSURE)
    return found[1]


def _checked(file: Path, content: str, about: str) -> bytes:
    data = file.read_bytes()
    if hash_bytes(data) != content:
        raise StateError(
            f"{about} differs from the file that the job checked: the hash is {hash_bytes(data)}, expected {content}",
            hint=_UNSURE,
        )
    return data
