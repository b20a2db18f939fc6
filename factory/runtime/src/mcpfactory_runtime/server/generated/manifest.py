"""Generated tools: loading from `manifest.json`, the owner's hooks, and checks of results.

A tool's module is imported at the tool's first call, so that a server with many tools starts fast.
docs/reference/generated-server.md describes `manifest.json`.

    @server.before("list_books")
    def few_at_a_time(call: ToolCall) -> None:
        call.arguments.setdefault("limit", 20)

A `before` hook gets validated arguments. The hook may change the arguments, or raise `ToolError` to refuse the call. An
`after` hook may return a different result. Hooks run in the order of their definition, for each call of a generated
tool.

Structured content must conform to the tool's output schema (server/tools, Output Schema), but an API's responses do not
always match the API document. A call that the API carried out must not look like a failed call, because a model would
repeat the call. Therefore:

1. Conforming content stays unchanged.
2. Nonconforming members and list items are omitted from the structured content. The text has the complete response,
   and a note lists the omitted parts. A null that the schema forbids is omitted without a note. Strings are converted
   to the numbers and booleans that the schema requires, because all values of XML are strings. A conversion that would
   lose digits is not made.
3. If a required member is missing, the result is an error. The error's text reports that the API carried out the call.
4. If content is missing or is not JSON, the structured content is the empty object.

Only the keywords `type`, `properties`, `required`, `items`, `additionalProperties` and `enum` are checked, because
generated output schemas use no other keywords (`mcpfactory_codegen.describe.tool_schemas`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic_core import from_json

from mcpfactory_runtime.schemas.value_validation import TYPES, boolean_from_text, number_from_text
from mcpfactory_runtime.schemas.walk import items_schema_of, properties_of, required_of, types_of
from mcpfactory_runtime.server.generated.catalog import Catalog, CatalogError
from mcpfactory_runtime.server.registry import GeneratedTool, Tool
from mcpfactory_runtime.server.results import MAX_TEXT, ToolResult
from mcpfactory_runtime.server.signature import argument_binder
from mcpfactory_runtime.server.tool_output import Converter, unstructured_result
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context

_NAMED: Final = 5  # maximum number of shortened or missing parts that a note lists
_FORMAT: Final = 1  # supported version of `manifest.json`


class ManifestError(Exception):
    """Error for a manifest that is missing or damaged, or that has an unsupported format."""


def mount(
    catalog: Catalog,
    folder: Path,
    package: str,
    *,
    title: str,
    environ: Mapping[str, str],
    loaded: Callable[[Tool], None] | None = None,
) -> int:
    """Register the tools of a `_generated` folder, and return the number of tools in the manifest.

    `package` is the import name of the folder. `title` is the API's name if the manifest has no title. `loaded` is
    called with each single-operation tool after the tool's function is loaded.
    """
    path = folder / "manifest.json"
    try:
        manifest = from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"{path}: {error}\nhint: write the file again with `mcpfactory pipeline run NAME --until generate`"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("manifest") != _FORMAT:
        raise ManifestError(
            f"{path}: not a manifest of format {_FORMAT}\nhint: update mcpfactory-runtime, or generate the server again"
        )
    tools: list[Json] = manifest.get("tools", [])
    load = _Loader(package, loaded)
    rows = []
    for wire in tools:
        reference, operation = wire.pop("handler"), wire.pop("operation", "")
        loader = load.workflow if wire.pop("steps", None) else load
        tool = Tool(wire["name"], wire, partial(loader, reference=reference))
        rows.append(GeneratedTool(tool, operation, reference.partition(":")[0]))
    catalog.title = catalog.title or manifest.get("server", {}).get("title") or title
    catalog.add(rows, manifest.get("profiles", {}))
    try:
        catalog.select(manifest.get("mode"), manifest.get("profile"), manifest.get("dialect"))
    except CatalogError as error:
        raise ManifestError(f"{path}: {error}") from None
    catalog.select_from_environment(environ)
    if addresses := manifest.get("addresses"):
        catalog.notices += _notices(addresses, environ)
    return len(tools)


def _notices(addresses: Json, environ: Mapping[str, str]) -> list[str]:
    prefix = addresses["prefix"]
    if not environ.get(f"{prefix}_BASE_URL") and not environ.get("MCPFACTORY_BASE_URL"):
        return []
    from mcpfactory_runtime.upstream.operation import ServerAddress  # noqa: PLC0415 - few operators change the address
    from mcpfactory_runtime.upstream.secrets import Settings  # noqa: PLC0415 - as above
    from mcpfactory_runtime.upstream.servers import Addresses, unchanged_servers_notice  # noqa: PLC0415 - as above

    servers = [ServerAddress(name, url) for name, url in addresses["servers"].items()]
    notice = unchanged_servers_notice(Addresses(Settings(environ, prefix), addresses["base_url"], servers))
    return [f"warning: {notice}"] if notice else []


class _Loader:
    def __init__(self, package: str, loaded: Callable[[Tool], None] | None) -> None:
        self._package = package
        self._loaded = loaded
        self._upstream: Any = None

    def __call__(self, tool: Tool, *, reference: str) -> None:
        module, _, function = reference.partition(":")
        if self._upstream is None:
            self._upstream = import_module(f"{self._package}.api").upstream()
        handler = getattr(import_module(f"{self._package}.tools.{module}"), function)
        tool.bind = argument_binder(tool.wire["inputSchema"])
        tool.handler = partial(handler, self._upstream)
        if "outputSchema" in tool.wire:
            tool.convert = make_result_converter(tool.wire["outputSchema"])
        if self._loaded is not None:
            self._loaded(tool)
        tool.load = None

    def workflow(self, tool: Tool, *, reference: str) -> None:
        """Load the function of a workflow."""
        module, _, function = reference.partition(":")
        tool.bind = argument_binder(tool.wire["inputSchema"])
        tool.handler = getattr(import_module(f"{self._package}.{module}"), function)
        tool.context = "ctx"
        tool.convert = _bounded_result
        tool.load = None


def _bounded_result(value: Any) -> Json:
    from mcpfactory_runtime.upstream.truncate import dump_json, shorten  # noqa: PLC0415 - only for workflows

    size = len(dump_json(value))
    if size <= MAX_TEXT:
        return unstructured_result(value)
    shown, cuts = shorten(value, MAX_TEXT)
    result = unstructured_result(shown)
    kept = "; ".join(map(str, cuts[:_NAMED]))
    result["content"].append({"type": "text", "text": f"[Cut: the answer has {size:,} characters; this shows {kept}.]"})
    return result


Before = Callable[["ToolCall"], Awaitable[None] | None]
After = Callable[["ToolCall", "ToolResult"], "Awaitable[ToolResult | None] | ToolResult | None"]
Hook = TypeVar("Hook", bound=Callable[..., Any])

_CONTEXT: Final = " context"  # starts with a space, because argument names contain no space


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a generated tool. Hooks may change `arguments` in place."""

    name: str
    arguments: dict[str, Any]
    context: Context


class Hooks:
    """Hooks of a server: functions that run before and after calls of generated tools."""

    def __init__(self) -> None:
        self._before: list[tuple[frozenset[str], Before]] = []
        self._after: list[tuple[frozenset[str], After]] = []

    def add_before(self, names: tuple[str, ...], hook: Hook, known: Container[str]) -> Hook:
        """Register a hook that runs before the named tools, or before all tools if `names` is empty."""
        self._before.append((_checked(names, known), hook))
        return hook

    def add_after(self, names: tuple[str, ...], hook: Hook, known: Container[str]) -> Hook:
        """Register a hook that runs after the named tools, or after all tools if `names` is empty."""
        self._after.append((_checked(names, known), hook))
        return hook

    def wrap(self, tool: Tool) -> None:
        """Wrap the handler of a newly loaded tool in the tool's hooks."""
        before = [hook for names, hook in self._before if not names or tool.name in names]
        after = [hook for names, hook in self._after if not names or tool.name in names]
        inner = tool.handler
        if inner is None or not (before or after):
            return

        async def handler(**arguments: Any) -> Any:
            call = ToolCall(tool.name, arguments, arguments.pop(_CONTEXT))
            for before_hook in before:
                if isawaitable(pending := before_hook(call)):
                    await pending
            result: Any = await inner(**call.arguments)
            for after_hook in after:
                other = after_hook(call, result)
                result = (await other if isawaitable(other) else other) or result
            return result

        tool.handler, tool.context, tool.is_async = handler, _CONTEXT, True


def _checked(names: tuple[str, ...], known: Container[str]) -> frozenset[str]:
    for name in names:
        if name not in known:
            raise ValueError(
                f"unknown generated tool {name!r}\nhint: list the tools with `mcpfactory inspect`, and add hooks after "
                "mount_manifest"
            )
    return frozenset(names)


_DIGITS: Final = 17  # maximum digits of a fractional number; binary64 (IEEE 754) cannot represent more
_REMOVED: Final = object()


def make_result_converter(schema: Json) -> Converter:
    """Return a converter that makes results conform to a tool's output schema."""

    def convert(value: Any) -> Json:
        result = unstructured_result(value)
        if result.get("isError"):
            return {key: one for key, one in result.items() if key != "structuredContent"}
        structured = result.get("structuredContent", {})
        return _repaired(result, structured, schema)

    return convert


def _repaired(result: Json, structured: Any, schema: Json) -> Json:
    missing: dict[str, None] = {}
    absent: list[str] = []
    kept = _fit(structured, schema, "", missing, absent)
    if kept is _REMOVED:
        kept, absent = {}, required_of(schema)
    if absent:
        return {
            **{key: one for key, one in result.items() if key != "structuredContent"},
            "content": [*result["content"], _note(f"{_MISMATCH} {absent[0]} is missing. {_DONE}")],
            "isError": True,
        }
    content = result["content"]
    if missing:
        names = [name or "everything" for name in missing]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        content = [
            *content,
            _note(f"{_MISMATCH} {', '.join(names[:_NAMED])}{more} is not in the structured content."),
        ]
    return {**result, "content": content, "structuredContent": kept}


_MISMATCH: Final = "Note: the API's response does not match its document:"
_DONE: Final = "The call itself was carried out: do not repeat it because of this."


def _note(text: str) -> Json:
    return {"type": "text", "text": text}


def _fit(value: Any, schema: Any, place: str, missing: dict[str, None], absent: list[str]) -> Any:
    """Return the value without nonconforming parts, or `_REMOVED` if the value itself does not conform.

    Add the paths of removed parts to `missing`. Add the paths of missing required members to `absent`, outermost first.
    """
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, str) and not _is_of(value, schema):
        value = _scalar_from_text(value)
    if not _is_of(value, schema):
        if value is not None:
            missing[place] = None
        return _REMOVED
    if isinstance(value, dict):
        return _fit_object(value, schema, place, missing, absent)
    if isinstance(value, list):
        fitted = [_fit(one, items_schema_of(schema), f"{place}[]", missing, absent) for one in value]
        return [one for one in fitted if one is not _REMOVED]
    return value


def _scalar_from_text(text: str) -> Any:
    """Parse a text as a JSON number or boolean. Return the text if parsing fails or would lose digits."""
    found = number_from_text(text)
    if found is text:
        return boolean_from_text(text)
    exact = Decimal(text.strip())
    whole = exact == exact.to_integral_value()
    kept = exact == Decimal(repr(found)) if whole else len(exact.as_tuple().digits) <= _DIGITS
    return found if kept else text


def _fit_object(
    value: Json, schema: Mapping[str, Any], place: str, missing: dict[str, None], absent: list[str]
) -> Json:
    properties, more = properties_of(schema), schema.get("additionalProperties", True)
    kept: Json = {}
    for name, one in value.items():
        inner = f"{place}.{name}" if place else name
        known = properties.get(name, more)
        if known is False:
            missing[inner] = None
            continue
        fitted = _fit(one, known, inner, missing, absent)
        if fitted is not _REMOVED:
            kept[name] = fitted
    absent[:0] = [f"{place}.{name}" if place else name for name in required_of(schema) if name not in kept]
    return kept


def _is_of(value: Any, schema: Mapping[str, Any]) -> bool:
    kinds = types_of(schema)
    if kinds and not any(TYPES[one](value) for one in kinds if one in TYPES):
        return False
    values = schema.get("enum")
    return values is None or any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in values)
