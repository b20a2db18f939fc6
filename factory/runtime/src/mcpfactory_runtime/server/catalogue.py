"""Which of a server's generated tools are offered, and how: all in the list, or by way of search; by profile.

A *profile* is a named choice of tools: `full`, `read-only` (those that only read), and those that the manifest defines. A
*mode* is how they are offered: `full` lists each, `search` lists three tools that find, describe and call them. Both are
chosen by the manifest, by MCPFACTORY_MODE and MCPFACTORY_PROFILE, or by `--mode` and `--profile`, the last of these winning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .registry import Registry, Tool

__all__ = ["MODES", "Catalogue", "CatalogueError", "Generated"]

Json = dict[str, Any]

MODES: Final = ("full", "search")
_FULL: Final = "full"
_READ_ONLY: Final = "read-only"


class CatalogueError(ValueError):
    """There is no such mode or profile; the message says which there are."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A generated tool, its operation ("GET /books/{id}", "" if unknown), and the group of tools that it belongs to."""

    tool: Tool
    operation: str
    group: str


class Catalogue:
    """The generated tools of one server.

    Attributes:
        rows: all of them by name, whatever is offered.
        title: what the API is called, for the model.
        mode: the mode that is offered.
        profile: the profile that is offered.
        complaint: why what the environment asks for is not offered; "" when it is.
    """

    def __init__(self, registry: Registry, title: str) -> None:
        self.rows: dict[str, Generated] = {}
        self.title = title
        self.mode = self.profile = _FULL
        self.complaint = ""
        self._registry = registry
        self._profiles: dict[str, frozenset[str]] = {}
        self._listed: list[str] = []

    def add(self, rows: Sequence[Generated], profiles: Mapping[str, Sequence[str]]) -> None:
        """Take in the tools of one manifest, and the profiles that it defines; `offer` then shows them.

        Raises:
            ValueError: a name is taken.
        """
        for row in rows:
            if row.tool.name in self.rows or row.tool.name in self._registry.tools:
                raise ValueError(f"tool {row.tool.name!r} exists already\nhint: give one of them another name=")
            self.rows[row.tool.name] = row
        for name, members in profiles.items():
            self._profiles[name] = self._profiles.get(name, frozenset()) | frozenset(members)

    @property
    def profiles(self) -> tuple[str, ...]:
        """The names of all profiles."""
        return (_FULL, _READ_ONLY, *(name for name in self._profiles if name not in {_FULL, _READ_ONLY}))

    def offer(self, mode: str | None = None, profile: str | None = None) -> None:
        """Show the tools of a profile in a mode; None keeps what is chosen.

        Raises:
            CatalogueError: there is no such mode or profile; nothing has changed.
        """
        mode, profile = mode or self.mode, profile or self.profile
        if mode not in MODES:
            raise CatalogueError(f"there is no mode {mode!r}\nhint: {' or '.join(MODES)}")
        if profile not in self.profiles:
            raise CatalogueError(f"there is no profile {profile!r}\nhint: one of {', '.join(self.profiles)}")
        self.mode, self.profile = mode, profile
        self._show()

    def choose(self, environ: Mapping[str, str]) -> None:
        """`offer` what the environment asks for; what cannot be is kept as the complaint that `run` ends with."""
        try:
            self.offer(environ.get("MCPFACTORY_MODE"), environ.get("MCPFACTORY_PROFILE"))
        except CatalogueError as error:
            self._show()
            self.complaint = f"MCPFACTORY_MODE or MCPFACTORY_PROFILE: {error}"

    def discard(self, name: str) -> bool:
        """Take a generated tool away; False when there is none of this name."""
        if self.rows.pop(name, None) is None:
            return False
        self._show()
        return True

    def _show(self) -> None:
        tools = self._registry.tools
        own = {name: tool for name, tool in tools.items() if name not in self._listed}
        chosen = {name: row for name, row in self.rows.items() if self._includes(row)}
        if self.mode == _FULL:
            shown = {name: row.tool for name, row in chosen.items()}
        else:
            from .search_mode import search_mode  # noqa: PLC0415 - most servers list their tools

            shown = {tool.name: tool for tool in search_mode(chosen, self.title, {*self.rows, *own})}
        self._listed = list(shown)
        tools.clear()
        tools.update(shown)
        tools.update(own)
        self._registry.version += 1

    def _includes(self, row: Generated) -> bool:
        if self.profile == _FULL:
            return True
        if self.profile in self._profiles:
            return row.tool.name in self._profiles[self.profile]
        return row.tool.wire.get("annotations", {}).get("readOnlyHint") is True
