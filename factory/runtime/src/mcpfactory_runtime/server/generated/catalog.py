"""Selection of a server's generated tools by mode, profile and dialect.

The *mode* `full` lists each tool. The mode `search` lists three tools that find, describe and call the other tools. A
*profile* is a set of tools: `full`, `read-only`, or a profile of the manifest. A *dialect* adapts names and schemas to
the limits of clients. Options such as `--mode` override environment variables such as MCPFACTORY_MODE,
and the variables override the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from mcpfactory_runtime.schemas.client_limits import DEFAULT_DIALECT, DIALECTS, dialect_limits

if TYPE_CHECKING:
    from mcpfactory_runtime.server.registry import GeneratedTool, Registry, Tool


MODES: Final = ("full", "search")
TOOL_NAME: Final = 128  # maximum characters of a name in MCP
_FULL: Final = "full"
_READ_ONLY: Final = "read-only"


class CatalogError(ValueError):
    """Error for an unknown mode, profile or dialect."""


def check_dialect(dialect: str) -> str:
    """Return the dialect, or raise a CatalogError if it is unknown."""
    if dialect not in DIALECTS:
        raise CatalogError(f"unknown dialect {dialect!r}\nhint: use one of {', '.join(DIALECTS)}")
    return dialect


class Catalog:
    """The generated tools of one server.

    Attributes:
        title: the API's display name, or "" before the first manifest is mounted.
        environment_error: error message about the environment variables, or "".
        notices: messages for the operator.
    """

    def __init__(self, registry: Registry) -> None:
        self.title = ""
        self.mode = self.profile = _FULL
        self.dialect = DEFAULT_DIALECT
        self.environment_error = ""
        self.notices: list[str] = []
        self._registry = registry
        self._rows = registry.generated
        registry.declares_tools = True
        self._profiles: dict[str, frozenset[str]] = {}
        self._listed: list[str] = []

    def add(self, rows: Sequence[GeneratedTool], profiles: Mapping[str, Sequence[str]]) -> None:
        """Add the tools and profiles of one manifest. Call `select` afterwards to list the tools."""
        for row in rows:
            if row.tool.name in self._rows or row.tool.name in self._registry.tools:
                raise ValueError(
                    f"tool {row.tool.name!r} already exists\nhint: give one of the two tools another name="
                )
            self._rows[row.tool.name] = row
        for name, members in profiles.items():
            self._profiles[name] = self._profiles.get(name, frozenset()) | frozenset(members)

    @property
    def profiles(self) -> tuple[str, ...]:
        """Return the names of all profiles."""
        return (_FULL, _READ_ONLY, *(name for name in self._profiles if name not in {_FULL, _READ_ONLY}))

    def select(self, mode: str | None = None, profile: str | None = None, dialect: str | None = None) -> None:
        """List the tools that a mode, a profile and a dialect select. None keeps the current value."""
        mode, profile, dialect = mode or self.mode, profile or self.profile, dialect or self.dialect
        if mode not in MODES:
            raise CatalogError(f"unknown mode {mode!r}\nhint: use {' or '.join(MODES)}")
        if profile not in self.profiles:
            raise CatalogError(f"unknown profile {profile!r}\nhint: use one of {', '.join(self.profiles)}")
        self.mode, self.profile, self.dialect = mode, profile, check_dialect(dialect)
        self._registry.offers = self._offers if profile == _READ_ONLY else None
        self._update_listed()

    def select_from_environment(self, environ: Mapping[str, str]) -> None:
        """Select the tools by environment variables. Store an error in `environment_error`."""
        try:
            self.select(*(environ.get(f"MCPFACTORY_{one}") for one in ("MODE", "PROFILE", "DIALECT")))
        except CatalogError as error:
            self._update_listed()
            names = ", ".join(f"MCPFACTORY_{one}" for one in ("MODE", "PROFILE", "DIALECT"))
            self.environment_error = f"{names}: {error}"

    def discard(self, name: str) -> bool:
        """Remove a generated tool, and return True if the tool existed."""
        if self._rows.pop(name, None) is None:
            return False
        self._update_listed()
        return True

    def _update_listed(self) -> None:
        tools = self._registry.tools
        own = {name: tool for name, tool in tools.items() if name not in self._listed}
        selected = self._with_short_names({name: row for name, row in self._rows.items() if self._includes(row)})
        if self.mode == _FULL:
            listed = {name: row.tool for name, row in selected.items()}
        else:
            from mcpfactory_runtime.server.generated.search_mode import search_mode  # noqa: PLC0415 - most servers list their tools

            listed = {tool.name: tool for tool in search_mode(selected, self.title, {*self._rows, *own}, self.dialect)}
        self._listed = list(listed)
        tools.clear()
        tools.update(listed)
        tools.update(own)
        self._registry.version += 1

    def _with_short_names(self, rows: dict[str, GeneratedTool]) -> dict[str, GeneratedTool]:
        """Shorten names that are too long for the dialect. The schemas are adapted when a client lists them."""
        longest = dialect_limits(self.dialect).get("tool_name_length", TOOL_NAME)
        if all(len(name) <= longest for name in rows):
            return rows
        from mcpfactory_runtime.schemas.client_dialects import shorten_names  # noqa: PLC0415 - most names are short

        names = shorten_names(self._rows, longest)
        return {names[name]: row._replace(tool=_renamed(row.tool, names[name])) for name, row in rows.items()}

    def _offers(self, tool: Tool) -> bool:
        return tool.name in self._listed or _reads(tool)

    def _includes(self, row: GeneratedTool) -> bool:
        if self.profile in self._profiles:
            return row.tool.name in self._profiles[self.profile]
        return self.profile == _FULL or _reads(row.tool)


def _renamed(tool: Tool, name: str) -> Tool:
    def load(view: Tool) -> None:
        if tool.load is not None:
            tool.load(tool)
        view.handler, view.bind, view.convert = tool.handler, tool.bind, tool.convert
        view.context, view.is_async, view.load = tool.context, tool.is_async, None

    view = type(tool)(name, {**tool.wire, "name": name}, load)
    view.scopes = tool.scopes
    return view


def _reads(tool: Tool) -> bool:
    return tool.wire.get("annotations", {}).get("readOnlyHint") is True
