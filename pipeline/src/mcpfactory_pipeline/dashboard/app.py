"""Live dashboard: a Starlette application that reads the workspace for every request.

Requests with a foreign Host are refused. Without this check, a site whose name resolves to 127.0.0.1 could read the
dashboard in the user's browser (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import SplitResult, urlsplit

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PipelineError, PromotionError
from mcpfactory_pipeline.dashboard.access import AccessError, DashboardAccess, ProxiedCaller, TrustedProxy
from mcpfactory_pipeline.dashboard.action_routes import ActionRoutes, CancelRoutes, wants_json
from mcpfactory_pipeline.dashboard.batch_routes import BatchRoutes
from mcpfactory_pipeline.dashboard.decision_log import decisions_to_csv, select_decisions
from mcpfactory_pipeline.dashboard.facts import to_json
from mcpfactory_pipeline.dashboard.live_updates import (
    PageSnapshot,
    PageSubscriptions,
    RunPoll,
    TooManySubscribersError,
    workspace_poll,
)
from mcpfactory_pipeline.dashboard.openapi import dashboard_openapi_document
from mcpfactory_pipeline.dashboard.pages import PAGES, Page, all_decisions
from mcpfactory_pipeline.dashboard.render import ASSETS, POLICY, Links, Visitor, asset, render, render_problem
from mcpfactory_pipeline.dashboard.runs import RunPage
from mcpfactory_pipeline.dashboard.workspace_files import open_stage_log
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_ABOUT_MANY: Final = frozenset({"inbox", "board", "graph"})  # pages about all servers
_FOLLOWED: Final = _ABOUT_MANY | {"server", "decision"}  # pages that update themselves
_CHUNK: Final = 64 * 1024  # maximum number of bytes per chunk of a log
_HEADERS: Final = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # without this header, browsers send `Origin: null` even from our forms
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def create_app(
    workspace_root: Path,
    *,
    hosts: Sequence[str] = (),
    age: float = 0.0,
    ended: Callable[[], bool] = lambda: False,
    people: Mapping[str, str] | None = None,
    proxy: TrustedProxy | None = None,
    origin: str = "",
) -> Starlette:
    """Return the dashboard application for a workspace. Without `people` and `proxy`, the dashboard is read-only.

    `age` is the maximum age in seconds of data on pages about many servers. `ended` returns True when the server shuts
    down. `people` has the token of each person who may act. `origin` is the public address, if it is not the address of
    the server.
    """
    reader, followers = WorkspaceReader(workspace_root, age=age), PageSubscriptions(ended)
    acting = ActionRoutes(workspace_root, reader, DashboardAccess(people or {}), origin) if people or proxy else None
    deeds = (acting, BatchRoutes(acting), CancelRoutes(acting)) if acting else ()
    routes = [
        *(Route(page.path, _endpoint(page, reader, acting), name=page.name) for page in PAGES),
        Route("/decisions.csv", partial(_decisions_csv, reader), name="decisions_csv"),
        Route("/servers/{name}/logs/{stage}/raw", partial(_raw_log, reader), name="raw_log"),
        *(route for some in deeds for route in some.routes()),
        *(
            Route(f"/live{page.path}", _events(reader, followers, page), methods=["GET"])
            for page in PAGES
            if page.type is RunPage
        ),
        Route("/live/", _events(reader, followers, None), methods=["GET"]),
        Route("/openapi.json", partial(_api, acting is not None), name="openapi"),
        Route("/assets/{name}", _asset, name="asset"),
    ]
    known = frozenset((*_LOOPBACK, *hosts, *([_host(urlsplit(origin).netloc)] if origin else [])))
    guard = Middleware(_HostGuard, hosts=known, proxy=proxy, public=urlsplit(origin))
    return Starlette(
        routes=routes,
        middleware=[guard],
        exception_handlers={
            PipelineError: problem_response,
            ClientDisconnect: disconnected_response,
            404: not_found_response,
            405: not_allowed_response,
        },
        lifespan=partial(_lifespan, acting),
    )


@asynccontextmanager
async def _lifespan(acting: ActionRoutes | None, _app: Starlette) -> AsyncIterator[None]:
    yield
    if acting:
        await run_in_threadpool(acting.runs.close)


def _endpoint(
    page: Page, reader: WorkspaceReader, acting: ActionRoutes | None
) -> Callable[[Request], Awaitable[Response]]:
    def answer(request: Request, visitor: Visitor | None) -> Response:
        # Compute the digest before the view, so that the view is never older than the digest.
        # `seen` is the digest of the cached data on pages about many servers.
        if page.name in _ABOUT_MANY:
            reader.workspace()
        seen = reader.digest() if page.name in {"server", "decision"} else reader.seen
        query = truncated_query(request)
        view = page.view(reader, request.path_params, query)
        headers = {"Vary": "Accept"}
        if wants_json(request):
            return JSONResponse(to_json(view), headers=headers)
        links = Links(request.url.path, query=query)
        live = _live(page, view, request, links, seen)
        return HTMLResponse(render(page, view, links, live=live, visitor=visitor), headers=headers)

    async def show(request: Request) -> Response:
        visitor = acting.visitor(request) if acting and not wants_json(request) else None
        return await run_in_threadpool(answer, request, visitor)

    return show


def _live(page: Page, view: object, request: Request, links: Links, seen: str) -> str:
    if page.name in _FOLLOWED:
        return links.to("/live/", {"from": f"{PageSnapshot(seen).digest};"})
    if isinstance(view, RunPage) and view.going:
        return links.to(f"/live{request.url.path}", {"page": links.query.get("page", "")})
    return ""


def _events(
    reader: WorkspaceReader, followers: PageSubscriptions, page: Page | None
) -> Callable[[Request], Awaitable[Response]]:
    async def follow(request: Request) -> Response:
        if request.method == "HEAD":  # a response to HEAD has no body
            return Response(media_type="text/event-stream")
        values, number = dict(request.path_params), request.query_params.get("page", "")
        position = request.headers.get("last-event-id") or request.query_params.get("from", "")
        make = partial(RunPoll, reader, page, values, number) if page else partial(workspace_poll, reader)
        name = f"{request.url.path}?{number}"
        stream = await followers.join(name, make, position)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    return follow


class _HostGuard:
    """Middleware that refuses foreign hosts and forged proxy headers, and adds security headers to responses."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str], proxy: TrustedProxy | None, public: SplitResult) -> None:
        self._app = app
        self._hosts, self._proxy, self._public = hosts, proxy, public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        host = Headers(scope=scope).get("host", "")
        # The browser uses HTTPS, but the proxy sends HTTP to this process.
        if self._public.netloc and host.lower() == self._public.netloc:
            scope["scheme"] = self._public.scheme
        if _host(host) not in self._hosts:
            words = "this dashboard does not answer under this name\nhint: open http://127.0.0.1, or start it with --public-url URL\n"
            refusal = PlainTextResponse(words, 421)
            await refusal(scope, receive, guarded)
            return
        try:
            scope.setdefault("state", {})["caller"] = (
                self._proxy.caller(scope["headers"]) if self._proxy else ProxiedCaller()
            )
        except AccessError as error:
            said = PlainTextResponse(f"{error}\nhint: {error.hint}\n", error.status)
            await said(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)


def _host(header: str) -> str:
    name, colon, port = header.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() else header.strip().lower()


async def _raw_log(reader: WorkspaceReader, request: Request) -> Response:
    facts = await run_in_threadpool(reader.log, request.path_params["name"], request.path_params["stage"])
    stack = ExitStack()
    stream = await run_in_threadpool(stack.enter_context, open_stage_log(facts))
    headers = {"Content-Disposition": f'attachment; filename="{facts.server}-{facts.stage}.log"'}
    return StreamingResponse(_closing(stack, stream), media_type="text/plain; charset=utf-8", headers=headers)


async def _decisions_csv(reader: WorkspaceReader, request: Request) -> Response:
    query = truncated_query(request)
    chosen = {"query": query.get("q", ""), "who": query.get("who", ""), "what": query.get("what", "")}
    found = await run_in_threadpool(lambda: decisions_to_csv(select_decisions(all_decisions(reader), **chosen)))
    headers = {"Content-Disposition": 'attachment; filename="decisions.csv"'}
    return PlainTextResponse(found, media_type="text/csv; charset=utf-8", headers=headers)


def _closing(stack: ExitStack, stream: BinaryIO) -> Iterator[bytes]:
    with stack:
        yield from iter(partial(stream.read, _CHUNK), b"")


async def _api(acting: bool, request: Request) -> Response:
    return JSONResponse(dashboard_openapi_document(str(request.base_url).rstrip("/"), acting=acting))


async def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return PlainTextResponse("no such file\n", 404)
    return Response(asset(name), media_type=ASSETS[name], headers={"Cache-Control": "no-cache"})


_VALUE: Final = 200  # maximum number of characters of a query value; valid names are shorter
_VALUES: Final = 20

# The first match determines the HTTP status. All other errors are internal errors.
_STATUSES: Final[tuple[tuple[type[PipelineError], int], ...]] = (
    (NotFoundError, 404),
    (PromotionError, 409),
    (ConfigError, 422),
    (TooManySubscribersError, 503),
)


def truncated_query(request: Request) -> dict[str, str]:
    """Return the query, truncated and without surrounding spaces."""
    return {name[:_VALUE]: value[:_VALUE].strip() for name, value in list(request.query_params.items())[:_VALUES]}


async def problem_response(request: Request, error: Exception) -> Response:
    """Return the response for a failed request."""
    assert isinstance(error, PipelineError)  # Starlette calls this handler only for PipelineError
    if isinstance(error, AccessError):
        status, title = error.status, error.title
    else:
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
        title = "No such page" if status == 404 else "Something is wrong"
    ways = error.ways if isinstance(error, AccessError) else ()
    answer = error_response(request, status, title, str(error), error.hint, ways=ways)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="mcpfactory dashboard"'
    return answer


async def not_found_response(request: Request, _error: Exception) -> Response:
    """Return the 404 response."""
    return error_response(
        request, 404, "No such page", f"There is nothing at {request.url.path}.", "Start at the inbox."
    )


async def not_allowed_response(request: Request, _error: Exception) -> Response:
    """Return the 405 response with the permitted methods (RFC 9110 §10.2.1)."""
    here = (
        one for one in request.app.routes if isinstance(one, Route) and one.matches(request.scope)[0] is not Match.NONE
    )
    methods = sorted({method for route in here for method in route.methods or ()})
    message = f"{request.url.path} does not take {request.method}."
    answer = error_response(request, 405, "No such method", message, f"It takes {', '.join(methods)}.")
    answer.headers["Allow"] = ", ".join(methods)
    return answer


async def disconnected_response(_request: Request, _error: Exception) -> Response:
    """Return a response for a client that disconnected."""
    return Response(status_code=400)


def error_response(
    request: Request, status: int, title: str, message: str, hint: str, *, ways: Sequence[tuple[str, str]] = ()
) -> Response:
    """Return an error page. If the client wants JSON, return JSON. `ways` are links (text, path)."""
    if wants_json(request):
        return JSONResponse({"error": {"message": message, "hint": hint}}, status)
    return HTMLResponse(render_problem(title, message, hint, request.url.path, ways), status)
