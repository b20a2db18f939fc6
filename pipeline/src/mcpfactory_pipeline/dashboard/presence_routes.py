"""The page of a decision while others look at it: who they are, and a stream that tells when that, or what is decided about, has changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import cast

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mcpfactory_pipeline.dashboard.access import AccessError
from mcpfactory_pipeline.dashboard.action_routes import ActionRoutes
from mcpfactory_pipeline.dashboard.follow import Followers, decision_state, watch_decision
from mcpfactory_pipeline.dashboard.live import Snapshot
from mcpfactory_pipeline.dashboard.render import Links, Visitor

__all__ = ["PresenceRoutes", "looking"]


class PresenceRoutes:
    """The route of the stream. Whoever follows it counts as looking, until they log out or leave."""

    def __init__(self, acting: ActionRoutes, followers: Followers) -> None:
        self._acting, self._followers = acting, followers

    def routes(self) -> list[Route]:
        """Return what is served besides the pages."""
        return [Route("/live/servers/{name}/decide/{channel}/", self._follow, methods=["GET"])]

    async def _follow(self, request: Request) -> Response:
        session = self._acting.session(request)
        if session is None:
            raise AccessError("nobody is logged in here", hint="open /login/", status=401)
        path, values = request.url.path.removeprefix("/live"), request.path_params
        mark = partial(self._acting.presence.mark, path)
        make = partial(watch_decision, self._acting.reader, values["name"], values["channel"], mark)
        position = request.headers.get("last-event-id") or request.query_params.get("from", "")
        stream = await self._followers.join(request.url.path, make, position)
        told = self._present(request, path, session.actor, stream)
        return StreamingResponse(told, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _present(
        self, request: Request, path: str, actor: str, stream: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        with self._acting.presence.watching(path, actor):
            async with aclosing(cast("AsyncGenerator[bytes, None]", stream)) as told:
                async for sent in told:
                    if self._acting.session(request) is None:
                        return
                    yield sent


def looking(acting: ActionRoutes, path: str, visitor: Visitor, links: Links, seen: str) -> tuple[Visitor, str]:
    """Note that somebody looks at the page of a decision; return them with those who look, too, and the path of what tells of changes.

    `seen` is the digest that the page is not older than.
    """
    acting.presence.look(path, visitor.actor)
    state = decision_state(seen, acting.presence.mark(path))
    live = links.to(f"/live{path}", {"from": f"{Snapshot(state).digest};"})
    return replace(visitor, others=acting.presence.others(path, visitor.actor)), live
