"""Responses of all dashboard routes: JSON or a page, and errors as either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Match, Route

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PipelineError, PromotionError
from mcpfactory_pipeline.dashboard.access import AccessError
from mcpfactory_pipeline.dashboard.live import TooManyFollowersError
from mcpfactory_pipeline.dashboard.render import render_problem

_VALUE: Final = 200  # characters of one value of a query: what is longer names nothing that there is
_VALUES: Final = 20

# The first that fits. What is not among them is our own trouble.
_STATUSES: Final[tuple[tuple[type[PipelineError], int], ...]] = (
    (NotFoundError, 404),
    (PromotionError, 409),
    (ConfigError, 422),
    (TooManyFollowersError, 503),
)


def wants_json(request: Request) -> bool:
    """Return True if the client is a program."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


def short_query(request: Request) -> dict[str, str]:
    """Return the query of a request, cut to what a page may repeat: it stands in fields and links of the page. Spaces around a value do not count."""
    return {name[:_VALUE]: value[:_VALUE].strip() for name, value in list(request.query_params.items())[:_VALUES]}


async def problem_response(request: Request, error: Exception) -> Response:
    """Return the answer to a request that could not be fulfilled."""
    assert isinstance(error, PipelineError)  # registered for nothing else
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
    """Return the answer where there is nothing."""
    return error_response(
        request, 404, "No such page", f"There is nothing at {request.url.path}.", "Start at the inbox."
    )


async def not_allowed_response(request: Request, _error: Exception) -> Response:
    """Return the answer to a method that a path does not take, with those that it does (RFC 9110 §10.2.1)."""
    here = (
        one for one in request.app.routes if isinstance(one, Route) and one.matches(request.scope)[0] is not Match.NONE
    )
    methods = sorted({method for route in here for method in route.methods or ()})
    message = f"{request.url.path} does not take {request.method}."
    answer = error_response(request, 405, "No such method", message, f"It takes {', '.join(methods)}.")
    answer.headers["Allow"] = ", ".join(methods)
    return answer


async def gone_response(_request: Request, _error: Exception) -> Response:
    """Return the response for a client that disconnected during its request."""
    return Response(status_code=400)


def error_response(
    request: Request, status: int, title: str, message: str, hint: str, *, ways: Sequence[tuple[str, str]] = ()
) -> Response:
    """Return a problem, in the form that is wanted; `ways` are links from there (words, path)."""
    if wants_json(request):
        return JSONResponse({"error": {"message": message, "hint": hint}}, status)
    return HTMLResponse(render_problem(title, message, hint, request.url.path, ways), status)
