"""Launcher of a published server, and installation of the server's dependencies."""

from __future__ import annotations

import contextlib
import io
import re
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from mcpfactory_pipeline.base.errors import PublishError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.build.factory_distributions import RUNTIME
from mcpfactory_pipeline.build.programs import ToolRejectedInputError, run_uv
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease
from mcpfactory_pipeline.delivery.publish.target import TargetProblem

LIBRARY: Final = "lib"  # folder with the installed packages in some bundles, next to the launcher
_ENTRY: Final = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")
_ICON: Final = re.compile(r"[^/]+/icon\.png")
_ICON_BYTES: Final = 2_000_000  # maximum icon size in bytes that catalogs accept
_PNG: Final = b"\x89PNG\r\n\x1a\n"

_LAUNCHER: Final = '''\
"""Starts {name} {version}."""

import os
import sys

for _name in {variables!r}:  # an empty setting is treated as unset
    if os.environ.get(_name, "").startswith("${{user_config.") or not os.environ.get(_name):
        os.environ.pop(_name, None)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r}))

from {module} import {attribute}

if __name__ == "__main__":
    sys.exit({call}())
'''


def server_entry_point(release: CandidateRelease) -> tuple[str, str] | None:
    """Return module and function of the server's program, or None if the wheel does not declare the program."""
    found = _ENTRY.match(release.metadata.scripts.get(release.metadata.program, ""))
    return (found[1], found[2]) if found else None


def bundle_launcher_script(release: CandidateRelease) -> bytes:
    """Return a launcher that imports the packages in the folder `lib` next to it."""
    found = server_entry_point(release)
    assert found is not None
    module, call = found
    variables = tuple(variable.name for variable in release.variables)
    return _LAUNCHER.format(
        name=release.metadata.name,
        version=release.version,
        variables=variables,
        library=LIBRARY,
        module=module,
        attribute=call.partition(".")[0],
        call=call,
    ).encode()


def read_server_icon(release: CandidateRelease) -> bytes | None:
    """Return `icon.png` in the root of the sdist, or None if it is not a PNG of at most 2 MB."""
    if release.sdist is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(release.files[release.sdist]), mode="r:gz") as archive:
        for member in archive:
            if _ICON.fullmatch(member.name) and member.isfile() and member.size <= _ICON_BYTES:
                stream = archive.extractfile(member)
                data = stream.read() if stream else b""
                return data if data.startswith(_PNG) else None
    return None


def uses_runtime(release: CandidateRelease) -> bool:
    """Return True if the server requires mcpfactory's runtime."""
    return any(re.match(rf"{RUNTIME}(?![\w.-])", text) for text in release.metadata.requires)


def find_start_problems(release: CandidateRelease, target: str) -> Iterator[TargetProblem]:
    """Yield problems that prevent the start of every bundle: a missing program, or an unavailable runtime."""
    if server_entry_point(release) is None:
        program = release.metadata.program
        yield TargetProblem(
            f"{target}/program", f"the wheel installs no program {program}", "[project.scripts] in pyproject.toml"
        )
    if uses_runtime(release) and not release.companions:
        yield TargetProblem(
            f"{target}/runtime",
            "the wheel of the runtime is not on this machine, and no index has this version",
            f"mcpfactory pipeline promote {release.server} --channel {release.channel}, which brings it into "
            "the channel again",
        )


def wheels(release: CandidateRelease) -> dict[str, bytes]:
    """Return the release's wheel, and the required wheels that no public index has."""
    own = {release.wheel: release.files[release.wheel]}
    return own | {name: data for name, data in release.companions.items() if name.endswith(".whl")}


EVERY: Final = "every"  # a lock for all platforms


@dataclass(frozen=True, slots=True)
class BundlePlatform:
    """Target platform of a bundle. `triple` is uv's name of the platform. `python` is a version such as 3.12.

    For the platform `EVERY`, `python` is the minimum version.
    """

    triple: str
    python: str


def lock_requirements(
    release: CandidateRelease, platform: BundlePlatform, folder: Path, extra: tuple[str, ...] = ()
) -> str:
    """Return pinned requirements with hashes for the release, the `extra` requirements and all dependencies.

    The result is stored in `folder`. Later calls for the same release return the stored text.
    """
    wheelhouse = wheels(release)
    wanted = (f"{release.metadata.name}=={release.metadata.version}", *extra)
    inputs = {**{name: hash_bytes(data) for name, data in wheelhouse.items()}, "wanted": "\n".join(wanted)}
    first = f"# for {hash_named_texts(inputs)}\n"
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
    replace_file(kept, text.encode())
    return text


def install(release: CandidateRelease, requirements: str, platform: BundlePlatform) -> dict[str, bytes]:
    """Return the files of an installation of pinned requirements (path → bytes)."""
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
    with tempfile.TemporaryDirectory(prefix="mcpfactory-") as work, contextlib.redirect_stdout(io.StringIO()):
        try:
            yield Path(work)
        except ToolRejectedInputError as error:
            raise PublishError(
                f"the dependencies of the server cannot be installed: {error}",
                hint="check that each dependency has a wheel for the platform and the Python version of the bundle",
            ) from error


def _options(wheelhouse: Path, platform: BundlePlatform) -> tuple[str, ...]:
    where = ("--universal",) if platform.triple == EVERY else ("--python-platform", platform.triple)
    return ("--find-links", str(wheelhouse), "--only-binary", ":all:", "--python-version", platform.python, *where)


def _wheelhouse(wheels: Mapping[str, bytes], work: Path) -> Path:
    wheelhouse = work / "wheels"
    wheelhouse.mkdir(parents=True, exist_ok=True)
    for name, data in wheels.items():
        (wheelhouse / name).write_bytes(data)
    return wheelhouse


def _is_local(path: str) -> bool:
    """Return True for files that depend on the local installation, such as scripts and caches."""
    parts = PurePosixPath(path).parts
    return (
        parts[0] in {"bin", "Scripts", ".lock"}
        or parts[-1] in {"uv_cache.json", "direct_url.json", "REQUESTED"}
        or "__pycache__" in parts
    )


def _content(path: str, file: Path) -> bytes:
    """Return the bytes of a file. A `RECORD` file is reduced to lines about included files."""
    data = file.read_bytes()
    if not path.endswith(".dist-info/RECORD"):
        return data
    lines = data.decode().splitlines()
    return "".join(f"{line}\n" for line in sorted(lines) if not _is_local(line.split(",")[0].lstrip("./"))).encode()
