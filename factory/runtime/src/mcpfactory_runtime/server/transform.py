"""Transformation of a tool: new names and descriptions, fixed or hidden arguments, and a mapped result.

The options match `[tools.NAME]` in `mcpfactory.toml` (docs/reference/generated-server.md, Decisions about tools).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypedDict

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.schemas.walk import properties_of, required_of
from mcpfactory_runtime.server.execution import run_handler
from mcpfactory_runtime.server.registry import Tool, check_tool_name, return_unchanged
from mcpfactory_runtime.server.signature import (
    ArgumentsError,
    InjectedParameter,
    argument_binder,
    is_async,
    read_signature,
    result_annotation,
)
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.server.tool_output import Converter, make_output_converter
from mcpfactory_runtime.types import Json

Mapper = Callable[[Any], Any]

# Further schema keywords that contain property names (JSON Schema 2020-12, Core §10, Validation §6.5).
_NAMING: Final = ("allOf", "anyOf", "oneOf", "not", "if", "dependentRequired", "dependentSchemas", "patternProperties")


class ArgumentTransform(TypedDict, total=False):
    """Changes to one argument.

    Attributes:
        rename: the new name.
        description: the new description.
        default: value of an omitted argument. An argument with a default is optional.
        hide: True hides the argument from callers. A hidden required argument needs a default.
        fix: fixed value of the argument. Callers neither see nor send the argument.
    """

    rename: str
    description: str
    default: Any
    hide: bool
    fix: Any


class TransformOptions(TypedDict, total=False):
    """Keyword arguments of `Server.transform_tool` and `transformed_tool`."""

    rename: str
    title: str | None
    description: str | None
    arguments: Mapping[str, ArgumentTransform] | None
    result: Mapper | None


_ARGUMENT_OPTIONS: Final = frozenset(ArgumentTransform.__annotations__)


def transformed_tool(
    inner: Tool,
    *,
    rename: str = "",
    title: str | None = None,
    description: str | None = None,
    arguments: Mapping[str, ArgumentTransform] | None = None,
    result: Mapper | None = None,
) -> Tool:
    """Return a tool that calls `inner`, and that has the same scopes, annotations and task support.

    Args:
        inner: the tool to call.
        rename: the new name, or "" to keep the name.
        title: the display name.
        description: the description for the model.
        arguments: changes by the inner tool's argument names.
        result: function that converts the inner tool's structured content to the new tool's return value. Without
            structured content, the function gets the text. The function's return annotation becomes the output schema.
            Errors of the inner tool stay unchanged.

    Raises:
        TypeError: an option is unknown, or `result` is not a function of one value.
        ValueError: a name, a default or a combination of arguments is invalid.
    """
    changes = dict(arguments or {})
    schema, passed = _transformed_schema(inner.name, inner.wire["inputSchema"], changes)
    name = check_tool_name(rename) if rename else inner.name
    wire = {**inner.wire, "name": name, "inputSchema": schema}
    wire |= {key: text for key, text in (("title", title), ("description", description)) if text is not None}
    convert: Converter = return_unchanged
    if result is not None:
        signature = read_signature(result)
        if len(signature.names) != 1:
            raise TypeError(
                f"tool {name}: result= must take one argument\nhint: write def shorten(found: dict[str, Any]) -> …"
            )
        convert, output = make_output_converter(result_annotation(signature.returns), None)
        wire = {key: value for key, value in wire.items() if key != "outputSchema"}
        wire |= {} if output is None else {"outputSchema": output}
    tool = Tool.from_raw_handler(name, wire, _Handler(inner, result, convert))
    tool.bind = _binder(schema, changes, passed)
    tool.scopes, tool.task, tool.defer_task = inner.scopes, inner.task, inner.defer_task
    return tool


def check_options(tool: str, **options: Any) -> None:
    """Check the names of options for a tool that is not listed yet."""
    known = TransformOptions.__annotations__
    if unknown := sorted(set(options) - set(known)):
        raise TypeError(f"tool {tool}: unknown option {', '.join(unknown)}\nhint: use one of {', '.join(known)}")
    for name, change in (options.get("arguments") or {}).items():
        _check_argument_options(tool, name, change)


class _Handler:
    def __init__(self, inner: Tool, mapper: Mapper | None, convert: Converter) -> None:
        self._inner, self._mapper, self._convert = inner, mapper, convert

    async def __call__(self, arguments: Json, ctx: InjectedParameter) -> Json:
        result = await run_handler(self._inner, arguments, lambda: ctx)
        if self._mapper is None or result.get("isError"):
            return result
        value = _returned(self._inner, result)
        if is_async(self._mapper):
            return self._convert(await self._mapper(value))
        return self._convert(await in_thread(partial(self._mapper, value), {}))


def _returned(tool: Tool, result: Json) -> Any:
    """Return a tool's structured content without the `result` wrapper. Without structured content, return the text."""
    value = result.get("structuredContent")
    if value is None:
        return "\n".join(block["text"] for block in result.get("content", ()) if block.get("type") == "text")
    wrapped = list(properties_of(tool.wire.get("outputSchema"))) == ["result"]
    return value["result"] if wrapped and list(value) == ["result"] else value


def _transformed_schema(tool: str, schema: Json, changes: Mapping[str, ArgumentTransform]) -> tuple[Json, Json]:
    """Return the schema for callers, and the callers' argument names by the inner tool's names."""
    properties, required = properties_of(schema), required_of(schema)
    _check_changes(tool, schema, changes)
    seen: Json = {}
    passed: Json = {}
    needed = []
    for name, about in properties.items():
        change = changes.get(name, {})
        if change.get("hide") or "fix" in change:
            continue
        outer = change.get("rename") or name
        if outer in seen:
            raise ValueError(
                f"tool {tool}: two arguments would have the name {outer!r}\nhint: choose another name for one of the arguments"
            )
        shown = {**about} if isinstance(about, dict) else about
        if isinstance(shown, dict):
            shown |= {key: change[key] for key in ("description", "default") if key in change}
        seen[outer], passed[name] = shown, outer
        if name in required and "default" not in change:
            needed.append(outer)
    found = {**schema, "properties": seen, "required": needed}
    if not needed:
        del found["required"]
    return found, passed


def _check_changes(tool: str, schema: Json, changes: Mapping[str, ArgumentTransform]) -> None:
    properties, required = properties_of(schema), required_of(schema)
    if unknown := sorted(set(changes) - set(properties)):
        raise ValueError(f"tool {tool} has no argument {', '.join(unknown)}\nhint: use one of {', '.join(properties)}")
    for name, change in changes.items():
        _check_argument_options(tool, name, change)
        if "fix" in change and len(change) > 1:
            raise ValueError(
                f"tool {tool}, {name}: fix cannot be combined with other changes\nhint: write {{'fix': …}} alone"
            )
        if change.get("hide") and name in required and "default" not in change:
            raise ValueError(
                f"tool {tool}, {name}: a required argument cannot be hidden without a default\nhint: set a default, or set the value with 'fix'"
            )
        for key in ("default", "fix"):
            if key in change:
                _check_value(tool, schema, name, change[key])
    unseen = any(change.keys() & {"rename", "hide", "fix"} for change in changes.values())
    if unseen and (naming := [key for key in _NAMING if key in schema]):
        hint = "hint: change only descriptions and defaults, or write a tool that calls this tool with ctx.call"
        raise ValueError(f"tool {tool}: its schema also names arguments in {', '.join(naming)}\n{hint}")


def _check_argument_options(tool: str, name: str, change: ArgumentTransform) -> None:
    if unknown := sorted(set(change) - _ARGUMENT_OPTIONS):
        known = ", ".join(sorted(_ARGUMENT_OPTIONS))
        raise TypeError(f"tool {tool}, {name}: unknown option {', '.join(unknown)}\nhint: use one of {known}")


def _check_value(tool: str, schema: Json, name: str, value: Any) -> None:
    alone = {**schema, "properties": {name: properties_of(schema)[name]}, "required": [name]}
    for key in _NAMING:
        alone.pop(key, None)
    try:
        argument_binder(alone)({name: value})
    except (ArgumentsError, McpError) as error:
        raise ValueError(f"tool {tool}: {error}\nhint: use a value that the tool accepts") from None


def _binder(schema: Json, changes: Mapping[str, ArgumentTransform], passed: Json) -> Callable[[Json], Json]:
    known: list[Callable[[Json], Json]] = []
    unseen = set(properties_of(schema))
    refused = {name for name in changes if name not in passed or passed[name] != name} - unseen
    always = {
        name: change.get("fix", change.get("default"))
        for name, change in changes.items()
        if "fix" in change or "default" in change
    }

    def bind(arguments: Json) -> Json:
        if not known:
            known.append(argument_binder(schema))  # compile the schema at the first call
        if hidden := sorted(refused & arguments.keys()):
            raise ArgumentsError(f"Invalid arguments: unknown argument {', '.join(hidden)}")
        checked = known[0](arguments)
        inner = {name: checked[outer] for name, outer in passed.items() if outer in checked}
        others = {name: value for name, value in checked.items() if name not in properties_of(schema)}
        return {"arguments": {**others, **always, **inner}}

    return bind
