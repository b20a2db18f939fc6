"""What a person typed who adopts a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["Wish"]


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person typed. `here` is the folder that paths count from; what is not given is recognised."""

    what: str = ""
    command: str = ""
    name: str = ""
    start: str = ""
    test: str = ""
    environment: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    copy: bool = False
    here: Path = Path()
