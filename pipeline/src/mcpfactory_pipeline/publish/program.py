"""What several targets ask of a release: how its server is started, what belongs into a picture, how a bundle starts it."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.build.distributions import RUNTIME
from mcpfactory_pipeline.publish.release import CandidateRelease
from mcpfactory_pipeline.publish.target import TargetProblem

__all__ = ["LIBRARY", "entry_point", "icon", "launcher", "on_runtime", "unusable", "wheels"]

LIBRARY: Final = "lib"  # the folder beside the launcher with what is installed, where a bundle brings it
_ENTRY: Final = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_][\w.]*)")
_ICON: Final = re.compile(r"[^/]+/icon\.png")
_ICON_BYTES: Final = 2_000_000  # what catalogues accept at most
_PNG: Final = b"\x89PNG\r\n\x1a\n"

_LAUNCHER: Final = '''\
"""Starts {name} {version}."""

import os
import sys

for _name in {variables!r}:  # a setting that nobody filled in is none
    if os.environ.get(_name, "").startswith("${{user_config.") or not os.environ.get(_name):
        os.environ.pop(_name, None)
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r}))

from {module} import {attribute}

if __name__ == "__main__":
    sys.exit({call}())
'''


def entry_point(release: CandidateRelease) -> tuple[str, str] | None:
    """Return module and function of the program that starts the server; None when the wheel has no usable one."""
    found = _ENTRY.match(release.metadata.scripts.get(release.metadata.program, ""))
    return (found[1], found[2]) if found else None


def launcher(release: CandidateRelease) -> bytes:
    """Return a program that starts the server, with what lies in the folder `lib` beside it. The release has an entry point."""
    found = entry_point(release)
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


def icon(release: CandidateRelease) -> bytes | None:
    """Return the `icon.png` at the top of the source distribution, if there is one and it is a PNG of at most 2 MB."""
    if release.sdist is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(release.files[release.sdist]), mode="r:gz") as archive:
        for member in archive:
            if _ICON.fullmatch(member.name) and member.isfile() and member.size <= _ICON_BYTES:
                stream = archive.extractfile(member)
                data = stream.read() if stream else b""
                return data if data.startswith(_PNG) else None
    return None


def on_runtime(release: CandidateRelease) -> bool:
    """Whether the server runs on our runtime."""
    return any(re.match(rf"{RUNTIME}(?![\w.-])", text) for text in release.metadata.requires)


def unusable(release: CandidateRelease, target: str) -> Iterator[TargetProblem]:
    """Yield what keeps every kind of bundle from starting: no program, or a runtime that is neither here nor in an index."""
    if entry_point(release) is None:
        program = release.metadata.program
        yield TargetProblem(
            f"{target}/program", f"the wheel installs no program {program}", "[project.scripts] in pyproject.toml"
        )
    if on_runtime(release) and not release.companions:
        yield TargetProblem(
            f"{target}/runtime",
            "the wheel of the runtime is not on this machine, and no index has the one that is used here",
            f"mcpfactory pipeline promote {release.server} --channel {release.channel}, which brings it into the channel again",
        )


def wheels(release: CandidateRelease) -> dict[str, bytes]:
    """Return the release's wheel, and those of its companions that no public index has."""
    own = {release.wheel: release.files[release.wheel]}
    return own | {name: data for name, data in release.companions.items() if name.endswith(".whl")}
