"""Call one tool once, against a stub of its API, in a separate process that shields the dashboard from the server.

python -m mcpfactory_pipeline.dashboard.trial < job.json
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_pipeline.launch.command import client_failure
from mcpfactory_runtime import McpError
from mcpfactory_runtime.client import ConnectionLostError, ProtocolError, connect_stdio
from mcpfactory_runtime.upstream.stub import RecordedRequest, StubUpstream

CALL_TIMEOUT: Final = 20.0  # seconds of a call
_TEXT: Final = 20_000  # characters of a body that are shown


def lenient(case: Mapping[str, Any]) -> dict[str, Any]:
    """Return the case of a tool, so that it answers for any arguments: only the request method must match."""
    return {"request": {"method": case["request"]["method"]}, "response": case["response"]}


async def _call(job: Mapping[str, Any]) -> dict[str, Any]:
    async with StubUpstream() as stub:
        if job["case"] is not None:
            stub.expect(lenient(job["case"]))
        environ = {**job["environ"], **{name: f"{stub.base_url}{folder}" for name, folder in job["addresses"].items()}}
        result, problem = None, ""
        try:
            async with connect_stdio(job["command"], env=environ, timeout=CALL_TIMEOUT) as client:
                result = await client.call_tool(job["tool"], job["arguments"])
        except (ConnectionLostError, ProtocolError, OSError, TimeoutError) as error:
            mistake = client_failure(error)
            problem = f"{mistake}\nhint: {mistake.hint}"
        except McpError as error:
            problem = f"the server answered with error {error.code}: {error}"
        return {"requests": [_request_json(one) for one in stub.requests], "result": result, "problem": problem}


def _request_json(request: RecordedRequest) -> dict[str, Any]:
    target = request.path + (f"?{request.query}" if request.query else "")
    body = request.body.decode("utf-8", errors="replace")[:_TEXT]
    return {"method": request.method, "target": target, "headers": [list(one) for one in request.headers], "body": body}


def main() -> None:
    """Read the job from stdin and write its result to stdout."""
    json.dump(asyncio.run(_call(json.load(sys.stdin))), sys.stdout)


if __name__ == "__main__":
    main()
