"""What a release is about to write, noted until it is committed, so that the next one takes back what a killed one left.

The note lies beside the locks and is not tracked. A file is only touched when it is exactly what the note says that it would
become, and nothing was committed since: whatever a person did there stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from mcpfactory_pipeline.base.files import remove_temporaries, replace_file
from mcpfactory_pipeline.base.hashing import ABSENT, hash_bytes, hash_file
from mcpfactory_pipeline.releases.git import Repository
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["Files", "begin", "end", "take_back", "write"]

Files = Mapping[str, bytes | None]
"""What becomes of files, by path below the workspace; None: removed."""


def begin(workspace: Workspace, head: str, files: Files) -> None:
    """Note what will be written on top of a commit."""
    hashes = {path: ABSENT if data is None else hash_bytes(data) for path, data in files.items()}
    replace_file(_file(workspace), json.dumps({"head": head, "files": hashes}).encode())


def end(workspace: Workspace) -> None:
    """It is committed, or was taken back."""
    _file(workspace).unlink(missing_ok=True)


def take_back(workspace: Workspace, repository: Repository) -> None:
    """Undoes what a release that was killed before its commit wrote; nothing where none was."""
    try:
        noted = json.loads(_file(workspace).read_bytes())
        head, hashes = str(noted["head"]), dict(noted["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    for path in hashes:
        remove_temporaries(workspace.root / path)
    if head == repository.head():
        dirty = set(repository.dirty())
        ours = [path for path, known in hashes.items() if path in dirty and hash_file(workspace.root / path) == known]
        write(workspace.root, {path: repository.read(head, path) for path in ours})
        repository.unstage(sorted(hashes))
    end(workspace)


def write(root: Path, files: Files) -> None:
    """Write files, each whole or not at all."""
    for path, data in files.items():
        file = root / path
        if data is None:
            file.unlink(missing_ok=True)
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            replace_file(file, data)


def _file(workspace: Workspace) -> Path:
    return workspace.pipeline / "locks" / ".release.json"
