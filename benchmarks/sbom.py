"""`python -m benchmarks.sbom [FOLDER]`: a bill of materials (CycloneDX 1.6) beside each of our own wheels that `make dist` made.

The packages are those that the wheel needs in this environment, which is the lock's, with the lock's versions and hashes; no extras.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.hashing import hash_bytes, hash_file
from mcpfactory_pipeline.build.wheels import wheel_name, wheel_version
from mcpfactory_pipeline.delivery.publish.candidate_release import read_release
from mcpfactory_pipeline.delivery.publish.sbom import LockedPackage, parse_locked_requirements, sbom_document
from mcpfactory_pipeline.plan.stage import Artifact

_LOCK: Final = Path(__file__).resolve().parents[1] / "requirements.lock"


def bill(wheel: Path, lock: str) -> bytes:
    """Return the bill of a wheel: what it needs, as locked requirements say, and from its folder what is ours."""
    version = wheel_version(wheel.name)
    release = read_release("", "", Artifact("", version, wheel.parent, {wheel.name: hash_file(wheel)}))
    needed = set(_needed(release.metadata.requires))
    ours = {wheel_name(one.name): one for one in wheel.parent.glob("*.whl")}
    packages = [one for one in parse_locked_requirements(lock, release) if one.name in needed and one.name not in ours]
    packages += [
        LockedPackage(name, wheel_version(one.name), hashes=(hash_bytes(one.read_bytes()),))
        for name, one in ours.items()
        if name in needed
    ]
    return f"{json.dumps(sbom_document(release, packages), indent=2, ensure_ascii=False)}\n".encode()


def _needed(requirements: tuple[str, ...]) -> Iterator[str]:
    """Yield the names of all that requirements lead to here, each once."""
    seen: set[str] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        fresh = {extra for extra in ("", *requirement.extras) if f"{name}[{extra}]" not in seen}
        seen |= {f"{name}[{extra}]" for extra in fresh}
        yield name
        try:
            below = distribution(name).requires or ()
        except PackageNotFoundError:  # it is named; what it needs itself is not known here
            continue
        waiting += [(Requirement(text), one) for one in fresh for text in below]


def main(arguments: list[str]) -> int:
    """Write the bills, and print where."""
    wheels = sorted(Path(arguments[0] if arguments else "dist").glob("*.whl"))
    for wheel in wheels:
        place = wheel.with_name(f"{wheel_name(wheel.name)}-{wheel_version(wheel.name)}.cdx.json")
        place.write_bytes(bill(wheel, _LOCK.read_text(encoding="utf-8")))
        print(place)
    if not wheels:
        print("error: there are no wheels\nhint: make dist", file=sys.stderr)
    return 0 if wheels else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
