"""Execution of a release plan: one commit for all releases, and one tag per release.

If the commit fails, the files are restored at once. If the process is killed, the next process restores the files. The
commit message has a trailer for each release (`Release: <server>-vX.Y.Z`), so that another process can create missing
tags.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from mcpfactory_codegen.servers.server_files import LOCK
from mcpfactory_pipeline.base.errors import JsonRecord, ReleaseError
from mcpfactory_pipeline.base.files import copy_files, remove_temporary_files, replace_file
from mcpfactory_pipeline.base.hashing import ABSENT, hash_bytes, hash_file, list_source_files
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.build.wheels import replace_source_version
from mcpfactory_pipeline.channels.contract import contract_to_text
from mcpfactory_pipeline.delivery.releases import changelog
from mcpfactory_pipeline.delivery.releases.git import TRAILER, Repository
from mcpfactory_pipeline.delivery.releases.package_group import PackageGroup, read_package_group
from mcpfactory_pipeline.delivery.releases.plan import CONTRACT, Reader, ReleaseProposal, plan_releases
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

_SHOWN: Final = 5  # maximum number of dirty files in a message, and of releases in a commit title


@dataclass(frozen=True, slots=True)
class ReleaseResult(JsonRecord):
    """Result for one server. `outcome` is `released`, `current`, or `continued` if only the tag was missing."""

    server: str
    outcome: str
    version: str
    tag: str = ""
    commit: str = ""
    files: tuple[str, ...] = ()


def apply_releases(
    workspace: Workspace, names: Sequence[str] | None, read: Reader, *, dry_run: bool = False, clock: Clock = utc_now
) -> list[ReleaseResult]:
    """Release the changed servers: version, changelog, commit and tags.

    If one server cannot be released, no server is released.

    `names` are the servers to release, or None for all. `read` returns the tool list of a server.

    Raises:
        ReleaseError: `plan_releases` refuses a server, the tree has uncommitted changes, or Git refuses.
    """
    repository = Repository.around(workspace.root)
    with file_lock(workspace.pipeline / "locks" / ".release.lock"):
        if not dry_run:
            _roll_back(workspace, repository)
        if dirty := repository.dirty():
            more = f" and {len(dirty) - _SHOWN} more" if len(dirty) > _SHOWN else ""
            raise ReleaseError(
                "dirty-tree",
                f"the working tree has uncommitted changes: {', '.join(dirty[:_SHOWN])}{more}",
                hint=(
                    "commit the changes, or stash them (git stash --include-untracked): a release contains only "
                    "committed files"
                ),
            )
        proposals = plan_releases(workspace, repository, names, read)
        _raise_refusal(proposals)
        due, packages = {one.server: one for one in proposals if one.status == "due"}, read_package_group(workspace)
        work = {name: _files(workspace, packages, one, clock) for name, one in due.items()}
        commit = "" if dry_run or not work else _commit(workspace, repository, list(due.values()), work)
        results = []
        for one in proposals:
            tagged = replace(one, commit=one.commit or commit)
            if one.status in {"due", "pending"} and not dry_run:
                _tag(repository, tagged, "" if packages and packages.name == one.server else f"servers/{one.server}/")
            if one.status in {"due", "pending"} or names:
                results.append(_result(tagged, work.get(one.server, {})))
        return results


def _raise_refusal(proposals: Sequence[ReleaseProposal]) -> None:
    refused = [one for one in proposals if one.status == "refused"]
    if refused:
        first, others = refused[0], len(refused) - 1
        more = f" (and {pluralize(others, 'other')}: mcpfactory release plan)" if others else ""
        raise ReleaseError(first.code, f"{first.server}: {first.message}{more}", hint=first.hint)


def _result(one: ReleaseProposal, files: _Files) -> ReleaseResult:
    outcome = {"due": "released", "pending": "continued"}.get(one.status, one.status)
    tag = one.tag.name if one.version else ""
    return ReleaseResult(one.server, outcome, one.version, tag, one.commit, tuple(sorted(files)))


def _files(workspace: Workspace, packages: PackageGroup | None, one: ReleaseProposal, clock: Clock) -> _Files:
    if packages and packages.name == one.server:
        prefix, files = "", dict[str, bytes | None](packages.files(one.version, clock().date()))
    else:
        prefix, files = f"servers/{one.server}/", _server_files(workspace.server(one.server), one, clock)
    return {
        f"{prefix}{path}": data
        for path, data in files.items()
        if data is None or not (there := workspace.root / f"{prefix}{path}").is_file() or there.read_bytes() != data
    }


def _server_files(server: WorkspaceServer, one: ReleaseProposal, clock: Clock) -> dict[str, bytes | None]:
    """Return the new content of each file that the release changes. None as content deletes the file."""
    folder = server.folder
    place, text = replace_source_version(folder, server.package, one.version)
    news = changelog.changelog_section(one.version, clock().date(), one.notes, one.changes, first=not one.before)
    files: dict[str, bytes | None] = {note.file: None for note in one.notes}
    files |= {
        place: text.encode(),
        changelog.FILE: _changelog(server, news),
        CONTRACT: contract_to_text(one.tools, one.version).encode(),
    }
    if server.document is not None:
        files |= _generated(server, files)
    return files


def _changelog(server: WorkspaceServer, news: str) -> bytes:
    file = server.folder / changelog.FILE
    try:
        before = file.read_bytes().decode() if file.is_file() else ""
    except UnicodeDecodeError as error:
        raise ReleaseError(
            "changelog",
            f"{server.name}: {changelog.FILE} is not in UTF-8: {error}",
            hint="save the changelog in UTF-8, and commit the file",
        ) from error
    ends = "\r\n" if "\r\n" in before else "\n"
    return changelog.insert_release_section(before.replace("\r\n", "\n"), news).replace("\n", ends).encode()


def _generated(server: WorkspaceServer, files: Mapping[str, bytes | None]) -> _Files:
    from mcpfactory_codegen.servers.create import regenerate  # noqa: PLC0415 - heavy; only generated servers need it
    from mcpfactory_codegen.servers.generation import CreateError  # noqa: PLC0415 - heavy; only generated servers need it

    with tempfile.TemporaryDirectory(prefix="mcpfactory-release-") as work:
        copy = Path(work) / server.name
        copy_files(server.folder, list_source_files(server.folder), copy)
        for path, data in files.items():
            if data is not None:
                (copy / path).parent.mkdir(parents=True, exist_ok=True)
                (copy / path).write_bytes(data)
        try:
            created = regenerate(copy)
        except CreateError as error:
            raise ReleaseError("generate", f"{server.name}: {error}", hint=error.hint) from error
        changed = [step.path for step in created.steps if step.action != "same"]
        if others := [path for path in changed if not path.endswith("_generated/manifest.json")]:
            raise ReleaseError(
                "stale",
                f"{server.name}: {others[0]} is stale: generate would change it",
                hint=f"mcpfactory pipeline run {server.name}, commit the changes, and release again",
            )
        return {path: (copy / path).read_bytes() for path in (LOCK, *changed)}


def _commit(
    workspace: Workspace, repository: Repository, due: Sequence[ReleaseProposal], work: Mapping[str, _Files]
) -> str:
    files = {path: data for one in work.values() for path, data in one.items()}
    head = repository.head()
    try:
        hashes = {path: ABSENT if data is None else hash_bytes(data) for path, data in files.items()}
        replace_file(_journal_file(workspace), json.dumps({"head": head, "files": hashes}).encode())
        _write_files(workspace.root, files)
        commit = repository.commit(sorted(files), _message(due))
    except BaseException:
        _roll_back(workspace, repository)
        raise
    _end_journal(workspace)
    return commit


def _message(due: Sequence[ReleaseProposal]) -> str:
    shown = [f"{one.server} {one.version}" for one in due[:_SHOWN]]
    title = f"Release {', '.join(shown)}" + (f" and {len(due) - _SHOWN} more" if len(due) > _SHOWN else "")
    lines = [f"{one.server} {one.before or 'new'} → {one.version}: {'; '.join(one.reasons)}" for one in due]
    return "\n".join([title, "", *lines, "", *(f"{TRAILER}: {one.tag.name}" for one in due), ""])


def _tag(repository: Repository, one: ReleaseProposal, folder: str) -> None:
    log = repository.read(one.commit, f"{folder}{changelog.FILE}") or b""
    notes = changelog.section_of(log.decode(errors="replace"), one.version)
    repository.tag(one.tag, f"{one.server} {one.version}\n\n{notes}\n")


# --- journal of writes; the next release reverts the writes of a killed process ---


_Files = Mapping[str, bytes | None]
"""Path below the workspace → new content of the file. None removes the file."""


def _end_journal(workspace: Workspace) -> None:
    _journal_file(workspace).unlink(missing_ok=True)


def _roll_back(workspace: Workspace, repository: Repository) -> None:
    """Revert the writes of a process that was killed before its commit."""
    try:
        noted = json.loads(_journal_file(workspace).read_bytes())
        head, hashes = str(noted["head"]), dict(noted["files"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    for path in hashes:
        remove_temporary_files(workspace.root / path)
    if head == repository.head():
        dirty = set(repository.dirty())
        ours = [path for path, known in hashes.items() if path in dirty and hash_file(workspace.root / path) == known]
        _write_files(workspace.root, {path: repository.read(head, path) for path in ours})
        repository.unstage(sorted(hashes))
    _end_journal(workspace)


def _write_files(root: Path, files: _Files) -> None:
    for path, data in files.items():
        file = root / path
        if data is None:
            file.unlink(missing_ok=True)
        else:
            replace_file(file, data)


def _journal_file(workspace: Workspace) -> Path:
    return workspace.pipeline / "locks" / ".release.json"
