"""Settings of the proxy: reads and checks the file `offer.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

__all__ = ["Offer", "read_offer"]

_KEYS: Final[dict[str, type]] = {"offer": list, "leave_out": list, "longest": int, "others": bool, "environment": list, "mode": str, "tools": dict}
_MODES: Final = ("auto", "legacy", "modern")
_TOOL: Final[dict[str, type]] = {"rename": str, "title": str, "description": str, "arguments": dict}


@dataclass(frozen=True, slots=True)
class Offer:
    """Settings of the proxy; see `offer.toml`. `tools` maps upstream tool names to changes."""

    offer: tuple[str, ...]
    leave_out: tuple[str, ...]
    longest: int
    others: bool
    environment: tuple[str, ...]
    mode: str
    tools: dict[str, dict[str, Any]]

    def has(self, shown: str) -> bool:
        """Return True if a tool is offered, by the name that clients see."""
        name = self._own_name(shown)
        return any(fnmatchcase(name, one) for one in self.offer) and not any(fnmatchcase(name, one) for one in self.leave_out)

    def _own_name(self, shown: str) -> str:
        return next((name for name, change in self.tools.items() if change.get("rename") == shown), shown)


def read_offer(file: Path) -> Offer:
    """Read the settings.

    Raises:
        ValueError: the file has an unknown key or an invalid value.
    """
    data = tomllib.loads(file.read_text("utf-8"))
    _check(file.name, data, _KEYS)
    for name, change in data.get("tools", {}).items():
        _check(f"{file.name}, tools.{name}", change, _TOOL)
    renamed = [change["rename"] for change in data.get("tools", {}).values() if "rename" in change]
    if len(set(renamed)) < len(renamed):
        raise ValueError(f"{file.name}: two tools have the same name\nhint: rename one of {', '.join(sorted(renamed))}")
    patterns = {key: tuple(map(str, data.get(key, ()))) for key in ("offer", "leave_out", "environment")}
    if data.get("longest", 50_000) < 1:
        raise ValueError(f"{file.name}: longest is {data['longest']}\nhint: set the maximum characters of a result")
    if data.get("mode", "auto") not in _MODES:
        raise ValueError(f"{file.name}: mode is {data['mode']!r}\nhint: one of {', '.join(_MODES)}")
    return Offer(**patterns, mode=data.get("mode", "auto"), longest=data.get("longest", 50_000), others=data.get("others", False), tools=data.get("tools", {}))


def _check(where: str, data: Any, known: dict[str, type]) -> None:
    for key, value in data.items() if isinstance(data, dict) else [(repr(data), data)]:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key}\nhint: the keys are {', '.join(known)}")
        if type(value) is not known[key]:
            raise ValueError(f"{where}: {key} is {value!r}\nhint: it must be a {known[key].__name__}")
