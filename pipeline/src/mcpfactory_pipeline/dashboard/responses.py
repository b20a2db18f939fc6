"""What all routes of the dashboard answer with: JSON or a page, and problems as either."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PipelineError, PromotionError
from mcpfactory_pipeline.dashboard.access import AccessError
from mcpfactory_pipeline.dashboard.follow import TooManyFollowersError
from mcpfactory_pipeline.dashboard.render import render_problem

__all__ = ["error_response", "not_found_response", "problem_response", "wants_json"]

# The first that fits. What is not among them is our own trouble.
_STATUSES: Final[tuple[tuple[type[PipelineError], int], ...]] = (
    (NotFoundError, 404),
    (PromotionError, 409),
    (ConfigError, 422),
    (TooManyFollowersError, 503),
)


def wants_json(request: Request) -> bool:
    """Whether it is a program that asks."""
    if "format" in request.query_params:
        return request.query_params["format"] == "json"
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


async def problem_response(request: Request, error: Exception) -> Response:
    """Return the answer to a request that could not be fulfilled."""
    assert isinstance(error, PipelineError)  # registered for nothing else
    if isinstance(error, AccessError):
        status, title = error.status, "Not allowed"
    else:
        status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)
        title = "No such page" if status == 404 else "Something is wrong"
    answer = error_response(request, status, title, str(error), error.hint)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="mcpfactory dashboard"'
    return answer


async def not_found_response(request: Request, _error: Exception) -> Response:
    """Return the answer where there is nothing."""
    return error_response(
        request, 404, "No such page", f"There is nothing at {request.url.path}.", "Start at the inbox."
    )


def error_response(request: Request, status: int, title: str, message: str, hint: str) -> Response:
    """Return a problem, in the form that is wanted."""
    if wants_json(request):
        return JSONResponse({"error": {"message": message, "hint": hint}}, status)
    return HTMLResponse(render_problem(title, message, hint, request.url.path), status)
