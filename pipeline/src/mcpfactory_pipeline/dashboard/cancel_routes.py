"""Routes to cancel a run that was started in the dashboard: a page with the running stages, and a confirmation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from mcpfactory_pipeline.base.errors import PromotionError
from mcpfactory_pipeline.dashboard.action_routes import ActionRoutes, login_path, read_body
from mcpfactory_pipeline.dashboard.facts import to_json
from mcpfactory_pipeline.dashboard.render import Links, render_form
from mcpfactory_pipeline.dashboard.responses import wants_json
from mcpfactory_pipeline.dashboard.runs import run_page


@dataclass(frozen=True, slots=True)
class CancelPage:
    """The end of a run before it is complete. `steps` are at work now; `problem` is why it cannot be ended here, with a `hint`."""

    workspace: str
    run: str
    steps: tuple[str, ...]
    problem: str
    hint: str
    ticket: str


class CancelRoutes:
    """The routes that end a run."""

    def __init__(self, acting: ActionRoutes) -> None:
        self._acting = acting

    def routes(self) -> list[Route]:
        """Return the routes in addition to the pages of runs."""
        return [
            Route("/runs/{run}/actions/cancel/", self._check, methods=["GET"]),
            Route("/runs/{run}/actions/cancel/", self._cancel, methods=["POST"]),
        ]

    async def _check(self, request: Request) -> Response:
        session = self._acting.session_or_login(request)
        if session is None:
            return RedirectResponse(login_path(request), 303)
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
        message = "the run is being ended: what had finished is kept, what was at work is recorded as interrupted"
        if wants_json(request):
            return JSONResponse({"run": run, "says": message})
        session.message = message
        return RedirectResponse(f"/runs/{run}/", 303)

    def _page(self, run: str, error: PromotionError | None = None) -> CancelPage:
        view = run_page(self._acting.reader.run(run))
        if error is None and run not in self._acting.runs.going:
            elsewhere = "this run was begun in a terminal, or by another program: it is ended there"
            error = PromotionError(
                elsewhere if view.going else "this run has ended", hint="its page says how it stands"
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
