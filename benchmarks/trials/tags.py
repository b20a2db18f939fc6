"""A release of mcpfactory itself, built from its tag in clones that differ in all but the tag: the same bytes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.exam.outcome import Outcome, judged, unavailable
from mcpfactory_pipeline.base.hashing import hash_file

__all__ = ["run"]

_TAG: Final = "mcpfactory-v0.0.0-trial"
_MEMBERS: Final = ("factory/runtime", "factory/codegen", "pipeline", "factory/cli")
_ZONES: Final = ("Asia/Tokyo", "America/New_York", "UTC")


def run(folder: Path, times: int, seed: int) -> Outcome:
    """Tags the newest commit in a copy, builds the tag in `times` clones; the figure says how many different bytes there were."""
    here = Path(__file__).resolve().parents[2]
    if not (here / ".git").exists():
        return unavailable("not a clone of the repository: there is no commit to tag")
    choose, origin = random.Random(seed), folder / "origin.git"
    _git("clone", "--quiet", "--bare", str(here), str(origin))
    _git("-C", str(origin), "tag", _TAG, _git("-C", str(here), "rev-parse", "HEAD").strip())
    found: dict[str, set[str]] = {}
    for number in range(times):
        clone = folder / "/".join("deep" for _ in range(number)) / f"clone {number}"
        _git("clone", "--quiet", "--branch", _TAG, str(origin), str(clone))
        for file in _built(clone, choose):
            found.setdefault(file.name, set()).add(hash_file(file))
    for name, hashes in sorted(found.items()):
        print(f"{name}: {', '.join(sorted(hashes))}", flush=True)
    different = sum(len(hashes) > 1 for hashes in found.values())
    good = len(found) == 2 * len(_MEMBERS) and not different
    return judged(f"{times} clones of one tag, {len(found)} files, {different} of them with different bytes", good=good)


def _built(clone: Path, choose: random.Random) -> list[Path]:
    """Build what `make dist` builds, as somebody else on another day."""
    mask, epoch = choose.choice((0o022, 0o077, 0o002)), choose.randint(400_000_000, 2_000_000_000)
    for file in clone.rglob("*"):
        if file.is_file() and ".git" not in file.relative_to(clone).parts:
            moment = choose.randint(400_000_000, 2_000_000_000)
            os.utime(file, (moment, moment))
    other = {
        "SOURCE_DATE_EPOCH": str(epoch),
        "TZ": choose.choice(_ZONES),
        "PYTHONHASHSEED": str(choose.randint(1, 999)),
    }
    subprocess.run(
        [sys.executable, "-m", "mcpfactory_pipeline.build.distributions", "dist", *_MEMBERS], cwd=clone, umask=mask,
        env={**os.environ, **other}, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    return sorted(file for file in (clone / "dist").iterdir() if file.suffix in {".whl", ".gz"})


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout
