"""An MCP server on loopback whose tools a test changes at run time. One client can get a different list."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from mcpfactory_runtime.revisions import LATEST_LEGACY, LEGACY
from mcpfactory_runtime.types import Json
from tests.loopback_server import LoopbackHandler, serving


def tool(name: str, description: str) -> Json:
    """A tool that takes a name and greets."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "Whom to greet."}},
        "required": ["name"],
        "additionalProperties": False,
    }
    return {
        "name": name,
        "description": description,
        "inputSchema": schema,
        "annotations": {"title": "Greet", "readOnlyHint": True},
    }


@dataclass
class Offering:
    """Current tools of the server. `lists` counts the requests for the tool list; `names` has the clients' names."""

    url: str
    tools: list[Json]
    by_client: dict[str, list[Json]] = field(default_factory=dict)
    silent: bool = False
    lists: int = 0
    names: set[str] = field(default_factory=set)


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    known: Offering
    sessions: dict[str, str]

    def get(self) -> None:
        self.answer(405)

    def delete(self) -> None:
        self.answer(200 if self.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None) else 404)

    def post(self) -> None:
        text = self.body()
        session = self.headers.get("Mcp-Session-Id", "")
        try:
            message = json.loads(text)
        except ValueError:
            message = None
        if self.known.silent or not isinstance(message, dict):
            self.answer(503 if self.known.silent else 400)
        elif "Origin" in self.headers:
            self.answer(403)
        elif self.headers.get("MCP-Protocol-Version", LATEST_LEGACY.name) not in LEGACY:
            self.answer(400)
        elif message.get("method") != "initialize" and session not in self.sessions:
            self.answer(404 if session else 400)
        elif "id" not in message or "method" not in message:
            self.answer(202)
        elif message["method"] == "initialize":
            self._begin(message)
        else:
            self._say(message, self._result(message, self.sessions[session]))

    def _begin(self, message: Json) -> None:
        params, session = message["params"], uuid.uuid4().hex
        self.sessions[session] = str(params["clientInfo"]["name"])
        self.known.names.add(self.sessions[session])
        result = {
            "protocolVersion": LATEST_LEGACY.name,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "plain", "version": "1.0.0"},
        }
        self._say(message, result, session)

    def _result(self, message: Json, client: str) -> Json | None:
        tools = self.known.by_client.get(client, self.known.tools)
        if message["method"] == "ping":
            return {}
        if message["method"] == "tools/list":
            self.known.lists += 1
            return {"tools": tools}
        if message["method"] == "tools/call":
            params = message.get("params")
            if not isinstance(params, dict) or params.get("name") not in {one["name"] for one in tools}:
                return None
            given = params.get("arguments") or {}
            if not isinstance(given.get("name"), str):
                return {
                    "content": [{"type": "text", "text": "name must be a text: give whom to greet"}],
                    "isError": True,
                }
            return {"content": [{"type": "text", "text": f"Hello, {given['name']}"}]}
        return None

    def _say(self, message: Json, result: Json | None, session: str = "") -> None:
        said = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
        self.answer(200, {"jsonrpc": "2.0", "id": message["id"], **said}, Mcp_Session_Id=session)


@contextmanager
def offering(*tools: Json) -> Iterator[Offering]:
    """Yield the server, on its own port."""
    found = Offering("", list(tools))
    with serving(_Handler, known=found, sessions={}) as url:
        found.url = f"{url}/mcp"
        yield found
