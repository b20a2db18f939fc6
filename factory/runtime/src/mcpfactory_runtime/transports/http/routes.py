"""Custom routes of a server, served by Starlette after authorization."""

from __future__ import annotations

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

from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.server.threads import in_thread
from mcpfactory_runtime.transports.http.asgi import Receive, Scope, Send, send_rejection

if TYPE_CHECKING:
    from mcpfactory_runtime.server.routes import HttpRoute
    from mcpfactory_runtime.transports.http.authentication import AccessGate, AnonymousAccessGate

log = logging.getLogger(__name__)

_INTERNAL_ERROR: Final = "Internal error. hint: see the log of the server\n"


class RouteTable:
    """The routes of one HTTP application, in order of precedence."""

    def __init__(self, routes: Iterable[HttpRoute], gate: AccessGate | AnonymousAccessGate, limit: int) -> None:
        self._gate = gate
        self._limit = limit
        self._routes = [
            (Route(one.path, _endpoint(one.handler), methods=sorted(one.methods)), one.public) for one in routes
        ]

    def methods(self, scope: Scope) -> list[str]:
        """Return the methods that the path of a request supports."""
        found = {
            method
            for route, _ in self._routes
            if route.matches(scope)[0] is not Match.NONE
            for method in route.methods or ()
        }
        return sorted(found)

    async def serve(self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send) -> bool:
        """Serve a request, or return False if no route matches the path."""
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
            await send_rejection(send, Rejection(405, None, f"Only {allowed}\n", {"allow": allowed}))
        return bool(methods)

    async def _admit(self, scope: Scope, headers: dict[str, str], send: Send, *, public: bool) -> bool:
        principal: Any = ""
        if not public:
            principal = await self._gate.authenticate(scope, headers)
            refused = principal if isinstance(principal, Rejection) else self._gate.authorize(principal, None)
            if refused is not None:
                await send_rejection(send, refused)
                return False
        scope["user"] = principal
        scope["auth"] = AuthCredentials(sorted(getattr(principal, "scopes", ())))
        return True


def _endpoint(handler: Callable[..., Any]) -> Callable[[Request], Any]:
    """Wrap a handler for Starlette, so that functions other than coroutines run in a worker thread."""

    async def endpoint(request: Request) -> Response:
        try:
            if inspect.iscoroutinefunction(handler):
                return _response(await handler(request))
            return _response(await in_thread(partial(handler, request), {}))
        except HTTPException as error:
            return PlainTextResponse(f"{error.detail}\n", error.status_code, error.headers)
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return PlainTextResponse(_INTERNAL_ERROR, 500)

    return endpoint


def _response(result: Any) -> Response:
    """Return the response for a result. None gives the status 204, and values other than text or bytes give JSON."""
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
    size = 0

    async def received() -> MutableMapping[str, Any]:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise HTTPException(413, f"Larger than {limit} bytes")
        return message

    return received
