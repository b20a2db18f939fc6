"""Records of a server's tools, resources, resource templates and prompts."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypedDict

from pydantic_core import Url, ValidationError

from mcpfactory_runtime.revisions import TASKS
from mcpfactory_runtime.server.dependencies import with_dependencies
from mcpfactory_runtime.server.signature import (
    InjectedParameter,
    Signature,
    generator_to_list,
    handler_parameter_names,
    is_async,
    read_signature,
    result_annotation,
    unwrap_partial,
)
from mcpfactory_runtime.server.tool_output import (
    Converter,
    check_structured_content,
    make_output_converter,
    unstructured_result,
)
from mcpfactory_runtime.server.uri_template import STRAY_PERCENT, UriTemplate, normalize_uri
from mcpfactory_runtime.types import Json

Handler = Callable[..., Any]
Meta = Mapping[str, Any] | None
Icons = Sequence[Mapping[str, Any]] | None


class PromptOptions(TypedDict, total=False):
    """Keyword arguments of prompts, tools and resources."""

    name: str | None
    title: str | None
    description: str | None
    icons: Icons
    meta: Meta


class ResourceOptions(PromptOptions, total=False):
    """Keyword arguments of `Server.resource`."""

    mime_type: str | None
    annotations: Meta
    size: int | None
    exempt_params: Collection[str]


class ToolOptions(PromptOptions, total=False):
    """Keyword arguments of `Tool.from_function`."""

    annotations: Meta
    structured: bool | None
    input_schema: Meta
    output_schema: Meta
    scopes: Sequence[str]
    task: Literal["optional", "required"] | None
    defer_task: bool
    inline: bool
    strict: bool
    timeout: float | None


_COMPLETED: Final = 3  # maximum number of arguments of a completion handler: reference, argument, context
_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
# A URI must begin with a scheme (RFC 3986 §3.1), or with a variable in place of the scheme.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.{}-]*:|\{")
_SIGNS: Final = str.maketrans("_-.", "xxx")


class Tool:
    """A tool, with its object in tools/list and its handler.

    Attributes:
        wire: the tool's object in tools/list, in the form of the newest revision.
        handler: the function to call, or None until `load` was called.
        bind: function that checks arguments and returns keyword arguments, or raises ArgumentsError.
        context: name of the parameter that takes the Context, or None.
        convert: function that converts the handler's return value to a result.
        load: function that sets `handler` and `bind` at the first call, or None.
        scopes: scopes that an access token must grant for calls over HTTP.
        task: "optional" if calls may be tasks, "required" if calls must be tasks, None if calls are never tasks.
        defer_task: True if the handler decides when the call becomes a task.
        inline: True runs a `def` handler on the event loop.
        timeout: seconds after which a call fails, or None for no limit.
        resolve_target: function that returns the called tool for given arguments, or None.
    """

    __slots__ = (
        *("bind", "context", "convert", "handler", "is_async", "load", "name", "scopes", "wire"),
        *("defer_task", "inline", "resolve_target", "task", "timeout"),
    )

    def __init__(self, name: str, wire: Json, load: Callable[[Tool], None] | None = None) -> None:
        self.name = name
        self.wire = wire
        self.load = load
        self.handler: Handler | None = None
        self.bind: Callable[[Json], Json] = dict
        self.context: str | None = None
        self.is_async = True
        self.convert: Converter = unstructured_result
        self.scopes: tuple[str, ...] = ()
        self.task: Literal["optional", "required"] | None = None
        self.defer_task = False
        self.inline = False
        self.timeout: float | None = None
        self.resolve_target: Callable[[Any], Tool | None] | None = None

    @classmethod
    def from_raw_handler(cls, name: str, wire: Json, handler: Handler) -> Tool:
        """Return a tool whose handler takes the unchecked `arguments` and `ctx`, and returns a complete result."""
        tool = cls(name, {**wire, "name": name})
        tool.handler, tool.context, tool.bind, tool.convert = handler, "ctx", _as_arguments, return_unchanged
        return tool

    @classmethod
    def from_function(
        cls,
        handler: Handler,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: Meta = None,
        icons: Icons = None,
        meta: Meta = None,
        structured: bool | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        scopes: Sequence[str] = (),
        task: Literal["optional", "required"] | None = None,
        defer_task: bool = False,
        inline: bool = False,
        strict: bool = False,
        timeout: float | None = None,
    ) -> Tool:
        """Return a tool from a function's name, signature and docstring (see `Server.tool`)."""
        handler = with_dependencies(handler)
        signature = read_signature(handler)
        wire = _described(
            check_tool_name(_handler_name(handler) if name is None else name), signature, title, description
        )
        try:
            convert, schema = make_output_converter(result_annotation(signature.returns), structured)
        except TypeError as error:
            raise TypeError(f"tool {wire['name']}: {error}") from error
        _check_hints(wire["name"], annotations or {})
        wire["inputSchema"] = dict(input_schema) if input_schema is not None else signature.schema
        for given in (input_schema, output_schema):
            if given is not None:
                _refuse_unusable(wire["name"], given)
        if "x-mcp-header" in str(wire["inputSchema"]):
            from mcpfactory_runtime.protocol.http import check_header_annotations  # noqa: PLC0415 - only for such tools

            check_header_annotations(wire["name"], wire["inputSchema"])
        if output_schema is not None:
            wire["outputSchema"] = dict(output_schema)
        elif schema is not None:
            wire["outputSchema"] = schema
        _add_extras(wire, annotations, icons, meta)
        tool = cls(wire["name"], wire)
        tool.handler = generator_to_list(handler)
        signature.reads_json_text = not strict
        tool.bind = signature.bind
        tool.context = signature.context
        tool.is_async = is_async(tool.handler)
        tool.inline, tool.timeout = inline, timeout
        _check_running(tool)
        if "outputSchema" in wire:
            convert = check_structured_content(convert, wire["outputSchema"], only_complete=output_schema is None)
        tool.convert = convert
        if scopes:
            from mcpfactory_runtime.auth.tokens import merge_scopes  # noqa: PLC0415 - only for tools that ask for scopes

            tool.scopes = merge_scopes(scopes)
        if task is not None:
            if task not in ("optional", "required"):
                raise ValueError(f"tool {tool.name}: task cannot be {task!r}\nhint: use 'optional' or 'required'")
            wire["execution"] = {"taskSupport": task}
            tool.task, tool.defer_task = task, defer_task
        elif defer_task:
            raise ValueError(f"tool {tool.name}: defer_task requires task\nhint: add task='optional' or 'required'")
        return tool


RunHandler = Callable[[Tool, Json, Callable[[], InjectedParameter]], Awaitable[Json]]
"""A function that calls a tool's handler, given the tool, the unchecked arguments and a context factory."""

Around = Callable[[Tool, Json, InjectedParameter, RunHandler], Awaitable[Json]]
"""A function that calls a tool inside its middleware."""


class GeneratedTool(NamedTuple):
    """A generated tool, its operation such as "GET /books/{id}", and its group. `operation` is "" if unknown."""

    tool: Tool
    operation: str
    group: str


class Resource:
    """A resource with a fixed URI."""

    __slots__ = ("handler", "is_async", "mime_type", "signature", "uri", "wire")

    def __init__(self, uri: str, handler: Handler, signature: Signature, wire: Json) -> None:
        self.uri = uri
        self.handler = handler
        self.signature = signature
        self.wire = wire
        self.mime_type: str | None = wire.get("mimeType")
        self.is_async = is_async(handler)


class Template(Resource):
    """A resource template. The handler's parameters are the variables of the URI template.

    Values of variables in `exempt_params` are passed to the handler unchecked.
    """

    __slots__ = ("exempt_params", "template")

    def __init__(
        self,
        template: UriTemplate,
        handler: Handler,
        signature: Signature,
        wire: Json,
        exempt_params: Collection[str] = (),
    ) -> None:
        super().__init__(template.text, handler, signature, wire)
        self.template = template
        self.exempt_params = frozenset(exempt_params)


class Prompt:
    """A prompt, with its object in prompts/list and the function that creates the messages."""

    __slots__ = ("handler", "is_async", "name", "signature", "wire")

    def __init__(self, handler: Handler, signature: Signature, wire: Json) -> None:
        self.name: str = wire["name"]
        self.handler = handler
        self.signature = signature
        self.wire = wire
        self.is_async = is_async(handler)


class CompletionHandler:
    """The completion handler of a server.

    The handler takes up to three values: reference, argument, completion context.
    """

    __slots__ = ("context", "handler", "is_async", "names")

    def __init__(self, handler: Handler) -> None:
        self.handler = handler = with_dependencies(handler)
        self.names, self.context = handler_parameter_names(handler)
        if len(self.names) > _COMPLETED:
            raise TypeError(
                f"completion takes at most {_COMPLETED} values and the Context, not "
                f"{', '.join(self.names)}\nhint: write def complete(ref, argument, context)"
            )
        self.is_async = is_async(handler)


class Registry:
    """Tools, resources, templates and prompts by name or URI, in the order of registration.

    Attributes:
        version: number that grows with every change. Cached data is valid for one version.
        completion: the completion handler, or None.
        generated: all generated tools by name. `tools` contains only the listed tools.
        declares_tools: True declares the capability `tools` even if no tool exists, as in a gateway.
        extensions: capability objects of protocol extensions by identifier.
        around: middleware around each tool call, or None.
        offers: function that returns True if clients may see a listed tool. None shows all listed tools.
    """

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.templates: dict[str, Template] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completion: CompletionHandler | None = None
        self.generated: dict[str, GeneratedTool] = {}
        self.declares_tools = False
        self.extensions: dict[str, Json] = {}
        self.around: Around | None = None
        self.offers: Callable[[Tool], bool] | None = None
        self.version = 0

    @property
    def callable_tools(self) -> Iterator[Tool]:
        """Yield every tool that can be called, directly or through another tool."""
        yield from self.tools.values()
        yield from (row.tool for name, row in self.generated.items() if name not in self.tools)

    def offered(self, collection: str) -> Mapping[str, Any]:
        """Return the items of a collection that clients can see, by name or URI."""
        items: dict[str, Any] = getattr(self, collection)
        if collection != "tools" or self.offers is None:
            return items
        return {name: tool for name, tool in items.items() if self.offers(tool)}

    def tool(self, name: str) -> Tool | None:
        """Return a listed or unlisted tool by name, or None."""
        row = self.generated.get(name)
        return self.tools.get(name) or (row.tool if row is not None else None)

    def resource(self, uri: str) -> Resource | None:
        """Return a resource by URI in any form, or None."""
        return self.resources.get(uri) or self.resources.get(normalize_uri(uri))

    def capabilities(self) -> Json:
        """Return the server's `capabilities`, with the members of all revisions.

        Projection removes members that the peer's revision lacks, such as `tasks` and `extensions`.
        """
        found: Json = {"logging": {}}
        extensions = dict(self.extensions)
        if self.tools or self.declares_tools:
            found["tools"] = {"listChanged": True}
        if self.resources or self.templates:
            found["resources"] = {"subscribe": True, "listChanged": True}
        if self.prompts:
            found["prompts"] = {"listChanged": True}
        if self.completion:
            found["completions"] = {}
        if any(tool.task is not None for tool in self.tools.values()):
            found["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
            extensions = {TASKS: {}, **extensions}
        if extensions:
            found["extensions"] = extensions
        return found

    def add(self, collection: dict[str, Any], key: str, item: Any) -> None:
        """Add an item to one of the collections."""
        if key in collection:
            other = "URI" if isinstance(item, Resource) else "name="
            raise ValueError(
                f"{type(item).__name__.lower()} {key!r} already exists\nhint: give one of them another {other}"
            )
        collection[key] = item
        self.version += 1

    def replace_tool(self, name: str, tool: Tool) -> None:
        """Replace a tool, and keep its position in the list."""
        if tool.name != name and (tool.name in self.tools or tool.name in self.generated):
            raise ValueError(f"tool {tool.name!r} already exists\nhint: give one of the two tools another name=")
        kept = [(known, tool if known == name else one) for known, one in self.tools.items()]
        self.tools.clear()
        self.tools.update((one.name if known == name else known, one) for known, one in kept)
        self.version += 1

    def remove(self, collection: dict[str, Any], key: str) -> None:
        """Remove an item from one of the collections."""
        del collection[key]
        self.version += 1


def registry_key(item: Tool | Resource | Prompt) -> str:
    """Return the registry key of an item, which is a URI or a name."""
    return item.uri if isinstance(item, Resource) else item.name


def make_resource(
    uri: str,
    handler: Handler,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    annotations: Meta = None,
    icons: Icons = None,
    meta: Meta = None,
    size: int | None = None,
    exempt_params: Collection[str] = (),
) -> Resource:
    """Return a resource, or a template if the URI has variables."""
    if not _SCHEME.match(uri):
        raise ValueError(
            f"resource {uri!r}: the URI has no scheme\nhint: write notes://today, or notes://{{id}} for many"
        )
    template = UriTemplate(uri)
    if not template.names:
        uri = _checked_uri(uri)
    handler = with_dependencies(handler)
    signature = read_signature(handler)
    own_name = name or _handler_name(handler)
    wanted, given = set(signature.names), set(template.names)
    if not signature.required <= given - template.optional or not given <= wanted:
        raise TypeError(
            f"resource {uri!r}: the variables {sorted(given)} do not match the parameters {sorted(wanted)} of "
            f"{own_name}\nhint: make every variable a parameter, and give every other parameter a default"
        )
    if unknown := sorted({exempt_params} if isinstance(exempt_params, str) else set(exempt_params) - given):
        raise TypeError(
            f"""resource {uri!r}: exempt_params contains {", ".join(unknown)}, which the URI does not contain\nhint: use only variables of the URI, such as {{"path"}}"""
        )
    wire: Json = {
        "uriTemplate" if template.names else "uri": uri,
        **_described(own_name, signature, title, description),
    }
    if mime_type is not None:
        wire["mimeType"] = mime_type
    if size is not None and not template.names:
        wire["size"] = size
    _add_extras(wire, annotations, icons, meta)
    if template.names:
        return Template(template, handler, signature, wire, exempt_params)
    return Resource(uri, handler, signature, wire)


def _checked_uri(uri: str) -> str:
    """Return the normal form of a URI, or raise ValueError for a URI that clients refuse."""
    if STRAY_PERCENT.search(uri):
        raise ValueError(f"resource {uri!r}: the URI has a % without two hexadecimal digits\nhint: write %25")
    normal = normalize_uri(uri)
    try:
        Url(normal)  # clients on the Python SDK parse every URI of a list in the same way
    except ValidationError as error:
        raise ValueError(
            f"resource {uri!r}: the URI is invalid: {error.errors()[0]['ctx']['error']}\nhint: write notes://today"
        ) from None
    return normal


def make_prompt(
    handler: Handler,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Icons = None,
    meta: Meta = None,
) -> Prompt:
    """Return a prompt from a function. The function's parameters become the prompt's arguments."""
    handler = with_dependencies(handler)
    signature = read_signature(handler)
    wire = _described(name or _handler_name(handler), signature, title, description)
    arguments = []
    for argument, schema in signature.schema["properties"].items():
        entry: Json = {"name": argument}
        if "description" in schema:
            entry["description"] = schema["description"]
        entry["required"] = argument in signature.required
        arguments.append(entry)
    if arguments:
        wire["arguments"] = arguments
    _add_extras(wire, None, icons, meta)
    return Prompt(handler, signature, wire)


def _described(name: str, signature: Signature, title: str | None, description: str | None) -> Json:
    wire: Json = {"name": name}
    if title is not None:
        wire["title"] = title
    text = signature.description if description is None else description
    if text:
        wire["description"] = text
    return wire


def _add_extras(wire: Json, annotations: Meta, icons: Icons, meta: Meta) -> None:
    if annotations is not None:
        wire["annotations"] = dict(annotations)
    if icons is not None:
        wire["icons"] = [dict(icon) for icon in icons]
    if meta is not None:
        wire["_meta"] = dict(meta)


def _as_arguments(arguments: Json) -> Json:
    return {"arguments": arguments}


def return_unchanged(result: Json) -> Json:
    """Return a result unchanged. Tools whose handlers return complete results use this converter."""
    return result


def _check_hints(tool: str, annotations: Mapping[str, Any]) -> None:
    if unknown := sorted(annotations.keys() - {"title", *_HINTS}):
        raise TypeError(f"tool {tool}: unknown annotation {', '.join(unknown)}\nhint: use title, {', '.join(_HINTS)}")
    for name in _HINTS:
        if not isinstance(annotations.get(name), bool | None):
            raise TypeError(f"tool {tool}: {name} cannot be {annotations[name]!r}\nhint: use True or False")


def _check_running(tool: Tool) -> None:
    if tool.inline and tool.is_async:
        hint = "`async def` runs on the event loop anyway"
        raise TypeError(f"tool {tool.name}: inline=True is for `def` functions without dependencies\nhint: {hint}")
    if tool.timeout is not None:
        if isinstance(tool.timeout, bool) or not isinstance(tool.timeout, int | float) or not tool.timeout > 0:
            raise ValueError(
                f"tool {tool.name}: timeout cannot be {tool.timeout!r}\nhint: set a number of seconds greater than 0"
            )
        if tool.inline:
            raise TypeError(
                f"tool {tool.name}: a timeout cannot stop a function that runs inline\nhint: remove inline=True"
            )


def check_tool_name(name: str) -> str:
    """Check a tool's name, and return the name (server/tools, Tool Names)."""
    if not (0 < len(name) <= 128 and name.isascii() and name.translate(_SIGNS).isalnum()):
        raise ValueError(
            f"{name!r} is not a valid tool name\nhint: set name= to 1 to 128 letters, digits, '_', '-' and '.'"
        )
    return name


def _refuse_unusable(name: str, schema: Mapping[str, Any]) -> None:
    from mcpfactory_runtime.schemas.references import UnusableSchemaError  # noqa: PLC0415 - only for tools with their own schemas
    from mcpfactory_runtime.schemas.validation import compile_schema  # noqa: PLC0415 - only for tools with their own schemas

    try:
        compile_schema(schema)
    except UnusableSchemaError as error:
        raise UnusableSchemaError(f"tool {name!r}: {error}") from None


def _handler_name(handler: Handler) -> str:
    handler = unwrap_partial(handler)
    name = getattr(handler, "__name__", None) or type(handler).__name__
    if name == "<lambda>":
        raise TypeError("a lambda has no name\nhint: set a name with name=")
    return str(name)
