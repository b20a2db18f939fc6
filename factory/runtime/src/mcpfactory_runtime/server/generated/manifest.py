"""Generated tools: listed from `manifest.json`, imported at the first call, with the owner's hooks.

Lazy imports let a server with a thousand tools start as fast as one with three. The format is described in
docs/architecture.md, "Generated server".

    @server.before("list_books")
    def few_at_a_time(call: ToolCall) -> None:
        call.arguments.setdefault("limit", 20)

A hook before a call may change the arguments, which are already validated, or raise `ToolError` to refuse the
call. A hook after a call may return a different result. Hooks run in the order of their definition, including
for calls through search mode, as a task, or by `Context.call`. They apply to generated tools only; handwritten
tools do not need hooks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from inspect import isawaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic_core import from_json

from mcpfactory_runtime.server.generated.catalogue import Catalogue, CatalogueError
from mcpfactory_runtime.server.output import Converter, free_result
from mcpfactory_runtime.server.registry import GeneratedTool, Tool
from mcpfactory_runtime.server.signature import argument_binder
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.context import Context
    from mcpfactory_runtime.server.results import ToolResult


_SHOWN: Final = 5  # places that were cut, which are named
_FORMAT: Final = 1


class ManifestError(Exception):
    """The manifest is missing, damaged, or of another format. The message says how to repair it."""


def mount(
    catalogue: Catalogue,
    folder: Path,
    package: str,
    *,
    title: str,
    environ: Mapping[str, str],
    loaded: Callable[[Tool], None] | None = None,
) -> int:
    """Register the tools of a `_generated` folder, in the mode and the profile that are asked for.

    Args:
        catalogue: where the tools go.
        folder: the `_generated` package directory; its `manifest.json` is read now.
        package: the import name of that directory.
        title: what the API is called when the manifest does not say.
        environ: MCPFACTORY_MODE, MCPFACTORY_PROFILE and MCPFACTORY_DIALECT in it win over what the manifest says.
        loaded: is called with each tool of one operation whose function was loaded.

    Returns:
        How many tools there are.

    Raises:
        ManifestError: see there.
        ValueError: a name is taken.
    """
    path = folder / "manifest.json"
    try:
        manifest = from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ManifestError(
            f"{path}: {error}\nhint: `mcpfactory pipeline run NAME --until generate` writes it anew"
        ) from None
    if not isinstance(manifest, dict) or manifest.get("manifest") != _FORMAT:
        raise ManifestError(
            f"{path}: not a manifest of format {_FORMAT}\nhint: update mcpfactory-runtime or regenerate"
        )
    tools: list[Json] = manifest.get("tools", [])
    load = _Loader(package, loaded)
    rows = []
    for wire in tools:
        reference, operation = wire.pop("handler"), wire.pop("operation", "")
        how = load.workflow if wire.pop("steps", None) else load
        tool = Tool(wire["name"], wire, partial(how, reference=reference))
        rows.append(GeneratedTool(tool, operation, reference.partition(":")[0]))
    catalogue.title = catalogue.title or manifest.get("server", {}).get("title") or title
    catalogue.add(rows, manifest.get("profiles", {}))
    try:
        catalogue.select(manifest.get("mode"), manifest.get("profile"), manifest.get("dialect"))
    except CatalogueError as error:
        raise ManifestError(f"{path}: {error}") from None
    catalogue.select_from_environment(environ)
    if addresses := manifest.get("addresses"):
        catalogue.notices += _notices(addresses, environ)
    return len(tools)


def _notices(addresses: Json, environ: Mapping[str, str]) -> list[str]:
    """Return warnings about the API's addresses for the operator."""
    prefix = addresses["prefix"]
    if not environ.get(f"{prefix}_BASE_URL") and not environ.get("MCPFACTORY_BASE_URL"):
        return []
    from mcpfactory_runtime.upstream.operation import ServerAddress  # noqa: PLC0415 - few APIs are moved
    from mcpfactory_runtime.upstream.secrets import Settings  # noqa: PLC0415 - as above
    from mcpfactory_runtime.upstream.servers import Addresses, unmoved_notice  # noqa: PLC0415 - as above

    servers = [ServerAddress(name, url) for name, url in addresses["servers"].items()]
    notice = unmoved_notice(Addresses(Settings(environ, prefix), addresses["base_url"], servers))
    return [f"warning: {notice}"] if notice else []


class _Loader:
    """Loads a generated tool's function; all of one package share the upstream client."""

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
            tool.convert = _converter(tool.wire["outputSchema"])
        if self._loaded is not None:
            self._loaded(tool)
        tool.load = None

    def workflow(self, tool: Tool, *, reference: str) -> None:
        """Load a workflow: it calls them by way of the context."""
        module, _, function = reference.partition(":")
        tool.bind = argument_binder(tool.wire["inputSchema"])
        tool.handler = getattr(import_module(f"{self._package}.{module}"), function)
        tool.context = "ctx"
        tool.convert = _bounded_result
        tool.load = None


def _converter(schema: Json) -> Converter:
    from mcpfactory_runtime.server.generated.conform import conforming  # noqa: PLC0415 - only for generated tools

    return conforming(schema)


def _bounded_result(value: Any) -> Json:
    """Return a workflow's result, shortened to the size limit of API responses."""
    from mcpfactory_runtime.upstream.secrets import MAX_TEXT  # noqa: PLC0415 - as above
    from mcpfactory_runtime.upstream.truncate import compact, shorten  # noqa: PLC0415 - only for workflows

    size = len(compact(value))
    if size <= MAX_TEXT:
        return free_result(value)
    shown, cuts = shorten(value, MAX_TEXT)
    result = free_result(shown)
    said = "; ".join(map(str, cuts[:_SHOWN]))
    result["content"].append({"type": "text", "text": f"[Cut: the answer has {size:,} characters; this shows {said}.]"})
    return result


Before = Callable[["ToolCall"], Awaitable[None] | None]
After = Callable[["ToolCall", "ToolResult"], "Awaitable[ToolResult | None] | ToolResult | None"]
Hook = TypeVar("Hook", bound=Callable[..., Any])

_CONTEXT: Final = " context"  # no argument of a tool has a space


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a generated tool. `arguments` may be changed in place."""

    name: str
    arguments: dict[str, Any]
    context: Context


class Hooks:
    """The hooks of a server, by the name of the tool; "" for all generated tools."""

    def __init__(self) -> None:
        self._before: list[tuple[frozenset[str], Before]] = []
        self._after: list[tuple[frozenset[str], After]] = []

    def add_before(self, names: tuple[str, ...], hook: Hook, known: Container[str]) -> Hook:
        """Register a hook.

        Raises:
            ValueError: a name is that of no generated tool.
        """
        self._before.append((_checked(names, known), hook))
        return hook

    def add_after(self, names: tuple[str, ...], hook: Hook, known: Container[str]) -> Hook:
        """Register a hook.

        Raises:
            ValueError: a name is that of no generated tool.
        """
        self._after.append((_checked(names, known), hook))
        return hook

    def wrap(self, tool: Tool) -> None:
        """Put the hooks of a tool that was just loaded around its handler."""
        before = [hook for names, hook in self._before if not names or tool.name in names]
        after = [hook for names, hook in self._after if not names or tool.name in names]
        inner = tool.handler
        if inner is None or not (before or after):
            return

        async def handler(**arguments: Any) -> Any:
            call = ToolCall(tool.name, arguments, arguments.pop(_CONTEXT))
            for early in before:
                if isawaitable(waiting := early(call)):
                    await waiting
            result: Any = await inner(**call.arguments)
            for late in after:
                other = late(call, result)
                result = (await other if isawaitable(other) else other) or result
            return result

        tool.handler, tool.context, tool.is_async = handler, _CONTEXT, True


def _checked(names: tuple[str, ...], known: Container[str]) -> frozenset[str]:
    for name in names:
        if name not in known:
            raise ValueError(
                f"there is no generated tool {name!r}\nhint: `mcpfactory inspect` lists them; hooks come after mount_manifest"
            )
    return frozenset(names)
