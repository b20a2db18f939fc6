"""Mock of n8n's public API on loopback: workflows, executions, tags and variables.

`python upstream.py` prints the server's environment as one line of JSON, and serves until stdin is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

KEY = "key-of-the-tests"
NO_LICENCE = "Your license does not allow for feat:variables. To enable feat:variables, please upgrade to a license that supports this feature."
CHANGEABLE = {"name", "nodes", "connections", "settings", "staticData"}
SETTINGS = {
    "saveExecutionProgress": bool,
    "saveManualExecutions": bool,
    "saveDataErrorExecution": str,
    "saveDataSuccessExecution": str,
    "executionTimeout": (int, float),
    "errorWorkflow": str,
    "timezone": str,
    "executionOrder": str,
    "callerPolicy": str,
    "callerIds": str,
    "availableInMCP": bool,
}
IMPORT: dict[str, Any] = {
    "id": "1000",
    "name": "Order import",
    "active": True,
    "createdAt": "2026-10-01T08:00:00.000Z",
    "updatedAt": "2026-11-01T08:00:00.000Z",
    "versionId": "v1",
    "nodes": [
        {
            "id": "a",
            "name": "Every hour",
            "type": "n8n-nodes-base.scheduleTrigger",
            "typeVersion": 1,
            "position": [0, 0],
            "parameters": {},
        },
        {
            "id": "b",
            "name": "Shop",
            "type": "n8n-nodes-base.httpRequest",
            "typeVersion": 4,
            "position": [240, 0],
            "parameters": {"url": "https://shop.example.com/orders", "options": {"timeout": 1000}},
            "credentials": {"httpHeaderAuth": {"id": "c1", "name": "Shop key"}},
        },
        {
            "id": "c",
            "name": "Sheet",
            "type": "n8n-nodes-base.googleSheets",
            "typeVersion": 4,
            "position": [480, 0],
            "parameters": {},
        },
        {
            "id": "d",
            "name": "Note",
            "type": "n8n-nodes-base.noOp",
            "typeVersion": 1,
            "position": [480, 200],
            "parameters": {},
        },
    ],
    "connections": {
        "Every hour": {"main": [[{"node": "Shop", "type": "main", "index": 0}]]},
        "Shop": {"main": [[{"node": "Sheet", "type": "main", "index": 0}]]},
    },
    # As saved by the editor: more settings than the API accepts, and "DEFAULT" for unset ones.
    "settings": {
        "executionOrder": "v1",
        "saveExecutionProgress": "DEFAULT",
        "callerPolicy": "any",
        "binaryMode": "separate",
    },
    "tags": [{"id": "t1", "name": "production"}],
}


def failed(number: int, workflow: str, node: str, message: str) -> dict[str, Any]:
    error = {"message": message, "description": "The service refused the request", "node": {"name": node}}
    data = {"resultData": {"error": error, "lastNodeExecuted": node, "runData": {}}}
    when = f"2026-11-{number % 28 + 1:02}T10:00:00.000Z"
    return {
        "id": number,
        "status": "error",
        "finished": False,
        "mode": "trigger",
        "startedAt": when,
        "stoppedAt": when,
        "workflowId": workflow,
        "data": data,
    }


@dataclass
class Model:
    """State of the instance; `between` is called before each PUT of a workflow, as a concurrent change."""

    workflows: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            "1000": deepcopy(IMPORT),
            "1001": {**deepcopy(IMPORT), "id": "1001", "name": "Newsletter", "active": False, "tags": []},
        }
    )
    executions: list[dict[str, Any]] = field(
        default_factory=lambda: [
            failed(9, "1000", "Shop", "401 Unauthorized"),
            failed(8, "1000", "Shop", "401 Unauthorized"),
            failed(7, "1001", "Sheet", "The sheet is gone"),
            failed(6, "2000", "Shop", "Timeout"),
            {
                "id": 5,
                "status": "success",
                "finished": True,
                "mode": "trigger",
                "startedAt": "2026-11-05T10:00:00.000Z",
                "workflowId": "1000",
            },
        ]
    )
    tags: dict[str, str] = field(default_factory=lambda: {"t1": "production"})
    variables: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"5": {"key": "SHOP_URL", "value": "https://shop.example.com"}}
    )
    instead: dict[str, Any] = field(default_factory=dict)  # by path: a body that replaces the usual one
    licensed: bool = True
    reads: int = 0
    meddle_after: int = 0
    requests: list[tuple[str, str, Any]] = field(default_factory=list)

    async def answer(self, request: Request) -> Response:
        """Handle one request."""
        body = json.loads(await request.body() or b"null")
        parts = request.url.path.removeprefix("/api/v1/").split("/")
        self.requests.append((request.method, "/".join(parts), body))
        if request.headers.get("x-n8n-api-key") != KEY:
            return JSONResponse({"message": "unauthorized"}, 401)
        if "/".join(parts) in self.instead and request.method == "GET":
            other = self.instead["/".join(parts)]
            return other if isinstance(other, Response) else JSONResponse(other)
        if parts[0] == "variables" and not self.licensed:
            return JSONResponse({"message": NO_LICENCE}, 403)
        found = self._answer(request.method, parts, dict(request.query_params), body)
        return found if isinstance(found, Response) else JSONResponse(found)

    def _answer(self, method: str, parts: list[str], query: dict[str, str], body: Any) -> Any:
        match method, parts:
            case "GET", ["workflows"]:
                wanted = [one for one in self.workflows.values() if query.get("name") in (None, one["name"])]
                active = {"true": True, "false": False}.get(query.get("active", ""))
                return page([one for one in wanted if active in (None, one["active"])], query)
            case "POST", ["workflows"]:
                return self._replaced(str(1002 + len(self.workflows)), body, {"active": False, "tags": []})
            case _, ["workflows", number, *_] if number not in self.workflows:
                return JSONResponse({"message": "Not Found"}, 404)
            case "GET", ["workflows", number]:
                return self._read(number)
            case "PUT", ["workflows", number]:
                return self._replaced(number, body, self.workflows[number])
            case "DELETE", ["workflows", number]:
                return self.workflows.pop(number)
            case "POST", ["workflows", number, "activate" | "deactivate" as what]:
                self.workflows[number]["active"] = what == "activate"
                return self.workflows[number]
            case "GET", ["executions"]:
                kept = [one for one in self.executions if query.get("status") in (None, one["status"])]
                kept = [one for one in kept if query.get("workflowId") in (None, one["workflowId"])]
                bare = query.get("includeData") != "true"
                return page([{k: v for k, v in one.items() if not (bare and k == "data")} for one in kept], query)
            case "POST", ["executions", number, "retry"]:
                return {"id": 10, "status": "success", "retryOf": number, "workflowId": "1000"}
            case "GET", ["tags"]:
                return page([{"id": key, "name": name} for key, name in self.tags.items()], query)
            case "GET", ["variables"]:
                return page([{"id": key, **one} for key, one in self.variables.items()], query)
            case "PUT", ["variables", number] if number in self.variables:
                self.variables[number] = body
                return Response(status_code=204)
            case "GET", ["credentials", "schema", "githubApi"]:
                return {
                    "type": "object",
                    "properties": {"accessToken": {"type": "string"}},
                    "required": ["accessToken"],
                }
        return JSONResponse({"message": "Not Found"}, 404)

    def _read(self, number: str) -> dict[str, Any]:
        self.reads += 1
        found = deepcopy(self.workflows[number])
        if self.reads == self.meddle_after:  # a concurrent change just after a read
            self.workflows[number] |= {"versionId": "v9", "updatedAt": "2026-11-20T08:00:00.000Z"}
        return found

    def _replaced(self, number: str, body: Any, before: dict[str, Any]) -> Any:
        if extra := set(body) - CHANGEABLE:
            return JSONResponse({"message": f"request/body must NOT have additional properties: {sorted(extra)}"}, 400)
        for number_of, node in enumerate(body.get("nodes", [])):
            if wrong := [name for name, value in node.items() if value is None]:
                return JSONResponse({"message": f"request/body/nodes/{number_of}/{wrong[0]} must be object"}, 400)
        settings = body.get("settings", {})
        if extra := set(settings) - set(SETTINGS):
            said = f"request/body/settings must NOT have additional properties: {sorted(extra)}"
            return JSONResponse({"message": said}, 400)
        if wrong := [key for key, value in settings.items() if not isinstance(value, SETTINGS[key])]:
            return JSONResponse({"message": f"request/body/settings/{wrong[0]} is of another type"}, 400)
        self.workflows[number] = {
            **before,
            **body,
            "settings": {**before.get("settings", {}), **settings},
            "id": number,
            "versionId": "v2",
            "updatedAt": "2026-11-21T08:00:00.000Z",
        }
        return self.workflows[number]


def page(rows: list[Any], query: dict[str, str]) -> dict[str, Any]:
    """Return a page of rows; the cursor is the index of the next row."""
    start, limit = int(query.get("cursor", "0")), int(query.get("limit", "100"))
    more = start + limit < len(rows)
    return {"data": rows[start : start + limit], "nextCursor": str(start + limit) if more else None}


def application(model: Model) -> Starlette:
    """Return the mock API as an ASGI application."""
    return Starlette(routes=[Route("/{path:path}", model.answer, methods=["GET", "POST", "PUT", "DELETE"])])


async def main() -> None:
    """Serve until stdin is closed."""
    server = uvicorn.Server(uvicorn.Config(application(Model()), port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    environment = {"N8N_BASE_URL": f"http://127.0.0.1:{port}/api/v1", "N8N_API_KEY": KEY, "N8N_ALLOW_PRIVATE": "1"}
    print(json.dumps({"environment": environment}), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    asyncio.run(main())
