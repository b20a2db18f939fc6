"""Health and readiness endpoints, and the server's own routes."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, MutableMapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from starlette.authentication import AuthCredentials
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Match, Route

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.transports.http.wire import Headers, Receive, Scope, Send, reject, send_json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.host import Host, ServedMetrics
    from mcpfactory_runtime.server.routes import HttpRoute
    from mcpfactory_runtime.transports.http.authentication import AccessGate, OpenGate
    from mcpfactory_runtime.transports.http.wire import Life


log = logging.getLogger("mcpfactory_runtime")

HEALTH: Final = "/health"
READY: Final = "/ready"
METRICS: Final = "/metrics"
PROBES: Final = frozenset({HEALTH, READY})
_METHODS: Final = ("GET", "HEAD")
_ONLY_GET: Final = Rejection(405, None, "Only GET\n", {"allow": "GET, HEAD"})
_HEAD: Final[Headers] = [(b"cache-control", b"no-store")]


class Probes:
    """Answers the two probes of one HTTP application. Neither waits for the server's lifespan.

    Attributes:
        draining: the application is ending.

    Args:
        server: says whether it is closing, and has the author's checks.
        life: says whether the lifespan has begun.
        gate: says who may know the names of checks: whoever may call.
    """

    def __init__(self, server: Host, life: Life, gate: AccessGate | OpenGate) -> None:
        self._server = server
        self._life = life
        self._gate = gate
        self.draining = False
        self._beginning: asyncio.Task[None] | None = None

    async def serve(self, place: str, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Answer one probe: 200, or 503 where the server should get no requests now."""
        if scope["method"] not in _METHODS:
            await reject(send, _ONLY_GET)
            return
        answer = {"status": "ok"} if place == HEALTH else await self._look(scope, headers)
        status = 200 if answer["status"] in ("ok", "ready") else 503
        await send_json(send, status, b"" if scope["method"] == "HEAD" else jsonrpc.encode(answer), _HEAD)

    async def serve_metrics(
        self, metrics: ServedMetrics, sessions: int, scope: Scope, headers: dict[str, str], send: Send
    ) -> None:
        """Send the figures to whoever may call the server; `sessions` is how many there are."""
        refused = await _refused(self._gate, scope, headers) if scope["method"] in _METHODS else _ONLY_GET
        if refused is not None:
            await reject(send, refused)
            return
        kind, data = await asyncio.to_thread(metrics.expose, headers.get("accept", ""), sessions)
        head = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(data)), *_HEAD]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else data})

    async def _look(self, scope: Scope, headers: dict[str, str]) -> dict[str, Any]:
        if self.draining or (self._life.started and self._server.closing.is_set()):
            return {"status": "draining"}
        if not self._life.started:
            self._begin()
            return {"status": "starting"}
        found = await self._server.readiness.look()
        answer: dict[str, Any] = {"status": "ready" if all(found.values()) else "unavailable"}
        if found and await self._admitted(scope, headers):
            answer["checks"] = {name: "ok" if succeeded else "failed" for name, succeeded in found.items()}
        return answer

    async def _admitted(self, scope: Scope, headers: dict[str, str]) -> bool:
        return await _refused(self._gate, scope, headers) is None

    def _begin(self) -> None:
        """Begin the lifespan where nothing else did (mounted without it): who waits for "ready" sends no first request."""
        if self._beginning is None or self._beginning.done():
            self._beginning = asyncio.create_task(self._enter())

    async def _enter(self) -> None:
        try:
            await self._life.start()
        except Exception:
            log.exception("the lifespan could not be entered")


async def _refused(gate: AccessGate | OpenGate, scope: Scope, headers: dict[str, str]) -> Rejection | None:
    """Return why somebody may not call the server; None for who may."""
    principal = await gate.authenticate(scope, headers)
    return principal if isinstance(principal, Rejection) else gate.authorize(principal, None)


_FAILED: Final = "The server made a mistake; its log says more.\n"


class RouteTable:
    """The routes of one HTTP application.

    Args:
        routes: in the order in which they are tried.
        gate: says who may call.
        limit: bytes of the largest body.
    """

    def __init__(self, routes: Iterable[HttpRoute], gate: AccessGate | OpenGate, limit: int) -> None:
        self._gate = gate
        self._limit = limit
        self._routes = [
            (Route(one.path, _endpoint(one.handler), methods=sorted(one.methods)), one.public) for one in routes
        ]

    def methods(self, scope: Scope) -> list[str]:
        """Return the methods that the path of a request answers; none where it is no route."""
        found = {
            method
            for route, _ in self._routes
            if route.matches(scope)[0] is not Match.NONE
            for method in route.methods or ()
        }
        return sorted(found)

    async def serve(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> bool:
        """Answer a request; False where no route has its path, and nothing was sent."""
        for route, public in self._routes:
            match, child = route.matches(scope)
            if match is Match.FULL:
                scope.update(child)
                if await self._admit(scope, headers, send, public=public):
                    await route.handle(scope, _bounded(receive, self._limit), send)
                return True
        methods = self.methods(scope)
        if methods:
            allowed = ", ".join(methods)
            await reject(send, Rejection(405, None, f"Only {allowed}\n", {"allow": allowed}))
        return bool(methods)

    async def _admit(self, scope: Scope, headers: dict[str, str], send: Send, *, public: bool) -> bool:
        """Whether the request may go on; who sends it is `request.user` then, and with what scopes, `request.auth`."""
        principal: Any = ""
        if not public:
            principal = await self._gate.authenticate(scope, headers)
            refused = principal if isinstance(principal, Rejection) else self._gate.authorize(principal, None)
            if refused is not None:
                await reject(send, refused)
                return False
        scope["user"] = principal
        scope["auth"] = AuthCredentials(sorted(getattr(principal, "scopes", ())))
        return True


def _endpoint(handler: Callable[..., Any]) -> Callable[[Request], Any]:
    """Return what Starlette calls: coroutines on the event loop, other functions in a worker thread, any result as a response."""

    async def endpoint(request: Request) -> Response:
        try:
            if inspect.iscoroutinefunction(handler):
                return _response(await handler(request))
            return _response(await in_thread(partial(handler, request), {}))
        except HTTPException as error:
            return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return PlainTextResponse(_FAILED, 500)

    return endpoint


def _response(result: Any) -> Response:
    """Return a result as a response: text, bytes, nothing (204), anything else as JSON."""
    if isinstance(result, Response):
        return result
    if result is None:
        return Response(status_code=204)
    if isinstance(result, str):
        return PlainTextResponse(result)
    if isinstance(result, bytes):
        return Response(result, media_type="application/octet-stream")
    return JSONResponse(result)


def _bounded(receive: Receive, limit: int) -> Receive:
    """Return `receive` for a body of at most `limit` bytes."""
    size = 0

    async def received() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, f"Larger than {limit} bytes")
        return message

    return received
