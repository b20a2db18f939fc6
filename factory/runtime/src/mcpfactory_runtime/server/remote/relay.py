"""Relays for the tools, resources and prompts of a remote server.

A server of the per-request lifecycle asks a question by ending the request (`input_required`). The relay forwards the
question to the caller. When the answer arrives, the relay sends the call again from the start, with all earlier
answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.http_messages import TRACE_FIELDS, forwarded_trace_metadata
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_SERVER, Peer
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.revisions import MODERN, Revision
from mcpfactory_runtime.revisions.projection import project_to_revision
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.inputs import Argument, Completion, CompletionContext, Elicit, Question
from mcpfactory_runtime.server.registry import Prompt, Resource, Template, Tool
from mcpfactory_runtime.server.results import EmbeddedText
from mcpfactory_runtime.server.uri_template import normalize_uri
from mcpfactory_runtime.types import Json

PassOn = Callable[[str, Json, Context], Awaitable[Json]]
"""Function that forwards a request, given a method, params and the caller's context."""

# Error codes for a missing resource in all revisions (server/resources, Error Handling).
_NOT_FOUND: Final = {INVALID_PARAMS, -32002}


class RelayNames:
    """Map of remote names and URIs to local names and URIs.

    The base class keeps all names and URIs unchanged.
    """

    def name(self, inner: str) -> str:
        """Return the local name of a tool or prompt."""
        return inner

    def uri(self, inner: str) -> str:
        """Return the local URI or URI template."""
        return inner

    def inner_uri(self, uri: str) -> str:
        """Return the remote server's URI for a local URI."""
        return uri

    def content(self, block: Any) -> Any:
        """Return a content block with local URIs."""
        return block


_OWN: Final = RelayNames()


def relayed_tool(wire: Mapping[str, Any], pass_on: PassOn, names: RelayNames = _OWN) -> Tool:
    """Return a tool that relays calls. The remote server checks the arguments. Calls are never tasks."""
    inner = str(wire["name"])

    async def handler(arguments: Json, ctx: Context) -> Json:
        result = await pass_on("tools/call", {"name": inner, "arguments": arguments}, ctx)
        content = result.get("content", [])
        if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
            raise ToolError(f"Tool {inner} returned an invalid result: its content is not a list of blocks")
        return {**result, "content": [names.content(block) for block in content]}

    shown = {key: value for key, value in wire.items() if key != "execution"}
    return Tool.from_raw_handler(names.name(inner), shown, handler)


def relayed_prompt(wire: Mapping[str, Any], pass_on: PassOn, names: RelayNames = _OWN) -> Prompt:
    """Return a prompt that relays requests to the remote server."""
    inner = str(wire["name"])

    async def handler(arguments: Json, ctx: Context) -> list[Json]:
        result = await pass_on("prompts/get", {"name": inner, "arguments": arguments}, ctx)
        return [{**one, "content": names.content(one.get("content"))} for one in result.get("messages", [])]

    return Prompt(handler, _PromptArguments(), {**wire, "name": names.name(inner)})  # type: ignore[arg-type]  # only `bind` is used


def relayed_resource(wire: Mapping[str, Any], pass_on: PassOn, names: RelayNames = _OWN) -> Resource:
    """Return a resource that relays requests to the remote server."""
    uri = names.uri(str(wire["uri"]))
    reader = _ResourceReader(pass_on, names, uri)
    return Resource(normalize_uri(uri), reader, _UncheckedArguments(), {**wire, "uri": uri})  # type: ignore[arg-type]  # only `bind` is used


def relayed_template(
    wire: Mapping[str, Any], pass_on: PassOn, matches: Callable[[str], bool], names: RelayNames = _OWN
) -> Template:
    """Return a resource template that relays requests for the URIs that `matches` accepts."""
    text = names.uri(str(wire["uriTemplate"]))
    uris: Any = _RelayedUris(text, matches)  # has the methods of a URI template
    unchecked: Any = _UncheckedArguments()  # has the method `bind` of a signature
    return Template(uris, _ResourceReader(pass_on, names), unchecked, {**wire, "uriTemplate": text})


async def relayed_completion(
    pass_on: PassOn, reference: Json, argument: Argument, context: CompletionContext, ctx: Context
) -> Completion | None:
    """Return the remote server's completion, or None. `reference` contains names of the remote server."""
    params: Json = {"ref": reference, "argument": {"name": argument.name, "value": argument.value}}
    if context.arguments:
        params["context"] = {"arguments": context.arguments}
    try:
        result = await pass_on("completion/complete", params, ctx)
    except McpError as error:
        if error.code == METHOD_NOT_FOUND:
            return None
        raise
    values = result.get("completion", {})
    return Completion(values.get("values", []), values.get("total"), values.get("hasMore"))


class _ResourceReader:
    """Handler that reads a fixed URI, or the requested URI of a template."""

    def __init__(self, pass_on: PassOn, names: RelayNames, uri: str = "") -> None:
        self._pass_on, self._names, self._uri = pass_on, names, uri

    async def __call__(self, ctx: Context, uri: str = "") -> list[_Contents] | None:
        inner = self._names.inner_uri(uri or self._uri)
        try:
            result = await self._pass_on("resources/read", {"uri": inner}, ctx)
        except McpError as error:
            if error.code in _NOT_FOUND and isinstance(error.data, dict) and "uri" in error.data:
                return None
            raise
        return [
            _Contents({**one, "uri": self._names.uri(str(one.get("uri", "")))}) for one in result.get("contents", [])
        ]


class _Contents(EmbeddedText):
    __slots__ = ("_wire",)

    def __init__(self, wire: Json) -> None:
        super().__init__(wire["uri"], "")
        self._wire = wire

    def contents(self) -> Json:
        return self._wire


class _UncheckedArguments:
    """Replacement for a `Signature` that checks nothing, because the remote server checks the arguments."""

    context = "ctx"

    def bind(self, given: Json) -> Json:
        """Return keyword arguments for the handler: the URI of a template, or {} for a resource."""
        return dict(given)


class _PromptArguments(_UncheckedArguments):
    def bind(self, given: Json) -> Json:
        """Return all arguments as one keyword argument for the handler."""
        return {"arguments": given}


class _RelayedUris:
    """Replacement for a `UriTemplate` that recognizes URIs by a function."""

    def __init__(self, text: str, matches: Callable[[str], bool]) -> None:
        self.text, self._matches = text, matches

    def match(self, uri: str) -> Json | None:
        """Return the URI as an argument, or None if the URI does not match."""
        return {"uri": uri} if self._matches(uri) else None

    def unsafe(self, _values: Json, _exempt: object = ()) -> bool:
        """Return False, because the remote server checks the variables."""
        return False


_ROUNDS: Final = 20  # maximum rounds of questions per call
_FORWARDED: Final = ("elicitation", "sampling", "roots")  # capabilities of clients that can answer questions


def _same(value: Any) -> Any:
    return value


async def forward(
    client: Client,
    method: str,
    params: Json,
    ctx: Context,
    *,
    plain: Callable[[Any], Any] = _same,
    timeout: float | None = None,  # noqa: ASYNC109 - the client cancels the request at the server
) -> Json:
    """Forward a request to another server, and return the result without envelope.

    A server of the per-request lifecycle also gets the caller's capabilities, name and log level. The caller's access
    token is never forwarded. `plain` converts all data from the server. If `timeout` is None, wait until the caller
    cancels.
    """
    sent = {**params, "_meta": (_meta(ctx) if client.modern else {}) | _trace(ctx)}
    answered: Json = {}
    for number in range(1, _ROUNDS + 1):
        result = await client.request(method, {**sent, **answered}, timeout=timeout, progress=_progress(ctx, plain))
        if result.get("resultType", "complete") != "input_required":
            return without_envelope(cast("Json", plain(result)))
        wanted = plain(result.get("inputRequests") or {})
        answers = await ctx.ask(**{f"{number}.{key}": forwarded_question(one) for key, one in wanted.items()})
        answered = {"inputResponses": {key: answers[f"{number}.{key}"] for key in wanted}}
        if "requestState" in result:
            answered["requestState"] = result["requestState"]
    raise McpError(INTERNAL_ERROR, f"the server still asks for input after {_ROUNDS} rounds")


def forwarded_capabilities(ctx: Context) -> Json:
    """Return the caller's capabilities that remote servers may use."""
    return {name: value for name, value in ctx.client_capabilities.items() if name in _FORWARDED}


def forwarded_question(wanted: Any) -> Question[Any]:
    """Convert a server's question to a `Question` for a client."""
    method = wanted.get("method") if isinstance(wanted, dict) else None
    params = (wanted.get("params") or {}) if method else {}
    try:
        if method == "elicitation/create":
            page = params.get("url")
            return _ForwardedForm(params["message"], None if page else params["requestedSchema"], url=page)
        if method in {"sampling/createMessage", "roots/list"}:
            return _ForwardedQuestion(method, params)
    except (TypeError, KeyError) as error:
        raise McpError(INTERNAL_ERROR, f"the server sent an invalid question: {error}") from None
    raise McpError(INTERNAL_ERROR, f"the server sent the request {method!r}, which clients do not support")


def _meta(ctx: Context) -> Json:
    # For a handshake client, request all levels, because `ctx.log` drops unwanted levels.
    level = ctx.meta.get(META_LOG_LEVEL) if ctx.revision in MODERN else "debug"
    known = {META_CAPABILITIES: forwarded_capabilities(ctx)} | (
        {META_CLIENT: ctx.client_info} if ctx.client_info else {}
    )
    return known | ({META_LOG_LEVEL: level} if level else {})


def _trace(ctx: Context) -> Json:
    """Return the trace fields of the current span. Without a span, return the client's trace fields."""
    meta = ctx.meta
    return forwarded_trace_metadata(ctx.headers if meta.keys().isdisjoint(TRACE_FIELDS) else meta)


def _progress(ctx: Context, plain: Callable[[Any], Any]) -> Callable[[Json], Any] | None:
    if "progressToken" not in ctx.meta:
        return None

    def report(params: Json) -> None:
        ctx.report_progress(params["progress"], params.get("total"), plain(params.get("message")))

    return report


def without_envelope(result: Json) -> Json:
    """Return a result without its envelope."""
    bare = {key: value for key, value in result.items() if key not in {"resultType", "_meta", "ttlMs", "cacheScope"}}
    meta = {key: value for key, value in (result.get("_meta") or {}).items() if key != META_SERVER}
    return {**bare, "_meta": meta} if meta else bare


class _ForwardedForm(Elicit):
    """An elicitation whose answer the remote server checks."""

    def read(self, answer: Json) -> Any:
        return answer


class _ForwardedQuestion(Question[Json]):
    kind = "passed"

    def __init__(self, method: str, params: Json) -> None:
        self.method, self._params = method, params

    def required_capability(self, revision: Revision) -> tuple[str, ...]:
        if self.method == "roots/list":
            return ("roots",)
        return ("sampling", "tools") if "tools" in self._params else ("sampling",)

    def params(self, peer: Peer) -> Json:
        name = METHODS[self.method].params
        return project_to_revision(self._params, name, peer.revision) if name else {}

    def read(self, answer: Json) -> Json:
        return answer
