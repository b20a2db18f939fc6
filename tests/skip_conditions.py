"""Requirements of tests that README does not ask for: the only valid reasons to skip a test.

A skip for any other reason fails the run (`tests/conftest.py`). Parametrize only with applicable values,
instead of skipping others. Tests with a tool that README does not ask for have a marker and target: `make browser`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

LACKING: Final = "not on this machine: "


class SkipCondition(NamedTuple):
    """A requirement of tests, and whether the machine has it."""

    what: str
    here: Callable[[], bool]


def _mounts() -> bool:
    from benchmarks.trials.faults import can_mount

    return can_mount()


def _has_redis() -> bool:
    from benchmarks.trials.redis_server import find_redis

    return find_redis() is not None


def _has_chromium() -> bool:
    return any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))


def _has_postgres() -> bool:
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    return shutil.which("initdb") is not None or any((folder / "initdb").exists() for folder in folders)


def _has_level(name: str) -> bool:
    from mcpfactory_pipeline.isolation.levels import LEVELS

    return not LEVELS[name].lacking()


def _prevents_side_effects() -> bool:
    from mcpfactory_pipeline.isolation.levels import side_effect_free_level

    return side_effect_free_level() is not None


NEEDS: Final = {
    "linux": SkipCondition("Linux, whose /proc and sockets are looked at", lambda: sys.platform == "linux"),
    "posix": SkipCondition("a system of POSIX, with its shell, signals and fork", lambda: os.name == "posix"),
    "landlock": SkipCondition("Linux with Landlock", lambda: _has_level("landlock")),
    "bubblewrap": SkipCondition("bubblewrap, and the right to make namespaces", lambda: _has_level("bubblewrap")),
    "side-effect-free": SkipCondition("a sandbox that prevents side effects", _prevents_side_effects),
    "chromium": SkipCondition("Chromium: apt-get install chromium", _has_chromium),
    "mount": SkipCondition("the right to mount a small file system", _mounts),
    "postgres": SkipCondition("PostgreSQL: apt-get install postgresql", _has_postgres),
    "redis": SkipCondition("Redis or Valkey: apt-get install redis-server", _has_redis),
}


def needs(name: str) -> pytest.MarkDecorator:
    """Return a marker that skips a test if the machine lacks the named requirement."""
    need = NEEDS[name]
    return pytest.mark.skipif(not need.here(), reason=LACKING + need.what)


def skip_without(name: str) -> None:
    """Skip the running test if the machine lacks the named requirement."""
    need = NEEDS[name]
    if not need.here():
        pytest.skip(LACKING + need.what)


def unexpected_skips(reports: Iterable[Any]) -> list[str]:
    """Return the skipped tests with other reasons, each with its reason."""
    reasons = [
        (report.nodeid or report.longrepr[0], str(report.longrepr[-1]).removeprefix("Skipped: ")) for report in reports
    ]
    return [f"{name}: {reason}" for name, reason in reasons if not reason.startswith(LACKING)]
