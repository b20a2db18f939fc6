"""HTTP routes of the dashboard for actions, tool calls, and the cancellation of runs.

Before the workspace is read, four kinds of requests are refused: foreign Host, foreign Origin, missing login, invalid
ticket. Programs also need a ticket, because the ticket identifies the state that was checked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PipelineError, PromotionError
from mcpfactory_pipeline.base.ids import acting_as
from mcpfactory_pipeline.dashboard.access import (
    AccessError,
    DashboardAccess,
    DashboardSession,
    ProxiedCaller,
    UsedTicketError,
)
from mcpfactory_pipeline.dashboard.actions import (
    ABOUT,
    ACTIONS,
    Action,
    ActionPage,
    ActionResult,
    action_page,
    normalize_action_values,
)
from mcpfactory_pipeline.dashboard.facts import to_json
from mcpfactory_pipeline.dashboard.inbox import BATCHED
from mcpfactory_pipeline.dashboard.pages import candidate_decision_page, offered_actions
from mcpfactory_pipeline.dashboard.render import Links, Visitor, render_form
from mcpfactory_pipeline.dashboard.run_process import RunProcesses
from mcpfactory_pipeline.dashboard.runs import run_page
from mcpfactory_pipeline.dashboard.tool_call_page import (
    ToolCallPage,
    ToolCallResult,
    parse_tool_arguments,
    run_tool_call,
    tool_call_page,
)
from mcpfactory_pipeline.dashboard.workspace_reader import WorkspaceReader
from mcpfactory_pipeline.decisions.precondition import StaleDecisionError
from mcpfactory_pipeline.workspace.workspace import Workspace

_COOKIE: Final = "mcpfactory_session"
_MAX_BODY: Final = 64 * 1024  # maximum size of a body in bytes
_BODY_SECONDS: Final = 30.0  # seconds; timeout for a complete body
_FORM: Final = "The form again"
_MAX_QUERY: Final = 4000  # maximum number of characters of a query with form values
# Actions for a candidate. Their pages show facts for and against the candidate.
_WEIGHED: Final = {"approve", "reject", "promote", "rollback"}
_MAX_TOOL_CALLS: Final = 2  # maximum number of simultaneous tool calls


class ActionRoutes:
    """Routes of the dashboard that change the workspace.

    `origin` is the public origin, or "" if clients use the dashboard's own address.
    """

    def __init__(self, workspace_root: Path, reader: WorkspaceReader, access: DashboardAccess, origin: str) -> None:
        self._root, self.reader, self.access, self._origin = workspace_root, reader, access, origin
        self.runs = RunProcesses(workspace_root)
        self._tool_calls = asyncio.Semaphore(_MAX_TOOL_CALLS)

    def routes(self) -> list[Route]:
        """Return the routes of actions, logins and tool calls."""
        return [
            Route("/login/", self._login_page, methods=["GET"]),
            Route("/login/", self._login, methods=["POST"]),
            Route("/logout/", self._logout, methods=["POST"]),
            Route("/servers/{name}/actions/{action}/", self.behind_login(self._check), methods=["GET"]),
            Route("/servers/{name}/actions/{action}/", self._act, methods=["POST"]),
            Route("/servers/{name}/tools/{tool}/try/", self.behind_login(self._try_page), methods=["GET"]),
            Route("/servers/{name}/tools/{tool}/try/", self._try, methods=["POST"]),
        ]

    def visitor(self, request: Request) -> Visitor:
        """Return the visitor of a page. The session's message is returned only once."""
        session = self.session(request)
        if session is None:
            return Visitor()
        message, session.message = session.message, ""
        return Visitor(session.actor, message, self.runs.going, proxied=session.proxied)

    def session(self, request: Request) -> DashboardSession | None:
        """Return the session of the person whom the proxy names.

        Without such a person, return the session of the browser's cookie.
        """
        if person := _caller(request).person:
            return self.access.named(person)
        return self.access.session(request.cookies.get(_cookie(request), ""))

    def require_session(self, request: Request) -> DashboardSession:
        """Return the session of a request that may perform actions.

        Raises:
            AccessError: the origin is foreign, or the request is not logged in.
        """
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        # If the proxy named a person, ignore the token: some proxies forward their own token.
        program = kind.lower() == "bearer" and not _caller(request).person
        self._refuse_foreign_origin(request, program=program)
        if program:
            return self.access.bearer(token.strip(), _address(request))
        session = self.session(request)
        if session is None:
            raise AccessError(
                "you are not logged in", hint="open /login/, or send your token as a bearer token", status=401
            )
        return session

    def behind_login(
        self, page: Callable[[Request, DashboardSession], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that redirects people without a session to the login page."""

        async def answer(request: Request) -> Response:
            try:
                session = self.require_session(request)
            except AccessError:
                if wants_json(request):
                    raise
                return RedirectResponse(login_path(request), 303)
            return await page(request, session)

        return answer

    def _refuse_foreign_origin(self, request: Request, *, program: bool) -> None:
        """Refuse requests from pages of other sites."""
        origin = request.headers.get("origin")
        ours = {self._origin or f"{request.url.scheme}://{request.headers.get('host', '')}"}
        if self._origin and not _caller(request).proxied:  # local users can bypass the proxy
            ours.add(f"{request.url.scheme}://{request.headers.get('host', '')}")
        silent = origin is None and (program or request.method in {"GET", "HEAD"})
        elsewhere = request.headers.get("sec-fetch-site") in {"cross-site", "same-site"} and request.method == "POST"
        if (origin not in ours and not silent) or elsewhere:
            raise AccessError(
                "nothing was done: the request does not come from a page of this dashboard",
                hint="use the pages of the dashboard, or send your token as a bearer token",
            )

    def use_ticket(
        self,
        session: DashboardSession,
        ticket: str,
        *about: object,
        form: tuple[str, str],
        after: Sequence[tuple[str, str]] = (),
    ) -> Mapping[str, str]:
        """Invalidate a ticket, as `DashboardAccess` does.

        An error page links to `form`. If the ticket was already used, the error page also links to `after`.
        """
        try:
            return self.access.use_ticket(session, ticket, *about)
        except AccessError as error:
            error.ways = (*(after if isinstance(error, UsedTicketError) else ()), form)
            raise

    async def _login_page(self, request: Request) -> Response:
        return HTMLResponse(self._login_form(request, _next_path(request.query_params)))

    def _login_form(self, request: Request, after: str, error: AccessError | None = None) -> str:
        facts = {"next": after, "error": error, "tokens": self.access.has_tokens, "origin": self._origin}
        return render_form("login.html", Links(request.url.path), self.visitor(request), **facts)

    async def _login(self, request: Request) -> Response:
        self._refuse_foreign_origin(request, program=False)
        given = await read_body(request)
        try:
            secret = self.access.login(str(given.get("token", "")), _address(request))
        except AccessError as error:
            if wants_json(request):
                raise
            return HTMLResponse(self._login_form(request, _next_path(given), error), error.status)
        # End the previous session, because each browser may have only one session.
        self.access.logout(request.cookies.get(_cookie(request), ""))
        answer = RedirectResponse(_next_path(given), 303)
        secure = request.headers.get("origin", "").startswith("https:")
        answer.set_cookie(_cookie(request), secret, httponly=True, samesite="strict", path="/", secure=secure)
        return answer

    async def _logout(self, request: Request) -> Response:
        self._refuse_foreign_origin(request, program=False)
        self.access.logout(request.cookies.get(_cookie(request), ""))
        answer = RedirectResponse("/", 303)
        answer.delete_cookie(_cookie(request), path="/", httponly=True, samesite="strict")
        return answer

    async def _check(self, request: Request, session: DashboardSession) -> Response:
        action, explain = _action(request), wants_json(request) or "check" in request.query_params
        values = normalize_action_values(action, request.query_params)
        view = await run_in_threadpool(self.page, session, request.path_params["name"], action, values, explain=explain)
        return self._action_response(request, view)

    def page(
        self,
        session: DashboardSession,
        name: str,
        action: Action,
        values: Mapping[str, str],
        *,
        explain: bool = True,
        before: Mapping[str, str] | None = None,
    ) -> ActionPage:
        """Return the page of an action. If the user can confirm the action, the page has a ticket.

        `before` has the facts that the user has already seen.
        """
        with acting_as(session.actor, source=session.source):
            detail = self.reader.server(name)
            chosen = any(values.get(one) for one in ABOUT)
            possible = () if chosen else offered_actions(self.reader, detail).get(action.name, ())
            view = action_page(
                Workspace.find(self._root), detail, action, values, explain=explain, before=before, possible=possible
            )
        candidate, channel = view.settled.get("candidate", ""), view.settled.get("channel", "")
        if candidate and channel and action.name in _WEIGHED:
            view = replace(view, evidence=candidate_decision_page(self.reader, detail, channel, candidate))
        if not view.ready:
            return view
        ticket = self.access.ticket(session, view.server, action.name, dict(view.settled), seen=view.facts)
        return replace(view, ticket=ticket)

    def _action_response(self, request: Request, view: ActionPage, error: PipelineError | None = None) -> Response:
        """Return the page of an action. After an `error`, the page shows the changed facts and asks again."""
        status = 409 if error else 200
        if wants_json(request):
            said = {"error": {"message": str(error), "hint": _hint(error)}} if error else {}
            return JSONResponse({**said, **to_json(view)}, status)
        links = Links(request.url.path, query=dict(request.query_params))
        return HTMLResponse(
            render_form("action.html", links, self.visitor(request), view=view, tried=bool(error)), status
        )

    async def _act(self, request: Request) -> Response:
        session, action = self.require_session(request), _action(request)
        name, given = request.path_params["name"], await read_body(request)
        values = normalize_action_values(action, given)
        ticket, form = str(given.get("ticket", "")), (_FORM, _with_values(request.url.path, values))
        seen = self.use_ticket(session, ticket, name, action.name, values, form=form, after=[server_history_link(name)])
        try:
            result = await run_in_threadpool(self.perform, session, name, action, values)
        except PromotionError as error:
            self.reader.forget()
            view = await run_in_threadpool(self.page, session, name, action, values, before=seen)
            if not view.changes and not view.problem:
                view = replace(view, problem=str(error), hint=error.hint)
            return self._action_response(request, view, error)
        self.reader.forget()
        if wants_json(request):
            return JSONResponse({"server": name, "action": action.name, "says": result.message, "run": result.run})
        session.message = result.message
        after = "/" if action.name in BATCHED else f"/servers/{name}/"  # the inbox selects the next row
        return RedirectResponse(f"/runs/{result.run}/" if result.run else after, 303)

    async def _try_page(self, request: Request, session: DashboardSession) -> Response:
        given = {"raw": request.query_params["raw"]} if "raw" in request.query_params else None
        return await self._tool_call_response(request, session, given, None)

    async def _try(self, request: Request) -> Response:
        session = self.require_session(request)
        name, tool, given = request.path_params["name"], request.path_params["tool"], await read_body(request)
        ticket, form = str(given.get("ticket", "")), await run_in_threadpool(self._trial_form, request, given)
        self.use_ticket(session, ticket, name, "try", tool, form=(_FORM, form))
        try:
            async with self._tool_calls:
                tried = await run_in_threadpool(self._call_tool, name, tool, given)
        except ConfigError as error:
            if wants_json(request):
                raise
            return await self._tool_call_response(request, session, given, None, error)
        return await self._tool_call_response(request, session, given, tried)

    def _trial_form(self, request: Request, given: Mapping[str, Any]) -> str:
        try:
            detail = self.reader.server(request.path_params["name"])
            arguments = parse_tool_arguments(detail, request.path_params["tool"], given)
        except PipelineError:
            return request.url.path
        return _with_values(request.url.path, {"raw": json.dumps(arguments)})

    def _call_tool(self, name: str, tool: str, given: Mapping[str, Any]) -> ToolCallResult:
        detail = self.reader.server(name)
        return run_tool_call(Workspace.find(self._root), detail, tool, parse_tool_arguments(detail, tool, given))

    async def _tool_call_response(
        self,
        request: Request,
        session: DashboardSession,
        given: Mapping[str, Any] | None,
        tried: ToolCallResult | None,
        error: ConfigError | None = None,
    ) -> Response:
        name, tool = request.path_params["name"], request.path_params["tool"]

        def view() -> ToolCallPage:
            return tool_call_page(Workspace.find(self._root), self.reader.server(name), tool, given, tried)

        page = await run_in_threadpool(view)
        if not page.problem:
            page = replace(page, ticket=self.access.ticket(session, name, "try", tool))
        if error and not page.problem:
            page = replace(page, problem=str(error), hint=error.hint)
        if wants_json(request):
            return JSONResponse(to_json(page))
        shown = render_form("try.html", Links(request.url.path), self.visitor(request), view=page)
        return HTMLResponse(shown, 422 if error else 200)

    def perform(self, session: DashboardSession, name: str, action: Action, values: Mapping[str, str]) -> ActionResult:
        """Perform an action in the name of the session's person."""
        with acting_as(session.actor, source=session.source):
            workspace = Workspace.find(self._root)
            return action.perform(workspace, name, values, dry_run=False, start=self.runs.start)


def wants_json(request: Request) -> bool:
    """Return True if the client wants JSON."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


async def read_body(request: Request) -> Mapping[str, Any]:
    """Return the fields of a form or of a JSON object."""
    body = await _whole_body(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            found = json.loads(body)
            # Raises UnicodeEncodeError for lone surrogates, which cannot be stored.
            json.dumps(found, ensure_ascii=False).encode()
            if isinstance(found, dict):
                return found
        elif kind == "application/x-www-form-urlencoded":
            fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=200)
            return {name: values[-1] for name, values in fields.items()}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the request cannot be read: {error}", hint="send a form or a JSON object") from error
    raise ConfigError(
        "the request is neither a form nor a JSON object", hint="send a form, or set Content-Type: application/json"
    )


async def _whole_body(request: Request) -> bytes:
    body = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_BODY:
                    raise ConfigError(f"the request has more than {_MAX_BODY} bytes", hint="send a smaller request")
    except TimeoutError:
        raise ConfigError(
            f"the request body timed out after {_BODY_SECONDS:g} s", hint="send the request again"
        ) from None
    return bytes(body)


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _caller(request: Request) -> ProxiedCaller:
    found: ProxiedCaller = request.state.caller
    return found


def _hint(error: PipelineError) -> str:
    if isinstance(error, StaleDecisionError):
        return (
            "review `changes`; if you still want the action, send `settled` with `ticket`; its `precondition` is "
            f"{error.facts.precondition}"
        )
    return error.hint


def _action(request: Request) -> Action:
    name = request.path_params["action"]
    if name not in ACTIONS:
        raise NotFoundError(f"unknown action {name!r}", hint=f"use one of {', '.join(ACTIONS)}")
    return ACTIONS[name]


def login_path(request: Request) -> str:
    """Return the path of the login page."""
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"{Links(request.url.path).to('/login/', {'next': path})}"


def _cookie(request: Request) -> str:
    """Return the cookie name. The name contains the port, because all ports of a host share cookies."""
    port = request.url.port
    return f"{_COOKIE}_{port}" if port else _COOKIE


def server_history_link(server: str) -> tuple[str, str]:
    """Return the link (text, path) to a server's history."""
    return f"The history of {server}", f"/servers/{server}/#history"


def _with_values(path: str, values: Mapping[str, str]) -> str:
    query = urlencode(values, errors="replace")
    return f"{path}?{query}" if query and len(query) < _MAX_QUERY else path


def _next_path(given: Mapping[str, Any]) -> str:
    wanted = str(given.get("next", ""))
    fits = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted and wanted.isprintable()
    return wanted if fits else "/"


@dataclass(frozen=True, slots=True)
class CancelPage:
    """Page that cancels a run. `problem` is the reason if the run cannot be canceled."""

    workspace: str
    run: str
    steps: tuple[str, ...]
    problem: str
    hint: str
    ticket: str


class CancelRoutes:
    """HTTP routes for the cancellation of runs."""

    def __init__(self, acting: ActionRoutes) -> None:
        self._acting = acting

    def routes(self) -> list[Route]:
        """Return the routes for cancellation."""
        return [
            Route("/runs/{run}/actions/cancel/", self._acting.behind_login(self._check), methods=["GET"]),
            Route("/runs/{run}/actions/cancel/", self._cancel, methods=["POST"]),
        ]

    async def _check(self, request: Request, session: DashboardSession) -> Response:
        view = await run_in_threadpool(self._page, request.path_params["run"])
        if not view.problem:
            view = replace(view, ticket=self._acting.access.ticket(session, view.run, "cancel"))
        return self._response(request, view, 200)

    async def _cancel(self, request: Request) -> Response:
        session, run = self._acting.require_session(request), request.path_params["run"]
        given = await read_body(request)
        ticket, after = str(given.get("ticket", "")), [("The page of the run", f"/runs/{run}/")]
        self._acting.use_ticket(session, ticket, run, "cancel", form=("Cancel the run", request.url.path), after=after)
        try:
            await run_in_threadpool(self._acting.runs.cancel, run)
        except PromotionError as error:
            view = await run_in_threadpool(partial(self._page, run, error))
            return self._response(request, view, 409)
        message = "the run is stopping: finished stages are kept, running ones are recorded as interrupted"
        if wants_json(request):
            return JSONResponse({"run": run, "says": message})
        session.message = message
        return RedirectResponse(f"/runs/{run}/", 303)

    def _page(self, run: str, error: PromotionError | None = None) -> CancelPage:
        view = run_page(self._acting.reader.run(run))
        if error is None and run not in self._acting.runs.going:
            elsewhere = "this run was started in a terminal or by another program: cancel it there"
            error = PromotionError(
                elsewhere if view.going else "this run has ended", hint="open the page of the run to see its status"
            )
        if error is not None:
            return CancelPage(view.workspace, run, (), str(error), error.hint, "")
        at_work = tuple(f"{step.server} {step.stage}" for step in view.steps if step.status.key == "running")
        return CancelPage(view.workspace, run, at_work, "", "", "")

    def _response(self, request: Request, view: CancelPage, status: int) -> Response:
        if wants_json(request):
            said = {"error": {"message": view.problem, "hint": view.hint}} if status >= 400 else {}
            return JSONResponse({**said, **to_json(view)}, status)
        page = render_form("cancel.html", Links(request.url.path), self._acting.visitor(request), view=view)
        return HTMLResponse(page, status)
