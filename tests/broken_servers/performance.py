"""Servers that exceed cost limits, by waiting or by keeping memory, independently of the machine's load."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from tests.broken_servers.healthy import Json, SampleServer


class LateRiser(SampleServer):
    """Sends its first response after the timeout of clients."""

    own_process = True
    rule = "process.start-time"
    haste = 50  # 0.6 s count as 30 s, of which 10 are permitted: a busy machine may start the clock 0.4 s too late

    def begin(self) -> None:
        time.sleep(0.6)


class HealthyAthlete(SampleServer):
    """Stays within limits that every machine can meet."""

    own_process = True
    limits: ClassVar[Mapping[str, float]] = {"max_start_ms": 30_000, "max_call_ms": 30_000, "max_memory_mb": 1_000}


class Sloth(SampleServer):
    """Starts slowly."""

    own_process = True
    rule = "performance.start"
    limits: ClassVar[Mapping[str, float]] = {"max_start_ms": 100}

    def begin(self) -> None:
        time.sleep(0.2)


class Tortoise(SampleServer):
    """Responds slowly to every call."""

    own_process = True
    rule = "performance.calls"
    limits: ClassVar[Mapping[str, float]] = {"max_call_ms": 100}

    def call(self, name: str, arguments: Json) -> Json:
        time.sleep(0.2)
        return super().call(name, arguments)


class Glutton(SampleServer):
    """Keeps a hundred megabytes of every call."""

    own_process = True
    rule = "performance.memory"
    limits: ClassVar[Mapping[str, float]] = {"max_memory_mb": 100}

    def __init__(self, handshakes: list[str], moderns: list[str]) -> None:
        super().__init__(handshakes, moderns)
        self.eaten: list[bytes] = []

    def call(self, name: str, arguments: Json) -> Json:
        self.eaten.append(b"x" * 100_000_000)
        return super().call(name, arguments)
