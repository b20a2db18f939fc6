"""Health endpoints `/health` and `/ready` for orchestrators and load balancers, and `/metrics`.

Unauthorized callers get no details from the probes, and no metrics.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mcpfactory_runtime.protocol import jsonrpc
from mcpfactory_runtime.protocol.http import Rejection
from mcpfactory_runtime.transports.http.asgi import ONLY_GET, READING, Headers, Scope, Send, send_json, send_rejection

if TYPE_CHECKING:
    from mcpfactory_runtime.server.interfaces import MetricsInterface, ServerInterface
    from mcpfactory_runtime.transports.http.asgi import LifespanTask
    from mcpfactory_runtime.transports.http.authentication import AccessGate, AnonymousAccessGate

log = logging.getLogger(__name__)

HEALTH: Final = "/health"
READY: Final = "/ready"
METRICS: Final = "/metrics"
PROBES: Final = frozenset({HEALTH, READY})
_HEAD: Final[Headers] = [(b"cache-control", b"no-store")]


class HealthEndpoints:
    """The probes and metrics of one HTTP application. The probes do not wait for the server's lifespan.

    Only callers that `gate` authorizes receive the names of checks.
    """

    def __init__(self, server: ServerInterface, life: LifespanTask, gate: AccessGate | AnonymousAccessGate) -> None:
        self._server = server
        self._life = life
        self._gate = gate
        self.draining = False
        self._beginning: asyncio.Task[None] | None = None

    async def serve(self, place: str, scope: Scope, headers: dict[str, str], send: Send) -> None:
        """Answer a probe with 200, or with 503 if the server should get no requests now."""
        if scope["method"] not in READING:
            await send_rejection(send, ONLY_GET)
            return
        answer = {"status": "ok"} if place == HEALTH else await self._report_readiness(scope, headers)
        status = 200 if answer["status"] in ("ok", "ready") else 503
        await send_json(send, status, b"" if scope["method"] == "HEAD" else jsonrpc.encode(answer), _HEAD)

    async def serve_metrics(
        self, metrics: MetricsInterface, sessions: int, scope: Scope, headers: dict[str, str], send: Send
    ) -> None:
        """Send the metrics to authorized callers."""
        refused = await _refused(self._gate, scope, headers) if scope["method"] in READING else ONLY_GET
        if refused is not None:
            await send_rejection(send, refused)
            return
        kind, data = await asyncio.to_thread(metrics.expose, headers.get("accept", ""), sessions)
        head = [(b"content-type", kind.encode()), (b"content-length", b"%d" % len(data)), *_HEAD]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else data})

    async def _report_readiness(self, scope: Scope, headers: dict[str, str]) -> dict[str, Any]:
        if self.draining or (self._life.started and self._server.closing.is_set()):
            return {"status": "draining"}
        if not self._life.started:
            # If the application is mounted without a lifespan, the probe must start the server.
            if self._beginning is None or self._beginning.done():
                self._beginning = asyncio.create_task(self._enter())
            return {"status": "starting"}
        found = await self._server.readiness.run_checks()
        answer: dict[str, Any] = {"status": "ready" if all(found.values()) else "unavailable"}
        if found and await _refused(self._gate, scope, headers) is None:
            answer["checks"] = {name: "ok" if succeeded else "failed" for name, succeeded in found.items()}
        return answer

    async def _enter(self) -> None:
        try:
            await self._life.start()
        except Exception:
            log.exception("the lifespan could not be entered")


async def _refused(gate: AccessGate | AnonymousAccessGate, scope: Scope, headers: dict[str, str]) -> Rejection | None:
    principal = await gate.authenticate(scope, headers)
    return principal if isinstance(principal, Rejection) else gate.authorize(principal, None)
