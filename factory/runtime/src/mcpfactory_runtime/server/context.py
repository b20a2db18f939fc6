"""`Context`: data and operations for the handler of a request."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from mcpfactory_runtime.protocol.connection import LOG_LEVELS, Peer
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY, McpError
from mcpfactory_runtime.protocol.jsonrpc import RequestId
from mcpfactory_runtime.revisions.projection import project_to_revision
from mcpfactory_runtime.server.errors import InputRequired, ToolError
from mcpfactory_runtime.server.execution import call_other
from mcpfactory_runtime.server.inputs import Elicit, Elicited, Question, Root, Roots, Sample, Sampled
from mcpfactory_runtime.server.resources_prompts import get_local_prompt, read_local_resource
from mcpfactory_runtime.server.results import Message
from mcpfactory_runtime.server.signature import InjectedParameter
from mcpfactory_runtime.server.threads import waiting
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.auth.tokens import Principal
    from mcpfactory_runtime.protocol.connection import Call
    from mcpfactory_runtime.server.consent import Consent
    from mcpfactory_runtime.server.interfaces import HttpRequest, ReplyChannel, ServerInterface, SessionChannel
    from mcpfactory_runtime.server.request_state import OpenedState

Value = TypeVar("Value")

# Log level for handshake clients that set no level (server/utilities/logging).
_DEFAULT_LEVEL: Final = LOG_LEVELS["info"]


class _Done:
    """Awaitable without effect, which notifications such as `ctx.info(…)` return."""

    def __await__(self) -> Generator[None]:
        return
        yield


_DONE: Final = _Done()


class Context(InjectedParameter):
    """The request that a handler serves: `async def search(query: str, ctx: Context)`.

    The server passes the context to each parameter with the annotation `Context`. `await` before a notification such as
    `ctx.info(…)` is optional. `def` handlers can also send notifications.
    """

    def __init__(
        self, server: ServerInterface, call: Call, channel: ReplyChannel, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._server = server
        self._call = call
        self._channel = channel
        self._origin = channel  # unlike `_channel`, unchanged when the call becomes a task
        self._loop = loop
        self._thread = threading.get_ident()
        self._answers: Json | None = None
        self._unasked: Json = {}  # answers to questions that the handler has not asked yet
        self._opened: OpenedState | None = None  # content of the request's `requestState`; None after the first use
        self._used: Json = {}
        self._count = 0
        self._reported = float("-inf")
        self._pending_progress: Json | None = None  # newest progress notification that the rate limit delayed
        self._ended = False

    @property
    def request_id(self) -> RequestId:
        """Return the request's JSON-RPC ID."""
        return self._call.id

    @property
    def revision(self) -> str:
        """Return the protocol revision of this request."""
        return self._call.peer.revision.name

    @property
    def client_info(self) -> Json:
        """Return the client's unverified `Implementation` object, or {} if the client sent none."""
        return self._call.peer.info

    @property
    def client_capabilities(self) -> Json:
        """Return the capabilities that the client declared for this request."""
        return self._call.peer.capabilities

    @property
    def meta(self) -> Json:
        """Return the request's `_meta`, or {} if the request has no `_meta`."""
        meta = self._call.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def principal(self) -> Principal | None:
        """Return the caller that the access token identifies. Return None on stdio, or without authorization."""
        from mcpfactory_runtime.auth.tokens import Principal  # noqa: PLC0415 - only for handlers that ask

        principal = self._channel.principal
        return principal if isinstance(principal, Principal) else None

    @property
    def server(self) -> ServerInterface:
        """Return the server to which the handler belongs."""
        return self._server

    @property
    def state(self) -> Any:
        """Return the value yielded by the server's lifespan, or None if the server has no lifespan."""
        return self._server.state

    @property
    def headers(self) -> Mapping[str, str]:
        """Return the HTTP headers by lowercase name, or {} on other transports. The header Authorization is omitted."""
        request: HttpRequest | None = self._call.http
        return {} if request is None else request.headers

    @property
    def client_address(self) -> str | None:
        """Return the source address of the HTTP request, or None on other transports.

        Behind a proxy, the address may belong to the proxy.
        """
        request: HttpRequest | None = self._call.http
        return None if request is None else request.address

    @property
    def session_id(self) -> str | None:
        """Return the ID of the Streamable HTTP session.

        Return None for requests of the newest revision, and on transports other than Streamable HTTP.
        """
        session = self._origin.session_channel
        return None if session is None else session.session_id

    @property
    def session(self) -> SessionChannel | None:
        """Return the request's session, or None without a session."""
        return self._origin.session_channel

    @property
    def session_state(self) -> Json:
        """Return the storage that handlers share within one stdio connection or one HTTP session.

        Over HTTP in the newest revision, the storage lasts only for the request. The storage is not shared with other
        processes.
        """
        session = self._origin.session_channel
        return self.request_state if session is None else session.session_state

    @property
    def request_state(self) -> Json:
        """Return the storage that middleware and handlers share for one request."""
        call = self._call
        if call.state is None:
            call.state = {}
        return call.state

    # -- notifications -------------------------------------------------------------------------------------------

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Awaitable[None]:
        """Report progress to a client that requested progress notifications (basic/utilities/progress).

        A value that does not exceed the last value is dropped. Above the server's rate limit, older values are dropped.
        The newest value is sent no later than the handler's end.
        """
        token = self.meta.get("progressToken")
        if (type(token) is not str and type(token) is not int) or progress <= self._reported or self._ended:
            return _DONE
        self._reported = progress
        params = {"progressToken": token, "progress": progress, "total": total, "message": message}
        present = {name: value for name, value in params.items() if value is not None}
        known = project_to_revision(present, "ProgressNotificationParams", self._call.peer.revision)
        self._on_loop(self._send_progress, known)
        return _DONE

    def _send_progress(self, params: Json) -> None:
        bucket = self._channel.allowance.progress
        if bucket is None or bucket.take():
            self._pending_progress = None
            self._notify_progress(params)
        else:
            self._pending_progress = params

    def _notify_progress(self, params: Json) -> None:
        self._call.progressed = self._loop.time()
        self._channel.notify("notifications/progress", params, self._call.peer.revision)

    def log(self, level: str, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Send a log message if the client wants messages of this level. Drop messages above the server's rate limit.

        Args:
            level: debug, info, notice, warning, error, critical, alert or emergency.
            data: any JSON value.
            logger: name of the logger.
        """
        number = LOG_LEVELS.get(level)
        if number is None:
            raise ValueError(f"unknown log level {level!r}\nhint: use one of {', '.join(LOG_LEVELS)}")
        peer = self._call.peer
        least = peer.log_level
        # In the newest revision, only a running request that set a log level gets log messages.
        if peer.revision.modern and (least is None or self._ended):
            return _DONE
        if least is None:
            least = _DEFAULT_LEVEL
        if number < least:
            return _DONE
        params = {"level": level, "data": data} if logger is None else {"level": level, "logger": logger, "data": data}
        known = project_to_revision(params, "LoggingMessageNotificationParams", peer.revision)
        self._on_loop(self._send_log, known)
        return _DONE

    def _send_log(self, params: Json) -> None:
        bucket = self._channel.allowance.logs
        if bucket is None or bucket.take():
            self._channel.notify("notifications/message", params, self._call.peer.revision)

    def debug(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Call `log` with level debug."""
        return self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Call `log` with level info."""
        return self.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Call `log` with level warning."""
        return self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> Awaitable[None]:
        """Call `log` with level error."""
        return self.log("error", data, logger)

    def _on_loop(self, function: Any, *arguments: Any) -> None:
        if threading.get_ident() == self._thread:
            function(*arguments)
        else:
            self._loop.call_soon_threadsafe(function, *arguments)

    def end(self) -> None:
        """Send delayed progress, and end the context."""
        self._ended = True
        if self._pending_progress is not None:
            task = asyncio.current_task()
            if task is None or not task.cancelling():  # send no notification after a cancellation
                self._notify_progress(self._pending_progress)
            self._pending_progress = None

    def close_stream(self, retry: int | None = None) -> None:
        """End the HTTP response early if the revision supports resuming.

        The client fetches the rest of the response after `retry` milliseconds.
        """
        self._on_loop(self._channel.close_stream, retry)

    def wait(self, coroutine: Coroutine[Any, Any, Value]) -> Value:
        """Run `ctx.elicit(…)` or another coroutine from a `def` handler."""
        if threading.get_ident() == self._thread:
            raise RuntimeError("ctx.wait() works only in def handlers\nhint: use await in an async def handler")
        with waiting():
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    # -- tasks (overridden by `TaskContext`) ---------------------------------------------------------------------

    @property
    def task_id(self) -> str | None:
        """Return the ID of the task that this call has become, or None for an ordinary call."""
        return None

    @property
    def cancelled(self) -> bool:
        """Return True if the task was canceled.

        Check this property regularly in `def` handlers, because the server cannot interrupt these handlers.
        """
        return False

    async def start_task(self) -> None:
        """Turn the call of a `defer_task` tool into a task. Do nothing if the call cannot become a task."""

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Call another tool of this server, and return the structured content of the result.

        If the result has no structured content, return the text.

        Raises:
            ToolError: the tool failed, does not exist, or needs scopes that the access token lacks.
        """
        return await call_other(
            self.server.registry, tool, arguments, self, None if self._origin.private else self._origin.principal
        )

    async def read_resource(self, uri: str) -> list[Json]:
        """Return the contents of a resource of this server in wire format.

        Raises:
            ToolError: the resource does not exist.
        """
        return await read_local_resource(self.server.registry, uri, self, self._call.peer.revision)

    async def get_prompt(self, name: str, /, **arguments: str) -> list[Json]:
        """Return the messages of a prompt of this server.

        Raises:
            ToolError: the prompt does not exist, or an argument is missing, unknown or invalid.
        """
        return await get_local_prompt(self.server.registry, name, arguments, self)

    async def elicit(
        self,
        message: str,
        schema: Any = None,
        *,
        url: str | None = None,
        key: str | None = None,
    ) -> Elicited:
        """Ask the user a question. See `Elicit` for the arguments.

        In the per-request lifecycle, the server may rerun the handler; see `ask`.

        Raises:
            McpError: MISSING_CAPABILITY if the client cannot ask the user.
        """
        answer: Elicited = await self._ask_one(Elicit(message, schema, url=url), key)
        return answer

    async def sample(
        self,
        messages: str | Message | Iterable[str | Message | Json],
        *,
        max_tokens: int = 1000,
        key: str | None = None,
        **options: Any,
    ) -> Sampled:
        """Ask the client's model. See `Sample` for the arguments.

        Raises:
            McpError: MISSING_CAPABILITY if the client has no model, or the client's error if the user refused.
        """
        answer: Sampled = await self._ask_one(Sample(messages, max_tokens=max_tokens, **options), key)
        return answer

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask the client for the directories and other locations that the server may use.

        Raises:
            McpError: MISSING_CAPABILITY if the client has no roots.
        """
        answer: list[Root] = await self._ask_one(Roots(), key)
        return answer

    async def consent(
        self,
        what: str,
        *bound_to: object,
        confirm: str | None = None,
        otherwise: str = "Nothing was done",
        hint: str = "",
        unless: Callable[[], bool] | None = None,
    ) -> bool:
        """Ask a person to agree to a costly or destructive action.

        Return True if the person agreed, and False if `unless` skipped the question. If the client cannot ask its user,
        the error contains a code. The client repeats the call with the code after the person has agreed. A model cannot
        guess the code, but could send the code without asking the person. In the per-request lifecycle, the server may
        rerun the handler; see `ask`.

        Args:
            what: the action, as one sentence with names and amounts. The person reads this sentence.
            bound_to: JSON values that the consent also covers, such as IDs and texts. A consent is valid only for the
                same sentence and the same values.
            confirm: the code from the tool's arguments. Pass "" if the code is missing, or None if the tool has no
                argument for a code.
            otherwise: beginning of the error message, such as "Nothing was sent".
            hint: hint for a client that cannot ask its user, if the tool has no argument for a code.
            unless: function that returns True to skip the question. An answered question is never skipped.

        Raises:
            ToolError: the person does not agree, or has not been asked.
            McpError: INVALID_PARAMS for a bad requestState or inputResponses.
        """
        from mcpfactory_runtime.server.consent import Consent  # noqa: PLC0415 - only for handlers that ask for it

        question = Consent(what, bound_to, otherwise)
        modern, can_ask = self._call.peer.revision.modern, self._lacks(question) is None
        if unless is not None and not (modern and can_ask and question.key in self._recorded()) and unless():
            return False
        if can_ask:
            try:
                agreed = (await self.ask(**{question.key: question}))[question.key].accepted
            except McpError as error:
                if modern and self.task_id is None:  # the request is invalid, so raise the original error
                    raise
                raise ToolError(question.failed(error)) from None
            if not agreed:
                raise ToolError(question.declined_message())
        elif confirm is None:
            raise ToolError(question.refused(hint))
        else:
            await self._redeem(question, confirm)
        return True

    async def _redeem(self, question: Consent, code: str) -> None:
        params = self._call.params
        bound: dict[str, Any] = {
            "principal": self._channel.principal,
            "method": self._call.method,
            "params": {"of": params.get("name", params.get("uri")), "consent": question.digest},
            "now": time.time(),
        }
        sealer = self._server.sealer
        if not await sealer.redeem(code, **bound):
            raise ToolError(question.confirmation_code_message(sealer.code(**bound), code))

    async def ask(self, **questions: Question[Any]) -> dict[str, Any]:
        """Ask several questions at once, and return the answers by the names of the questions.

        In the handshake lifecycle, each question is a request to the client, and the handler waits for the answers. In
        the per-request lifecycle, a call of `ask` ends the handler. When the client has answered, the server reruns the
        handler from the beginning. Code before a question may therefore run twice. Every run must use the same question
        names.
        """
        for question in questions.values():
            self._check_capability(question)
        if not self._call.peer.revision.modern:
            peer, request = self._call.peer, self._channel.request
            return {key: one.read(await request(one.method, one.params(peer))) for key, one in questions.items()}
        answers = self._recorded()
        answers = {
            **{key: self._unasked[key] for key in questions if questions[key].unasked and key in self._unasked},
            **answers,
        }
        missing: dict[str, Json] = {}
        found: dict[str, Any] = {}
        for key, question in questions.items():
            if key in answers:
                if not isinstance(answers[key], dict):
                    raise McpError(INVALID_PARAMS, f"Invalid params: inputResponses.{key} must be an object")
                found[key] = question.read(answers[key])
                self._used[key] = answers[key]
            else:
                missing[key] = {
                    "method": self._call.peer.revision.wire(question.method),
                    "params": question.params(self._call.peer),
                }
        if found and self._opened is not None:
            await self._server.sealer.mark_used(self._opened, time.time())
            self._opened = None
        if missing:
            raise InputRequired(missing)
        return found

    async def _ask_one(self, question: Question[Any], key: str | None) -> Any:
        self._count += 1
        name = key or f"{question.kind}-{self._count}"
        return (await self.ask(**{name: question}))[name]

    def _check_capability(self, question: Question[Any]) -> None:
        missing = self._lacks(question)
        if missing is not None:
            path = question.required_capability(self._call.peer.revision)
            self._refuse(path, missing, ", which the client did not declare")

    def _lacks(self, question: Question[Any]) -> Json | None:
        peer: Peer = self._call.peer
        missing = question.missing_capability(peer)
        if question.method not in peer.revision.client_requests:
            missing = missing or {question.required_capability(peer.revision)[0]: {}}
        return missing

    def require(self, *path: str) -> None:
        """Refuse the request unless the client declared a capability: `ctx.require("sampling", "tools")`.

        Raises:
            McpError: MISSING_CAPABILITY, or INVALID_REQUEST in a handshake revision.
        """
        missing = self._call.peer.missing(*path)
        if missing is not None:
            self._refuse(path, missing)

    def _refuse(self, path: tuple[str, ...], missing: Json, reason: str = "") -> NoReturn:
        code = MISSING_CAPABILITY if self._call.peer.revision.modern else INVALID_REQUEST
        text = f"This needs the client capability {'.'.join(path)}{reason}"
        raise McpError(code, text, {"requiredCapabilities": missing})

    def _recorded(self) -> Json:
        """Return the client's answers from this round and earlier rounds."""
        if self._answers is None:
            params, responses = self._call.params, self._call.params.get("inputResponses", {})
            if not isinstance(responses, dict):
                raise McpError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
            self._answers, self._unasked = {}, responses
            if "requestState" in params:  # the first request has no state
                opened = self._opened = self._server.sealer.open(
                    params["requestState"],
                    principal=self._channel.principal,
                    method=self._call.method,
                    params=params,
                    now=time.time(),
                )
                given = {key: value for key, value in responses.items() if key in opened.asked}
                self._answers = {**opened.answers, **given}
        return self._answers

    def input_required(self, asked: InputRequired) -> Json:
        """Return a result with questions for the client, and with a sealed state that contains the earlier answers."""
        state = self._server.sealer.seal(
            self._used,
            asked.requests,
            principal=self._channel.principal,
            method=self._call.method,
            params=self._call.params,
            now=time.time(),
        )
        return {"resultType": "input_required", "inputRequests": asked.requests, "requestState": state}
