"""A call passed on to a server, with what comes back of it before its end: progress, log messages, and questions.

A server behind the gateway asks by ending its request (`input_required`), so it is known which call a question belongs to.
The question goes to whoever made the call, in the way of the lifecycle that is spoken there. Where that is the per-request
one, the call is made again with the answers, and goes through from its beginning: every question is asked of the server
anew, and answered from what the client has answered already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from mcpfactory_runtime import Context, McpError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.protocol.peer import META_CAPABILITIES, META_CLIENT, META_LOG_LEVEL, META_SERVER, Peer
from mcpfactory_runtime.revisions import MODERN, Revision
from mcpfactory_runtime.revisions.projection import project
from mcpfactory_runtime.server.inputs import Elicit, Question

__all__ = ["pass_on"]

Json = dict[str, Any]

_ROUNDS: Final = 20  # of questions for one call
_PASSED: Final = ("elicitation", "sampling", "roots")  # capabilities of the client that are its servers' to use


async def pass_on(client: Client, method: str, params: Json, ctx: Context) -> Json:
    """Return the result of a request to a server, without envelope.

    Raises `McpError`: the server's error, or that the client cannot answer what the server asks. Raises what a client raises.
    """
    meta = _meta(ctx) if client.modern else {}
    answered: Json = {}
    for number in range(1, _ROUNDS + 1):
        result = await client.request(
            method, {**params, **answered, "_meta": meta}, timeout=None, progress=_progress(ctx)
        )
        if result.get("resultType", "complete") != "input_required":
            return _bare(result)
        wanted = result.get("inputRequests") or {}
        answers = await ctx.ask(**{f"{number}.{key}": _question(one) for key, one in wanted.items()})
        answered = {"inputResponses": {key: answers[f"{number}.{key}"] for key in wanted}}
        if "requestState" in result:
            answered["requestState"] = result["requestState"]
    raise McpError(INTERNAL_ERROR, f"the server still asks after {_ROUNDS} rounds")


def _meta(ctx: Context) -> Json:
    able = {name: value for name, value in ctx.client_capabilities.items() if name in _PASSED}
    level = (
        ctx.meta.get(META_LOG_LEVEL) if ctx.revision in MODERN else "debug"
    )  # what the client does not want, `ctx.log` leaves out
    known = {META_CAPABILITIES: able} | ({META_CLIENT: ctx.client_info} if ctx.client_info else {})
    return known | ({META_LOG_LEVEL: level} if level else {})


def _progress(ctx: Context) -> Callable[[Json], Any] | None:
    if "progressToken" not in ctx.meta:
        return None

    def tell(params: Json) -> None:
        ctx.report_progress(params["progress"], params.get("total"), params.get("message"))

    return tell


def _bare(result: Json) -> Json:
    bare = {key: value for key, value in result.items() if key not in {"resultType", "_meta", "ttlMs", "cacheScope"}}
    meta = {key: value for key, value in (result.get("_meta") or {}).items() if key != META_SERVER}
    return {**bare, "_meta": meta} if meta else bare


def _question(wanted: Any) -> Question[Any]:
    """Return a server's question, to be asked of somebody else. Raises `McpError` for what is none."""
    method = wanted.get("method") if isinstance(wanted, dict) else None
    params = (wanted.get("params") or {}) if method else {}
    try:
        if method == "elicitation/create":
            page = params.get("url")
            return _PassedForm(params["message"], None if page else params["requestedSchema"], url=page)
        if method in {"sampling/createMessage", "roots/list"}:
            return _Passed(method, params)
    except (TypeError, KeyError) as error:
        raise McpError(INTERNAL_ERROR, f"the server asks what cannot be asked: {error}") from None
    raise McpError(INTERNAL_ERROR, f"the server asks for {method!r}, which no client does")


class _PassedForm(Elicit):
    """An elicitation whose answer is the server's to check."""

    def read(self, answer: Json) -> Any:
        return answer


class _Passed(Question[Json]):
    """A question that is handed on as it is."""

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
