from __future__ import annotations

import functools
import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from mcpfactory_codegen.servers import scaffold
from mcpfactory_pipeline.base.git import git_text
from mcpfactory_pipeline.base.hashing import ABSENT, hash_files, list_source_files


def python_version() -> str:
    """Return `major.minor` of the interpreter that clean environments use."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


@functools.cache
def installed_version(name: str) -> str:
    """Return the version of an installed distribution; `none` if the distribution is not installed."""
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return ABSENT


@functools.cache
def distribution_version(name: str, below: str = "") -> str:
    """Return the version of one of our distributions, followed by `+` and a hash of its import package.

    Equal code has an equal version in a checkout and in an installation. If `below` is set, the hash covers only this
    folder of the import package.
    """
    version = installed_version(name)
    if version == ABSENT:
        return version
    spec = find_spec(name.replace("-", "_"))
    if spec is None or spec.origin is None:
        return version
    root = Path(spec.origin).parent / below
    return (
        f"{version}+{hash_files(root, list_source_files(root, without=('_templates',))).removeprefix('sha256:')[:12]}"
    )


def template_version(name: str, server: Path) -> str:
    """Return the hash of a server's template; `none` if the template is neither shipped nor in the workspace."""
    return scaffold.template_version(name, server) or ABSENT


def checked_out_commit(folder: Path) -> str:
    """Return the commit checked out in a folder, with `+changes` if files there differ; `none` without git."""
    head = git_text(folder, "rev-parse", "--short=12", "HEAD")
    if not head:
        return ABSENT
    return f"{head}+changes" if git_text(folder, "status", "--porcelain", "--", ".") else head


def editable_source_folder(name: str) -> Path | None:
    """Return the source folder of an editable installation; None for a regular installation."""
    try:
        found: Distribution = distribution(name)
        origin = json.loads(found.read_text("direct_url.json") or "{}")
        editable = origin.get("dir_info", {}).get("editable", False)
    except (PackageNotFoundError, ValueError, AttributeError):
        return None
    url = urlsplit(str(origin.get("url", "")))
    if url.scheme != "file" or not editable:
        return None
    folder = Path(unquote(url.path))
    return folder if (folder / "pyproject.toml").is_file() else None


Step = Literal["none", "patch", "minor", "major"]
STEPS: Final[tuple[Step, ...]] = ("none", "patch", "minor", "major")
_RELEASE: Final = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")


class Version(NamedTuple):
    """The first three numbers of a version."""

    major: int
    minor: int
    patch: int

    @classmethod
    def read(cls, text: str) -> Version:
        """Parse a version; return 0.0.0 if the text is not a version."""
        found = _RELEASE.match(text.strip())
        return cls(int(found[1]), int(found[2] or 0), int(found[3] or 0)) if found else cls(0, 0, 0)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


def version_step(before: str, after: str) -> Step:
    """Return the step between two versions (major, minor or patch); `none` if `after` is not the larger version."""
    old, new = Version.read(before), Version.read(after)
    if new <= old:
        return "none"
    return "major" if new[0] > old[0] else "minor" if new[1] > old[1] else "patch"


def is_sufficient_step(before: str, after: str, needed: Step) -> bool:
    """Return True if the step from `before` to `after` is at least `needed`.

    Below version 1.0, each step counts as the next larger step.
    """
    step = STEPS.index(version_step(before, after))
    allowed = min(step + 1, 3) if step and Version.read(before)[0] == 0 else step
    return allowed >= STEPS.index(needed)


def next_version(version: str, needed: Step) -> str:
    """Return the next version after `version` for a step of the size `needed`."""
    major, minor, patch = Version.read(version)
    if needed == "none":
        return version
    steps = (f"{major + 1}.0.0", f"{major}.{minor + 1}.0", f"{major}.{minor}.{patch + 1}")
    return next(one for one in reversed(steps) if is_sufficient_step(version, one, needed))


def ensure_sufficient_version(before: str, after: str, needed: Step) -> str:
    """Return `after` if the step from `before` is at least `needed`, else the next version with the needed step."""
    return after if is_sufficient_step(before, after, needed) else next_version(before, needed)
