"""Dispatch of requests by method.

An `Answer` returns a result, or an awaitable of a result, in the form of the newest revision. The dispatcher projects
the result to the peer's revision and adds the envelope. Encoded lists are cached by revision and cursor, unless
middleware surrounds the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.connection import LOG_LEVELS, META_SERVER, META_SUBSCRIPTION, Call
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.protocol.methods import CALL_TOOL, METHODS
from mcpfactory_runtime.revisions import SUPPORTED, Revision
from mcpfactory_runtime.revisions.projection import RESULT_TYPES, project_to_revision, project_tool_result
from mcpfactory_runtime.schemas.client_limits import dialect_limits
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.errors import InputRequired, ToolError, exception_text, is_keyboard_interrupt
from mcpfactory_runtime.server.execution import is_fast_path_tool, run_fast_path, run_tool
from mcpfactory_runtime.server.inputs import read_completion_request, to_completion_object
from mcpfactory_runtime.server.lists import SubscriptionFilter, page
from mcpfactory_runtime.server.middleware.layers import Layer, MiddlewareStack, Request, call_through_layers
from mcpfactory_runtime.server.registry import Tool
from mcpfactory_runtime.server.resources_prompts import (
    bind_prompt_arguments,
    find_resource,
    to_prompt_messages,
    to_resource_contents,
    uri_of,
)
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.server.uri_template import normalize_uri
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.extensions import Extensions
    from mcpfactory_runtime.server.interfaces import Outcome, ReplyChannel, ServerInterface


Answer = Callable[[Call, "ReplyChannel"], Json | Awaitable[Json]]

log = logging.getLogger(__name__)

# method → (collection of the registry, member of the result)
_LISTS: Final[dict[str, tuple[str, str]]] = {
    "tools/list": ("tools", "tools"),
    "resources/list": ("resources", "resources"),
    "resources/templates/list": ("templates", "resourceTemplates"),
    "prompts/list": ("prompts", "prompts"),
}


class Dispatcher:
    """Dispatcher of the requests to one server."""

    def __init__(self, host: ServerInterface, extensions: Extensions, layers: MiddlewareStack) -> None:
        self._host = host
        self._layers = layers
        self._extensions = extensions
        self._registry = self.registry = host.registry
        self._cache: dict[tuple[str, str, Any], bytes] = {}
        self._cache_version = -1
        self._adapted: tuple[int, dict[str, Json]] = (-1, {})  # the registry's version, and its tools in the dialect
        self._info: dict[str, Json] = {}
        self._contexts: dict[Call, Context] = {}  # contexts of the requests that middleware is handling
        self._methods: dict[str, Answer] = {
            CALL_TOOL: self._call_tool,
            "tools/list": self._list,
            "resources/list": self._list,
            "resources/templates/list": self._list,
            "prompts/list": self._list,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "initialize": self._initialize,
            "server/discover": self._discover,
            "subscriptions/listen": self._listen,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            **dict.fromkeys(("tasks/get", "tasks/result", "tasks/list", "tasks/update", "tasks/cancel"), self._task),
            **dict.fromkeys(("skills/list", "skills/get", "resources/directory/read"), self._skill),
        }

    def handle(self, call: Call, channel: ReplyChannel) -> Outcome:
        """Return the result of a call, or an awaitable of the result."""
        method = call.method
        answer = self._methods.get(method)
        capability = METHODS[method].capability
        if answer is None or (capability and capability not in self._host.capabilities):
            raise McpError(METHOD_NOT_FOUND, f"Method not found: {method}")
        if self._layers.requests and (around := self._layers.around_request(method)):
            return self._finished(call, self._run_through(around, answer, call, channel))
        if method in _LISTS:
            return self._encoded_list(call)
        outcome = answer(call, channel)
        return self._final(call, outcome) if isinstance(outcome, dict) else self._finished(call, outcome)

    async def _run_through(self, around: list[Layer], answer: Answer, call: Call, channel: ReplyChannel) -> Json:
        context = self._contexts[call] = self._context(call, channel)
        settled = False

        async def innermost(request: Request) -> Json:
            nonlocal settled
            call.params = request.params
            outcome = answer(call, channel)
            result = outcome if isinstance(outcome, dict) else await outcome
            settled = settled or type(result) is ProjectedResult
            return result

        try:
            result = await call_through_layers(around, Request(call.method, call.params, context), innermost)
        except InputRequired as asked:
            return ProjectedResult(context.input_required(asked))
        finally:
            del self._contexts[call]
            context.end()
        return ProjectedResult(result) if settled else result

    async def _finished(self, call: Call, outcome: Awaitable[Json]) -> Json:
        return self._final(call, await outcome)

    def _final(self, call: Call, result: Json) -> Json:
        """Project a result to the peer's revision, and add the envelope (basic/index, Results; utilities/caching)."""
        revision = call.peer.revision
        if type(result) is not ProjectedResult:
            if call.method == CALL_TOOL:
                result = project_tool_result(result, revision)
            elif call.method in RESULT_TYPES:
                result = project_to_revision(result, RESULT_TYPES[call.method], revision)
        if revision.result_type:
            result.setdefault("resultType", "complete")
            meta = result.get("_meta")
            info = self._info.get(revision.name)
            if info is None:
                info = self._info[revision.name] = project_to_revision(self._host.info, "Implementation", revision)
            result["_meta"] = {META_SERVER: info} if meta is None else {META_SERVER: info, **meta}
            if call.method in revision.cacheable and result["resultType"] == "complete":
                result["ttlMs"], result["cacheScope"] = self._host.cache
        return result

    # -- tools ---------------------------------------------------------------------------------------------------

    def _call_tool(self, call: Call, channel: ReplyChannel) -> Awaitable[Json]:
        bucket = channel.allowance.calls
        if bucket is not None and not bucket.take():
            raise bucket.refusal("calls")
        tool, arguments = self._find_tool(call)
        if tool.task is not None or "task" in call.params:
            tasks = self._extensions.tasks if "tasks" in self._host.capabilities else None
            if tasks is not None and tasks.becomes_task(tool, call):
                return _settled(tasks.call_tool(tool, arguments, call, channel))
        return self._run_tool(tool, arguments, call, channel)

    def _find_tool(self, call: Call) -> tuple[Tool, Json]:
        registry, name = self._registry, call.params.get("name")
        tool = registry.tools.get(name) if type(name) is str else None
        if tool is None or (registry.offers is not None and not registry.offers(tool)):
            raise McpError(INVALID_PARAMS, f"Unknown tool: {name!r}")
        arguments = call.params.get("arguments")
        if arguments is None:
            arguments = {}
        elif type(arguments) is not dict:
            raise McpError(INVALID_PARAMS, "Invalid params: arguments must be an object")
        return tool, arguments

    def fast_path_runner(self, call: Call, channel: ReplyChannel) -> Callable[[], Json | McpError] | None:
        """Return a function that runs a tool call in any thread, or None if `handle` must run the call."""
        if self._layers.requests or self._registry.around is not None or "task" in call.params:
            return None
        try:
            tool, arguments = self._find_tool(call)
            if tool.task is not None or not is_fast_path_tool(tool):
                return None
        except McpError:  # `handle` raises the error again
            return None
        bucket = channel.allowance.calls
        if bucket is not None and not bucket.take():
            return None

        def run() -> Json | McpError:
            try:
                return self._final(call, run_fast_path(tool, arguments))
            except McpError as error:
                return error
            except Exception:
                log.exception("%s failed", call.method)
                return McpError(INTERNAL_ERROR, "Internal error")

        return run

    async def _run_tool(self, tool: Tool, arguments: Json, call: Call, channel: ReplyChannel) -> Json:
        context = None

        def make_context() -> Context:
            nonlocal context
            context = self._context(call, channel)
            return context

        try:
            return await run_tool(tool, arguments, make_context, self._registry.around)
        except InputRequired as asked:
            return _asking(context, asked)
        finally:
            if context is not None:
                self._end(context, call)

    # -- extensions ----------------------------------------------------------------------------------------------

    def _task(self, call: Call, channel: ReplyChannel) -> Awaitable[Json]:
        bucket = channel.allowance.tasks
        if bucket is not None and not bucket.take():
            raise bucket.refusal("tasks")
        return _settled(self._extensions.tasks.answer(call, channel))

    def _skill(self, call: Call, channel: ReplyChannel) -> Awaitable[Json]:
        return _settled(self._extensions.skills.answer(call))

    # -- resources, prompts, completion --------------------------------------------------------------------------

    async def _read_resource(self, call: Call, channel: ReplyChannel) -> Json:
        resource, uri, bound = find_resource(self._registry, call)
        value = await self._run(resource, resource.signature.context, bound, call, channel)
        if type(value) is ProjectedResult:
            return value
        return {"contents": to_resource_contents(value, uri, resource.mime_type, call.peer.revision)}

    async def _get_prompt(self, call: Call, channel: ReplyChannel) -> Json:
        name = call.params.get("name")
        prompt = self._registry.prompts.get(name) if type(name) is str else None
        if prompt is None:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {name!r}")
        bound = bind_prompt_arguments(prompt, call.params)
        value = await self._run(prompt, prompt.signature.context, bound, call, channel)
        if type(value) is ProjectedResult:
            return value
        result: Json = {"messages": to_prompt_messages(value)}
        if "description" in prompt.wire:
            result["description"] = prompt.wire["description"]
        return result

    async def _complete(self, call: Call, channel: ReplyChannel) -> Json:
        bucket = channel.allowance.completions
        if bucket is not None and not bucket.take():
            raise bucket.refusal("completions")
        completer = self._registry.completion
        assert completer is not None
        request = read_completion_request(call.params)
        if request[0].type == "ref/prompt" and request[0].name not in self._registry.prompts:
            raise McpError(INVALID_PARAMS, f"Unknown prompt: {request[0].name!r}")
        bound = dict(zip(completer.names, request, strict=False))
        value = await self._run(completer, completer.context, bound, call, channel)
        return value if type(value) is ProjectedResult else {"completion": to_completion_object(value)}

    async def _run(self, record: Any, context_name: str | None, bound: Json, call: Call, channel: ReplyChannel) -> Any:
        """Call a handler, and replace unexpected exceptions with a generic error."""
        context = None
        if context_name is not None:
            context = bound[context_name] = self._context(call, channel)
        try:
            return await (record.handler(**bound) if record.is_async else in_thread(record.handler, bound))
        except (McpError, asyncio.CancelledError):
            raise
        except ToolError as error:
            raise McpError(INTERNAL_ERROR, exception_text(error)) from None
        except InputRequired as asked:
            return _asking(context, asked)
        except BaseException as error:
            if is_keyboard_interrupt(error):
                raise
            log.exception("%s failed", call.method)
            raise McpError(INTERNAL_ERROR, "Internal error; see the server's log") from None
        finally:
            if context is not None:
                self._end(context, call)

    # -- lists ---------------------------------------------------------------------------------------------------

    def _list(self, call: Call, channel: ReplyChannel | None = None) -> Json:
        collection, member = _LISTS[call.method]
        offered = self._registry.offered(collection)
        if collection == "tools":
            items = self._in_dialect(offered)
        else:
            items = {name: item.wire for name, item in offered.items()}
        chosen, following = page(items, call.params, self._host.page_size)
        result: Json = {member: chosen}
        if following is not None:
            result["nextCursor"] = following
        return result

    def _in_dialect(self, tools: Mapping[str, Tool]) -> dict[str, Json]:
        if self._registry.version != self._adapted[0]:
            from mcpfactory_runtime.schemas.client_dialects import adapt_tool  # noqa: PLC0415 - at the first tools/list

            limits = dialect_limits(self._extensions.dialect)
            adapted = {name: adapt_tool(tool.wire, limits) for name, tool in tools.items()}
            self._adapted = self._registry.version, adapted
        return self._adapted[1]

    def _encoded_list(self, call: Call) -> bytes:
        version = self._registry.version
        if version != self._cache_version:
            self._cache.clear()
            self._cache_version = version
        params, revision = call.params, call.peer.revision
        cursor = params.get("cursor", "") if type(params.get("cursor", "")) is str else None
        key = (call.method, revision.name, cursor if "cursor" in params else None)
        known = self._cache.get(key) if cursor is not None else None
        if known is not None:
            return known
        encoded = jsonrpc.encode(self._final(call, self._list(call)))
        self._cache[key] = encoded
        return encoded

    # -- lifecycle -----------------------------------------------------------------------------------------------

    def _initialize(self, call: Call, channel: ReplyChannel) -> Json:
        revision = call.peer.revision
        capabilities = self._host.capabilities
        if "tasks" in capabilities and not (channel.private or channel.principal):
            # Clients that cannot be distinguished must not list tasks (basic/utilities/tasks, Task Isolation).
            tasks = {name: value for name, value in capabilities["tasks"].items() if name != "list"}
            capabilities = {**capabilities, "tasks": tasks}
        result: Json = {
            "protocolVersion": revision.name,
            "capabilities": capabilities,
            "serverInfo": self._host.info,
        }
        if self._host.instructions:
            result["instructions"] = self._host.instructions
        return result

    def _discover(self, call: Call, channel: ReplyChannel) -> Json:
        result: Json = {"supportedVersions": SUPPORTED, "capabilities": self._host.capabilities}
        if self._host.instructions:
            result["instructions"] = self._host.instructions
        return result

    def _ping(self, call: Call, channel: ReplyChannel) -> Json:
        return {}

    def _set_level(self, call: Call, channel: ReplyChannel) -> Json:
        level = call.params.get("level")
        number = LOG_LEVELS.get(level) if type(level) is str else None
        if number is None:
            raise McpError(INVALID_PARAMS, f"Invalid params: level must be one of {', '.join(LOG_LEVELS)}")
        call.peer.log_level = number
        return {}

    # -- changes -------------------------------------------------------------------------------------------------

    def _subscribe(self, call: Call, channel: ReplyChannel) -> Json:
        uri = uri_of(call)
        channel.subscriptions.add(normalize_uri(uri))
        self._host.record_subscription(uri)
        return {}

    def _unsubscribe(self, call: Call, channel: ReplyChannel) -> Json:
        channel.subscriptions.discard(normalize_uri(uri_of(call)))
        return {}

    async def _listen(self, call: Call, channel: ReplyChannel) -> Json:
        chosen = SubscriptionFilter(call.params, self._host.capabilities)
        tag = {META_SUBSCRIPTION: call.id}
        tasks = []
        if chosen.task_ids is not None and "tasks" in self._host.capabilities:
            tasks = await self._extensions.tasks.visible_tasks(chosen.task_ids, call, channel)
            chosen.honoured["taskIds"] = [task.id for task in tasks]
        revision = call.peer.revision
        acknowledged = {"_meta": tag, "notifications": chosen.honoured}
        channel.notify("notifications/subscriptions/acknowledged", acknowledged, revision)
        stream = _ListenStream(channel, chosen, tag, revision)
        for uri in chosen.honoured.get("resourceSubscriptions", ()):
            self._host.record_subscription(uri)
        self._host.hub.add(stream)
        stop = self._extensions.tasks.listen(tasks, call, channel, tag) if tasks else None
        try:
            await self._host.closing.wait()
        finally:
            self._host.hub.discard(stream)
            if stop is not None:
                stop()
        return {"_meta": dict(tag)}

    # -- results -------------------------------------------------------------------------------------------------

    def _context(self, call: Call, channel: ReplyChannel) -> Context:
        return self._contexts.get(call) or Context(self._host, call, channel, asyncio.get_running_loop())

    def _end(self, context: Context, call: Call) -> None:
        if self._contexts.get(call) is not context:
            context.end()


class ProjectedResult(dict[str, Any]):
    """A result that already has the form of the peer's revision, such as a task or a question to the client."""

    __slots__ = ()


async def _settled(answer: Awaitable[Json]) -> ProjectedResult:
    return ProjectedResult(await answer)


def _asking(context: Context | None, asked: InputRequired) -> ProjectedResult:
    assert context is not None, "only a context can ask"
    return ProjectedResult(context.input_required(asked))


class _ListenStream:
    __slots__ = ("_channel", "_filter", "_revision", "_tag")

    def __init__(self, channel: ReplyChannel, chosen: SubscriptionFilter, tag: Json, revision: Revision) -> None:
        self._channel, self._filter, self._tag, self._revision = channel, chosen, tag, revision

    def publish(self, method: str, params: Json) -> None:
        if self._filter.wants(method, params):
            self._channel.notify(method, {"_meta": self._tag, **params}, self._revision)
