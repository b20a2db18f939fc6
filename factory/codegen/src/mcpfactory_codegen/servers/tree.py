"""Writer of a server's directory: plans first, formats files, stays inside the directory, and preserves edits.

owner     the file exists already               it is no longer generated
machine   rewritten; an edit is reported        removed
person    kept unchanged                        kept
document  kept unchanged                        kept
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final, Literal

from ruff import find_ruff_bin  # type: ignore[import-untyped]  # a binary with one Python function

from mcpfactory_codegen.servers.merge import LOCK, Lock, LockEntry, Owner, fingerprint
from mcpfactory_runtime.errors import Exit, McpfactoryError

Action = Literal["create", "rewrite", "same", "keep", "remove"]


class TreeError(McpfactoryError):
    """A path would leave the folder. `hint` says what to do."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class FileStep:
    """Action for one file. `tampered`: a machine-owned file was changed by someone else since it was written."""

    path: str
    action: Action
    owner: Owner
    tampered: bool = False


def plan(folder: Path, files: Mapping[str, str | bytes], *, owner: Owner) -> tuple[FileStep, ...]:
    """Return the actions that `write` would perform, by path. Reads the directory, changes nothing.

    Raises:
        TreeError: a path is absolute, has `..` in it, or passes through a link that leaves the directory.
        LockError: the directory's lock is damaged.
    """
    lock = Lock.read(folder)
    steps = [_step(folder, path, _bytes(content), lock, owner) for path, content in files.items()]
    if owner == "machine":
        for path, entry in lock.files.items():
            if entry.owner == "machine" and path not in files:
                target = locate(folder, path)
                if target.is_file():
                    changed = fingerprint(target.read_bytes()) != entry.sha256
                    steps.append(FileStep(path, "remove", owner, tampered=changed))
    return tuple(sorted(steps, key=lambda step: step.path))


def write(folder: Path, files: Mapping[str, str | bytes], *, owner: Owner, template: str = "") -> tuple[FileStep, ...]:
    """Carry out the plan and record it in the lock, including `template` if given.

    Raises:
        TreeError, LockError: as `plan`, before anything is written.
        OSError: the disk reported an error; the directory is unchanged.
    """
    steps = plan(folder, files, owner=owner)
    before = Lock.read(folder)
    changes = {
        step.path: None if step.action == "remove" else _bytes(files[step.path])
        for step in steps
        if step.action in {"create", "rewrite", "remove"}
    }
    kept = {path: entry for path, entry in before.files.items() if owner != "machine" or entry.owner != "machine"}
    written = {step.path: _entry(files[step.path], owner) for step in steps if step.action not in {"keep", "remove"}}
    apply(folder, changes, Lock({**kept, **written}, template or before.template))
    return steps


def apply(folder: Path, changes: Mapping[str, bytes | None], lock: Lock) -> None:
    """Write or remove (None) all of `changes`, and the lock last. If anything fails, the directory is unchanged.

    Raises:
        TreeError: a path leaves the directory; nothing was written.
        OSError: the disk reported an error; the written files were restored.
    """
    wanted = {locate(folder, path): content for path, content in {**changes, LOCK: lock.text().encode()}.items()}
    before: list[tuple[Path, bytes | None]] = []
    try:
        for target, content in wanted.items():
            existing = target.read_bytes() if target.is_file() else None
            if existing == content:
                continue
            before.append((target, existing))
            if content is None:
                target.unlink()
                _prune(target.parent, folder)
            else:
                _write_whole(target, content)
    except BaseException:
        for target, existing in reversed(before):
            if existing is not None:
                _write_whole(target, existing)
            elif target.parent.is_dir():
                if target.is_file():
                    target.unlink()
                _prune(target.parent, folder)
        raise


def _step(folder: Path, path: str, content: bytes, lock: Lock, owner: Owner) -> FileStep:
    target = locate(folder, path)
    if not target.exists():
        return FileStep(path, "create", owner)
    if target.is_dir():
        raise TreeError(f"{path} is a folder, and a file of that name is to be written", f"move {target} away")
    existing = target.read_bytes()
    if existing == content:
        return FileStep(path, "same", owner)
    if owner != "machine":
        return FileStep(path, "keep", owner)
    known = lock.files.get(path)
    return FileStep(path, "rewrite", owner, tampered=known is None or fingerprint(existing) != known.sha256)


def locate(folder: Path, path: str) -> Path:
    """Return the location of a path of the server.

    Raises:
        TreeError: outside its directory.
    """
    pure = PurePosixPath(path)
    odd = "\\" in path or "\0" in path or ":" in path
    if odd or pure.is_absolute() or not pure.parts or ".." in pure.parts or str(pure) != path:
        raise TreeError(f"{path!r} is not a path below the server's folder", "use a relative path without ..")
    root = folder.resolve()
    target = folder.joinpath(*pure.parts)
    if not target.parent.resolve().is_relative_to(root) or (target.is_symlink() and target.is_dir()):
        raise TreeError(f"{path} passes through a link that leaves {folder}", "replace the link by a folder")
    return target


def _entry(content: str | bytes, owner: Owner) -> LockEntry:
    raw = _bytes(content)
    pristine = content if owner == "person" and isinstance(content, str) else None
    return LockEntry(owner, fingerprint(raw), pristine)


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8")


def _write_whole(target: Path, content: bytes) -> None:
    """Write atomically: to a temporary file, then rename (a link is replaced, not followed)."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        beside.write_bytes(content)
        if target.is_file():
            beside.chmod(target.stat().st_mode & 0o777)  # a script that may be run stays one
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _prune(folder: Path, root: Path) -> None:
    """Remove folders that are empty now, below the root; a leftover bytecode cache does not keep one alive."""
    while folder != root:
        cache = folder / "__pycache__"
        if {entry.name for entry in folder.iterdir()} == {"__pycache__"} and not cache.is_symlink():
            _clear(cache.iterdir())
            cache.rmdir()
        if any(folder.iterdir()):
            return
        folder.rmdir()
        folder = folder.parent


def _clear(files: Iterable[Path]) -> None:
    for file in files:
        if file.suffix == ".pyc":
            file.unlink()


LINE_LENGTH: Final = 120
_SHOWN: Final = 800


class FormatError(Exception):
    """Error of the formatter on generated code: always a bug in the generator, never the user's fault."""


def formatted(files: Mapping[str, str]) -> dict[str, str]:
    """Return the same files with every `.py` among them formatted; the formatter's own configuration files are ignored.

    Raises:
        FormatError: a file is not valid Python, or the formatter could not run.
    """
    modules = {path: text for path, text in files.items() if path.endswith(".py")}
    if not modules:
        return dict(files)
    with TemporaryDirectory(prefix="mcpfactory-format-") as folder:
        root = Path(folder)
        for path, text in modules.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
        _run("format", root)
        done = {path: (root / path).read_text("utf-8") for path in modules}
    return {path: done.get(path, text) for path, text in files.items()}


def _run(command: str, root: Path) -> None:
    options = ["--isolated", "--no-cache", "--quiet", f"--line-length={LINE_LENGTH}", "--target-version=py311"]
    ran = subprocess.run(
        [str(find_ruff_bin()), command, *options, str(root)], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        said = ran.stderr.replace(str(root), "").strip()[:_SHOWN]
        raise FormatError(f"generated code could not be formatted: {said}")
