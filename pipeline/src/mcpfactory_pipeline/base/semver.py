"""How far two versions of a server are apart, in the words of semantic versioning (https://semver.org). Pure.

Below 1.0 a minor step may break, as a major one may from 1.0 on, and a patch may add.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

__all__ = ["STEPS", "Step", "Version", "next_version", "permits", "step_between"]

Step = Literal["none", "patch", "minor", "major"]
STEPS: Final[tuple[Step, ...]] = ("none", "patch", "minor", "major")
_RELEASE: Final = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")


class Version(NamedTuple):
    """The three numbers of a version; what comes after them does not count."""

    major: int
    minor: int
    patch: int

    @classmethod
    def read(cls, text: str) -> Version:
        """From text; 0.0.0 for what is no version."""
        found = _RELEASE.match(text.strip())
        return cls(int(found[1]), int(found[2] or 0), int(found[3] or 0)) if found else cls(0, 0, 0)

    def __str__(self) -> str:
        """`1.2.3`."""
        return f"{self.major}.{self.minor}.{self.patch}"


def step_between(before: str, after: str) -> Step:
    """Return the step from one version to another; none when it is not newer, or only a pre-release."""
    old, new = Version.read(before), Version.read(after)
    if new <= old:
        return "none"
    return "major" if new[0] > old[0] else "minor" if new[1] > old[1] else "patch"


def permits(before: str, after: str, needed: Step) -> bool:
    """Whether the step from `before` to `after` is as large as `needed`."""
    step = STEPS.index(step_between(before, after))
    allowed = min(step + 1, 3) if step and Version.read(before)[0] == 0 else step
    return allowed >= STEPS.index(needed)


def next_version(version: str, needed: Step) -> str:
    """Return the smallest version after `version` whose step is as large as `needed`."""
    major, minor, patch = Version.read(version)
    if needed == "none":
        return version
    steps = (f"{major + 1}.0.0", f"{major}.{minor + 1}.0", f"{major}.{minor}.{patch + 1}")
    return next(one for one in reversed(steps) if permits(version, one, needed))
