"""HTTP routes for one decision about several candidates.

The candidates are checked separately and confirmed together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mcpfactory_pipeline.base.errors import NotFoundError, PipelineError
from mcpfactory_pipeline.base.text import normalize_reason
from mcpfactory_pipeline.dashboard.access import DashboardSession
from mcpfactory_pipeline.dashboard.action_routes import ActionRoutes, read_body, server_history_link, wants_json
from mcpfactory_pipeline.dashboard.actions import ACTIONS, Action, ActionPage
from mcpfactory_pipeline.dashboard.facts import to_json
from mcpfactory_pipeline.dashboard.inbox import (
    BATCHED,
    BatchChoice,
    BatchPage,
    batch_page,
    done_message,
    needs_reason,
    parse_batch_choices,
    parse_confirmations,
)
from mcpfactory_pipeline.dashboard.render import Links, render_form


class BatchRoutes:
    """Routes for one decision about several candidates. Each candidate has its own ticket and result."""

    def __init__(self, acting: ActionRoutes) -> None:
        self._acting = acting

    def routes(self) -> list[Route]:
        """Return the routes for checks and confirmations."""
        return [
            Route("/actions/{action}/", self._acting.behind_login(self._check), methods=["GET"]),
            Route("/actions/{action}/", self._act, methods=["POST"]),
        ]

    async def _check(self, request: Request, session: DashboardSession) -> Response:
        action, reason = _batched(request), normalize_reason(request.query_params.get("reason", "").strip())
        choices = parse_batch_choices(request.query_params.getlist("item"))

        def view() -> BatchPage:
            explain = bool(reason) or not needs_reason(action)
            items = [self._item(session, action, one, one.values(action, reason), explain=explain) for one in choices]
            return batch_page(self._acting.reader.workspace_name(), action, items, choices, reason=reason)

        return self._response(request, await run_in_threadpool(view), 200)

    async def _act(self, request: Request) -> Response:
        session, action = self._acting.require_session(request), _batched(request)
        given = await read_body(request)
        reason = normalize_reason(str(given.get("reason", "")).strip())
        asked = [(choice, choice.values(action, reason), ticket) for choice, ticket in parse_confirmations(given)]
        # Use up all tickets before the first decision, so that a repeated or forged form changes nothing.
        after = [server_history_link(name) for name in dict.fromkeys(choice.server for choice, _, _ in asked)]
        seen = [
            self._acting.use_ticket(
                session, ticket, choice.server, action.name, values, form=("The inbox", "/"), after=after
            )
            for choice, values, ticket in asked
        ]
        results = await run_in_threadpool(
            self._perform, session, action, [(choice.server, values) for choice, values, _ in asked]
        )
        self._acting.reader.forget()
        done = [one for one in results if isinstance(one, str)]

        def view() -> BatchPage:
            items = [
                self._item(session, action, choice, values, before=before, error=one)
                for (choice, values, _), before, one in zip(asked, seen, results, strict=True)
                if not isinstance(one, str)
            ]
            return batch_page(self._acting.reader.workspace_name(), action, items, reason=reason, done=done)

        if len(done) < len(results):
            return self._response(request, await run_in_threadpool(view), 409)
        if wants_json(request):
            return JSONResponse({"action": action.name, "done": done, "items": []})
        session.message = done_message(done)
        return RedirectResponse("/", 303)

    def _perform(
        self, session: DashboardSession, action: Action, calls: Sequence[tuple[str, Mapping[str, str]]]
    ) -> list[str | PipelineError]:
        results: list[str | PipelineError] = []
        for server, values in calls:
            try:
                results.append(self._acting.perform(session, server, action, values).message)
            except PipelineError as error:  # the other decisions must still be made
                results.append(error)
            except OSError as error:  # for example, the disk is full; show the results of earlier decisions
                results.append(PipelineError(f"{server}: the decision could not be saved: {error.strerror or error}"))
        return results

    def _item(
        self,
        session: DashboardSession,
        action: Action,
        choice: BatchChoice,
        values: Mapping[str, str],
        *,
        explain: bool = True,
        before: Mapping[str, str] | None = None,
        error: PipelineError | None = None,
    ) -> ActionPage:
        try:
            view = self._acting.page(session, choice.server, action, values, explain=explain, before=before)
        except PipelineError as trouble:  # the server was deleted or is unreadable
            workspace = self._acting.reader.workspace_name()
            about = (workspace, choice.server, action.name, action.title, action.about)
            return ActionPage(
                *about, (), ready=False, happens=(), settled={}, problem=str(trouble), hint=trouble.hint, ticket=""
            )
        if error and not view.changes and not view.problem:
            return replace(view, problem=str(error), hint=error.hint)
        return view

    def _response(self, request: Request, view: BatchPage, status: int) -> Response:
        if wants_json(request):
            return JSONResponse(to_json(view), status)
        links = Links(request.url.path)
        return HTMLResponse(
            render_form("batch.html", links, self._acting.visitor(request), view=view, tried=request.method == "POST"),
            status,
        )


def _batched(request: Request) -> Action:
    name = request.path_params["action"]
    if name not in BATCHED:
        raise NotFoundError(
            f"the action {name!r} is not available for several candidates", hint=f"use one of {', '.join(BATCHED)}"
        )
    return ACTIONS[name]
