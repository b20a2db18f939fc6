"""A server and what it needs, installed as a folder: resolved once, with hashes; then the same bytes wherever it is done."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from mcpfactory_pipeline.base.errors import PublishError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_record
from mcpfactory_pipeline.build.programs import ProgramRefusedError, run_uv
from mcpfactory_pipeline.publish.program import wheels
from mcpfactory_pipeline.publish.release import CandidateRelease

__all__ = ["EVERY", "Platform", "install", "lock_requirements"]

EVERY: Final = "every"  # the platform of a lock whose packages are chosen where they are installed


@dataclass(frozen=True, slots=True)
class Platform:
    """What packages are chosen for: uv's name of the platform (or `EVERY`), and the `major.minor` of Python, the least one then."""

    triple: str
    python: str


def lock_requirements(release: CandidateRelease, platform: Platform, folder: Path, extra: tuple[str, ...] = ()) -> str:
    """Return requirements with hashes: the release, `extra` requirements, and all that they need.

    They are resolved once, as the index has them then, and kept in `folder`: from then on the same release gives the same
    bytes.

    Raises:
        PublishError: there is no solution.
        StageError: uv cannot be run.
    """
    wheelhouse = wheels(release)
    wanted = (f"{release.metadata.name}=={release.metadata.version}", *extra)
    inputs = {**{name: hash_bytes(data) for name, data in wheelhouse.items()}, "wanted": "\n".join(wanted)}
    first = f"# for {hash_record(inputs)}\n"
    kept = folder / f"requirements-{platform.triple}-{platform.python}.lock"
    if kept.is_file() and (text := kept.read_text(encoding="utf-8")).startswith(first):
        return text
    with _work_folder() as work:
        (work / "wanted.txt").write_text("\n".join(wanted) + "\n", encoding="utf-8")
        run_uv(
            "pip",
            "compile",
            "--quiet",
            "--generate-hashes",
            "--no-header",
            "--no-annotate",
            "--no-emit-index-url",
            "--no-emit-find-links",
            "--output-file",
            "locked.txt",
            *_options(_wheelhouse(wheelhouse, work), platform),
            "wanted.txt",
            cwd=work,
        )
        text = first + (work / "locked.txt").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(kept, text.encode())
    return text


def install(release: CandidateRelease, requirements: str, platform: Platform) -> dict[str, bytes]:
    """Return the files of an installation of locked requirements: path → bytes, without programs and without what says where it was made.

    uv checks the hash of every file.

    Raises:
        PublishError: a package cannot be installed.
        StageError: uv cannot be run.
    """
    with _work_folder() as work:
        target = work / "installed"
        (work / "locked.txt").write_text(requirements, encoding="utf-8")
        run_uv(
            "pip",
            "install",
            "--quiet",
            "--target",
            str(target),
            "--require-hashes",
            "--requirements",
            "locked.txt",
            "--link-mode",
            "copy",
            *_options(_wheelhouse(wheels(release), work), platform),
            cwd=work,
        )
        files = {file.relative_to(target).as_posix(): file for file in target.rglob("*") if file.is_file()}
        return {path: _content(path, file) for path, file in sorted(files.items()) if not _is_local(path)}


@contextlib.contextmanager
def _work_folder() -> Iterator[Path]:
    """Yield a folder to work in; what uv says goes nowhere, and its no becomes an error for people."""
    with tempfile.TemporaryDirectory(prefix="mcpfactory-") as work, contextlib.redirect_stdout(io.StringIO()):
        try:
            yield Path(work)
        except ProgramRefusedError as error:
            raise PublishError(
                f"what the server needs cannot be installed: {error}",
                hint="is there a wheel for that platform and Python?",
            ) from error


def _options(wheelhouse: Path, platform: Platform) -> tuple[str, ...]:
    where = ("--universal",) if platform.triple == EVERY else ("--python-platform", platform.triple)
    return ("--find-links", str(wheelhouse), "--only-binary", ":all:", "--python-version", platform.python, *where)


def _wheelhouse(wheels: Mapping[str, bytes], work: Path) -> Path:
    wheelhouse = work / "wheels"
    wheelhouse.mkdir(parents=True, exist_ok=True)
    for name, data in wheels.items():
        (wheelhouse / name).write_bytes(data)
    return wheelhouse


def _is_local(path: str) -> bool:
    """Whether a file says how or where it was installed: programs name the interpreter, uv its cache, pip the folder."""
    parts = PurePosixPath(path).parts
    return (
        parts[0] in {"bin", "Scripts", ".lock"}
        or parts[-1] in {"uv_cache.json", "direct_url.json", "REQUESTED"}
        or "__pycache__" in parts
    )


def _content(path: str, file: Path) -> bytes:
    """Return a file's bytes; of a `RECORD`, the lines of files that are kept."""
    data = file.read_bytes()
    if not path.endswith(".dist-info/RECORD"):
        return data
    lines = data.decode().splitlines()
    return "".join(f"{line}\n" for line in sorted(lines) if not _is_local(line.split(",")[0].lstrip("./"))).encode()
