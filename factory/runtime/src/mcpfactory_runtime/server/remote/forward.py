"""One request passed on to another server, with what comes back before its end: progress, log messages, and questions.

A server of the per-request lifecycle asks by ending its request (`input_required`), so it is known which call a question belongs
to. The question goes to whoever made the call, in the way of the lifecycle that is spoken there. Where that is the per-request
one, the call is made again with the answers, and goes through from its beginning: every question is asked of the server again,
and answered from what the client has answered already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.trace_context import TRACE_FIELDS, passed_trace
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR, McpError
from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.protocol.peer import META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_SERVER, Peer
from mcpfactory_runtime.revisions import MODERN, Revision
from mcpfactory_runtime.revisions.projection import project
from mcpfactory_runtime.server.context import Context
from mcpfactory_runtime.server.inputs import Elicit, Question

__all__ = ["abilities", "forward", "forwarded_question", "without_envelope"]

Json = dict[str, Any]

_ROUNDS: Final = 20  # of questions for one call
_FORWARDED: Final = ("elicitation", "sampling", "roots")  # capabilities of the client that are its servers' to use


def _same(said: Any) -> Any:
    return said


async def forward(
    client: Client,
    method: str,
    params: Json,
    ctx: Context,
    *,
    plain: Callable[[Any], Any] = _same,
    timeout: float | None = None,  # noqa: ASYNC109 - the client tells the server that nobody waits
) -> Json:
    """Return the result of a request to another server, without envelope.

    Nothing that came with the caller's request goes along but what is said of the caller (its capabilities, its name, the level of
    log messages, where its lifecycle is the per-request one) and the trace; least of all its token.

    Args:
        client: of the other server.
        method: of the request.
        params: likewise.
        ctx: who asks.
        plain: what is made of all that the server says.
        timeout: seconds; None leaves it to the caller to give up.

    Raises:
        McpError: the server's error, or that the caller cannot answer what the server asks.
        InputRequired: the caller has to answer first (a BaseException).
        ConnectionLostError, HttpError, ProtocolError, TimeoutError: as a client.
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
    raise McpError(INTERNAL_ERROR, f"the server still asks after {_ROUNDS} rounds")


def abilities(ctx: Context) -> Json:
    """Return the capabilities of a caller that servers elsewhere may use."""
    return {name: value for name, value in ctx.client_capabilities.items() if name in _FORWARDED}


def forwarded_question(wanted: Any) -> Question[Any]:
    """Return a server's question, an object with `method` and `params`, to be asked of somebody else.

    Raises:
        McpError: it is none.
    """
    method = wanted.get("method") if isinstance(wanted, dict) else None
    params = (wanted.get("params") or {}) if method else {}
    try:
        if method == "elicitation/create":
            page = params.get("url")
            return _ForwardedForm(params["message"], None if page else params["requestedSchema"], url=page)
        if method in {"sampling/createMessage", "roots/list"}:
            return _ForwardedQuestion(method, params)
    except (TypeError, KeyError) as error:
        raise McpError(INTERNAL_ERROR, f"the server asks what cannot be asked: {error}") from None
    raise McpError(INTERNAL_ERROR, f"the server asks for {method!r}, which no client does")


def _meta(ctx: Context) -> Json:
    # What the client does not want, `ctx.log` leaves out.
    level = ctx.meta.get(META_LOG_LEVEL) if ctx.revision in MODERN else "debug"
    known = {META_CAPABILITIES: abilities(ctx)} | ({META_CLIENT: ctx.client_info} if ctx.client_info else {})
    return known | ({META_LOG_LEVEL: level} if level else {})


def _trace(ctx: Context) -> Json:
    """Return the trace of a call that is passed on: that of its client, below our own span where we are traced."""
    meta = ctx.meta
    return passed_trace(ctx.headers if meta.keys().isdisjoint(TRACE_FIELDS) else meta)


def _progress(ctx: Context, plain: Callable[[Any], Any]) -> Callable[[Json], Any] | None:
    if "progressToken" not in ctx.meta:
        return None

    def report(params: Json) -> None:
        ctx.report_progress(params["progress"], params.get("total"), plain(params.get("message")))

    return report


def without_envelope(result: Json) -> Json:
    """Return a result without what belongs to the request that it answers."""
    bare = {key: value for key, value in result.items() if key not in {"resultType", "_meta", "ttlMs", "cacheScope"}}
    meta = {key: value for key, value in (result.get("_meta") or {}).items() if key != META_SERVER}
    return {**bare, "_meta": meta} if meta else bare


class _ForwardedForm(Elicit):
    """An elicitation whose answer is the server's to check."""

    def read(self, answer: Json) -> Any:
        return answer


class _ForwardedQuestion(Question[Json]):
    """A question that is forwarded as it is."""

    kind = "passed"

    def __init__(self, method: str, params: Json) -> None:
        self.method, self._params = method, params

    def needs(self, revision: Revision) -> tuple[str, ...]:
        if self.method == "roots/list":
            return ("roots",)
        return ("sampling", "tools") if "tools" in self._params else ("sampling",)

    def params(self, peer: Peer) -> Json:
        name = METHODS[self.method].params
        return project(self._params, name, peer.revision) if name else {}

    def read(self, answer: Json) -> Json:
        return answer
