"""Search mode: three tools that give access to a whole API.

`search_tools` finds tools for a question, `describe_tools` shows the schemas of tools, and `call_tool` calls a tool.
The called tool checks its arguments and requires its scopes, as without search mode.

A large schema is shortened in steps. The steps remove nested parts of arguments, ends of descriptions, and most values
of a long enumeration. Arguments and their required flags are never removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from mcpfactory_runtime.schemas.client_limits import DEFAULT_DIALECT, dialect_limits
from mcpfactory_runtime.schemas.walk import (
    COMBINATORS,
    definitions_of,
    items_schema_of,
    properties_of,
    required_of,
    resolve_definition,
    subschemas_of,
)
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.execution import run_in_middleware
from mcpfactory_runtime.server.registry import GeneratedTool, Tool, return_unchanged
from mcpfactory_runtime.server.signature import ArgumentsError, argument_binder
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context
    from mcpfactory_runtime.server.generated.search_index import IndexedTool, SearchIndex


CALLS: Final = "mcpfactory/calls"
"""Key in `_meta` of the tool that calls other tools."""

_DEFAULT_COUNT: Final = 8  # default number of tools in a search result
_MAX_COUNT: Final = 50
_NAMED: Final = 10  # maximum number of tools that a search result lists only by name
_OPTIONAL: Final = 3  # maximum number of optional arguments to list by name; a longer list is replaced by a number
_MAX_DESCRIBED: Final = 10
_DESCRIPTION_SIZE: Final = 40_000  # maximum characters of all complete descriptions in one response
_OUTLINES_SIZE: Final = 12_000  # maximum characters of all outlines in one response
_OUTLINE_SIZE: Final = 4_000  # bytes; a larger tool is shown as an outline
_LINE_SIZE: Final = 240  # maximum characters of one line of a search result
_ABOUT_SIZE: Final = 120  # maximum characters of a description that is shown instead of a title
_GROUPS_SIZE: Final = 400  # maximum characters of the list of groups


def search_mode(
    rows: Mapping[str, GeneratedTool], title: str, taken: Container[str], dialect: str = DEFAULT_DIALECT
) -> tuple[Tool, Tool, Tool]:
    """Return the three tools that replace `rows` in the list.

    `title` is the API's name, and `taken` contains the names of other tools. Tools are described in the dialect.
    """
    return _Search(dict(rows), title, taken, dialect).tools


class _Search:
    def __init__(self, rows: dict[str, GeneratedTool], title: str, taken: Container[str], dialect: str) -> None:
        self._rows = rows
        # A description is a text, which no vendor checks. Other dialects are for models that read only simple schemas.
        self._limits = {} if dialect == DEFAULT_DIALECT else dialect_limits(dialect)
        self._names = list(rows)
        self._index: SearchIndex | None = None
        self._groups = Counter(row.group for row in rows.values() if row.group)
        self._search, self._describe, self._call = _free_names(taken)
        self.tools = (self._search_tool(title), self._describe_tool(), self._call_tool())

    # -- search ----------------------------------------------------------------------------------------------------

    def _search_tool(self, title: str) -> Tool:
        groups = _shortened(", ".join(name for name, _ in self._groups.most_common()), _GROUPS_SIZE)
        text = (
            f"Find tools of {_shortened(title, 80)} by what they do. {len(self._rows)} tools"
            + (f" in the groups {groups}" if len(self._groups) > 1 else "")
            + ". Search for one step in a few words of APIs (create invoice), and in other words if nothing fits. "
            f"{self._describe} then shows what a tool takes, and {self._call} calls it."
        )
        properties: Json = {
            "query": {"type": "string", "description": "What the tool should do; empty to list tools."},
            "group": {"type": "string", "description": "Only tools of this group."},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MAX_COUNT,
                "default": _DEFAULT_COUNT,
                "description": "Maximum number of tools.",
            },
            "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Number of tools to skip."},
        }
        return _tool(
            self._search,
            "Find tools",
            text,
            properties=properties,
            required=["query"],
            hints=_READS,
            handler=self._run_search,
        )

    async def _run_search(self, query: str, group: str = "", limit: int = _DEFAULT_COUNT, offset: int = 0) -> str:
        if group and group not in self._groups:
            raise ToolError(f"Unknown group {group!r}.\nhint: use one of {', '.join(self._groups)}")
        within = [number for number, name in enumerate(self._names) if not group or self._rows[name].group == group]
        if query.strip():
            wanted = offset + limit + _NAMED
            ranked = [number for number, _ in self.index.search(query, wanted, within)][offset:]
            found, beside = ranked[:limit], ranked[limit:]
        else:
            found, beside = within[offset : offset + limit], []
        if not found:
            more = "no more" if offset else "none"
            return (
                f"Found {more} of {len(within)} tools.\nhint: use other words for the same thing, or a group: "
                + ", ".join(self._groups)
            )
        lines = [_line(self._rows[self._names[number]]) for number in found]
        heading = f"{len(found)} of {len(within)} tools" + (", best first:" if query.strip() else ":")
        if beside:
            lines.append("Perhaps: " + ", ".join(self._names[number] for number in beside))
        return "\n".join([heading, *lines, f"{self._describe} shows what they take."])

    @property
    def index(self) -> SearchIndex:
        """Return the index, which is built at the first search."""
        if self._index is None:
            from mcpfactory_runtime.server.generated.search_index import SearchIndex  # noqa: PLC0415 - at the first search

            self._index = SearchIndex(self._entries())
        return self._index

    def _entries(self) -> list[IndexedTool]:
        from mcpfactory_runtime.server.generated.search_index import IndexedTool  # noqa: PLC0415 - at the first search

        return [
            IndexedTool.from_wire(row.tool.wire | {"name": name}, row.operation, row.group)
            for name, row in self._rows.items()
        ]

    # -- describe --------------------------------------------------------------------------------------------------

    def _describe_tool(self) -> Tool:
        text = (
            f"Show what tools take: description, input schema and hints, for names from {self._search}. "
            "A long schema is shown in outline."
        )
        names: Json = {
            "type": "array",
            "description": "Names of tools.",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": _MAX_DESCRIBED,
            "examples": [[name] for name in self._names[:1]],
        }
        whole: Json = {"type": "boolean", "default": False, "description": "Complete schemas, never outlines."}
        return _tool(
            self._describe,
            "Describe tools",
            text,
            properties={"names": names, "whole": whole},
            required=["names"],
            hints=_READS,
            handler=self._run_describe,
        )

    async def _run_describe(self, names: list[str], *, whole: bool = False) -> str:
        from mcpfactory_runtime.schemas.client_dialects import adapt_tool  # noqa: PLC0415 - at the first description

        texts: list[str] = []
        left: list[str] = []
        outlines: list[str] = []
        room = _DESCRIPTION_SIZE if whole else _OUTLINES_SIZE
        known = [name for name in dict.fromkeys(names) if name in self._rows]
        unknown = [name for name in dict.fromkeys(names) if name not in self._rows]
        if unknown and not known:
            self._row(unknown[0])
        for name in known:
            wire = adapt_tool(self._row(name).tool.wire, self._limits)
            shown = {
                key: value for key, value in wire.items() if key not in {"title", "icons", "_meta", "outputSchema"}
            }
            shown, cut = (shown, False) if whole else outline_large_tool(shown, _OUTLINE_SIZE)
            text = to_json(shown).decode()
            if texts and len(text) > room:
                left.append(name)
                continue
            room -= len(text)
            texts.append(text)
            outlines += [name] if cut else []
        if outlines:
            texts.append(f"In outline: {', '.join(outlines)}. {self._describe} with whole=true shows all.")
        if left:
            texts.append(f"Too long for one response, call again for: {', '.join(left)}")
        if unknown:
            texts.append(f"Unknown tool {', '.join(map(repr, unknown))}. {self._search} finds the names.")
        return "\n".join(texts)

    # -- call ------------------------------------------------------------------------------------------------------

    def _call_tool(self) -> Tool:
        text = (
            f"Call a tool that {self._search} found. {self._describe} shows its arguments and what it does. "
            "The result is that of the tool itself."
        )
        properties: Json = {
            "name": {"type": "string", "description": "Name of the tool."},
            "arguments": {"type": "object", "description": "Arguments of the tool.", "default": {}},
        }
        tool = _tool(
            self._call,
            "Call a tool",
            text,
            properties=properties,
            required=["name"],
            hints=self._hints(),
            handler=self._run_call,
        )
        tool.wire["_meta"] = {CALLS: True}
        tool.context = "ctx"
        tool.convert = return_unchanged
        tool.resolve_target = self._target
        return tool

    async def _run_call(self, name: str, arguments: Json | None = None, *, ctx: Context) -> Json:
        try:
            return await run_in_middleware(ctx.server.registry, self._row(name).tool, arguments or {}, ctx)
        except ArgumentsError as error:
            raise ToolError(
                f"{error}\nhint: call {self._describe} with names [{name!r}] to see the arguments of the tool"
            ) from None

    def _target(self, arguments: Any) -> Tool | None:
        name = arguments.get("name") if isinstance(arguments, Mapping) else None
        row = self._rows.get(name) if isinstance(name, str) else None
        return None if row is None else row.tool

    def _hints(self) -> Json:
        """Return the annotations that are true for all tools.

        A tool without annotations counts as destructive (server/tools, ToolAnnotations).
        """
        hints = [row.tool.wire.get("annotations", {}) for row in self._rows.values()]
        if all(one.get("readOnlyHint") is True for one in hints):
            return {"readOnlyHint": True, "openWorldHint": True}
        worst = any(one.get("readOnlyHint") is not True and one.get("destructiveHint", True) for one in hints)
        return {"readOnlyHint": False, "destructiveHint": worst, "openWorldHint": True}

    def _row(self, name: str) -> GeneratedTool:
        row = self._rows.get(name)
        if row is None:
            near = [self._names[number] for number, _ in self.index.search(name.replace("_", " "), 3)]
            hint = f"perhaps {', '.join(near)}; " if near else ""
            raise ToolError(f"Unknown tool {name!r}.\nhint: {hint}call {self._search} to find tool names")
        return row


_READS: Final[Json] = {"readOnlyHint": True, "openWorldHint": False}


def _free_names(taken: Container[str]) -> tuple[str, str, str]:
    for number in count():
        middle = ("", "api_", "server_")[number] if number < 3 else f"api{number}_"
        names = (f"search_{middle}tools", f"describe_{middle}tools", f"call_{middle}tool")
        if not any(name in taken for name in names):
            return names
    raise AssertionError("internal error: the loop over names ended (this is a bug; please report it)")


def _tool(
    name: str, title: str, text: str, *, properties: Json, required: list[str], hints: Json, handler: Any
) -> Tool:
    schema = {"type": "object", "properties": properties, "additionalProperties": False, "required": required}
    wire = {"name": name, "title": title, "description": text, "inputSchema": schema, "annotations": dict(hints)}

    def load(tool: Tool) -> None:
        tool.bind = argument_binder(schema)
        tool.load = None

    tool = Tool(name, wire, load)
    tool.handler = handler
    return tool


def _line(row: GeneratedTool) -> str:
    wire = row.tool.wire
    return _shortened(f"- {wire['name']}({_arguments(wire['inputSchema'])}): {_about(wire)}", _LINE_SIZE)


def _arguments(schema: Json) -> str:
    needed = required_of(schema)
    rest = [name for name in properties_of(schema) if name not in needed]
    if len(rest) <= _OPTIONAL:
        return ", ".join([*needed, *(f"{name}?" for name in rest)])
    return f"{', '.join(needed)} and {len(rest)} more" if needed else f"{len(rest)} optional"


def _about(wire: Json) -> str:
    title, text = " ".join(wire.get("title", "").split()), " ".join(wire.get("description", "").split())
    if title and (not text or _bare(title) != _bare(wire["name"])):
        return title
    return _shortened(text.partition(". ")[0], _ABOUT_SIZE)


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def _shortened(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip(", ") + "…"


_STEPS: Final = ((240, 3), (120, 2), (80, 1), (40, 0))
"""Steps of truncation: maximum characters of a description, and maximum levels of optional arguments."""

_DEEPEST: Final = 8  # maximum levels of nested arguments
_PARTS: Final = 200  # maximum number of nested schemas per tool; without a limit, a recursive schema would never end
_VALUES: Final = 12  # maximum number of enum values to show
_KEPT: Final = ("type", "format", "const", "default", "minimum", "maximum", "pattern", "additionalProperties")


def outline_large_tool(wire: Json, size: int) -> tuple[Json, bool]:
    """Return the tool, or an outline of the tool if the tool exceeds `size` bytes. The flag is True for an outline."""
    if len(to_json(wire)) <= size:
        return wire, False
    schema = wire.get("inputSchema", {})
    outline = wire
    for text, depth in _STEPS:
        cutter = _SchemaTruncator(schema, text)
        shown = {"description": _shortened(wire.get("description", ""), size // 4)}
        outline = {**wire, **shown, "inputSchema": cutter.cut(schema, depth + 1, 0)}
        if len(to_json(outline)) <= size:
            break
    return (outline, True) if len(to_json(outline)) < len(to_json(wire)) else (wire, False)


class _SchemaTruncator:
    def __init__(self, root: Json, text: int) -> None:
        self._definitions = definitions_of(root)
        self._text = text
        self._left = _PARTS

    def cut(self, schema: Any, depth: int, level: int) -> Any:
        """Return a schema with at most `depth` levels of optional arguments, and at most `_DEEPEST` levels in total."""
        if not isinstance(schema, dict):
            return schema
        schema = resolve_definition(schema, self._definitions)
        kept: Json = {key: schema[key] for key in _KEPT if key in schema and not isinstance(schema[key], dict | list)}
        if isinstance(schema.get("type"), list):
            kept["type"] = schema["type"]
        if text := schema.get("description"):
            kept["description"] = _shortened(text, self._text)
        if values := schema.get("enum"):
            kept["enum"] = [*values[:_VALUES], *(["…"] if len(values) > _VALUES else [])]
        if depth <= 0 or level >= _DEEPEST or self._left <= 0:
            return kept
        self._left -= level > 0
        if properties := properties_of(schema):
            required = required_of(schema)
            kept["properties"] = {
                name: self.cut(part, depth if name in required else depth - 1, level + 1)
                for name, part in properties.items()
            }
            if required:
                kept["required"] = required
        if (items := items_schema_of(schema)) is not True:
            kept["items"] = self.cut(items, depth, level + 1)
        for key in COMBINATORS:
            if parts := subschemas_of(schema, key):
                kept[key] = [self.cut(part, depth - (len(parts) > 1), level + 1) for part in parts]
        return kept
