"""Raw client of a server in this process: messages in memory, requests over ASGI, without our client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.testing import MemoryStream, serve_memory
from mcpfactory_runtime.transports.http.app import HttpApp
from mcpfactory_runtime.types import Json

PATIENCE = 10  # seconds; timeout of a test that already failed


def request(method: str, params: Json | None = None, id: Any = 1) -> Json:  # noqa: A002 - as on the wire
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def notification(method: str, params: Json | None = None) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def hello(revision: str, capabilities: Json | None = None) -> Json:
    info = {"name": "raw", "version": "0"}
    params = {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": info}
    return request("initialize", params, "hello")


def dressed(revision: Revision, message: Json, capabilities: Json | None = None, meta: Json | None = None) -> Json:
    """Return the message with the metadata that the revision requires in each request."""
    envelope = {META_VERSION: revision.name, META_CAPABILITIES: capabilities or {}} if revision.modern else {}
    full = {**envelope, **(meta or {})}
    return {**message, "params": {**message["params"], "_meta": full}} if full else message


class Speaker:
    """A client of one revision that sends exactly the given messages.

    Attributes:
        heard: every received message that was not an awaited response, in order.
        greeting: the response to initialize; {} without a handshake.
    """

    def __init__(self, stream: MemoryStream, revision: Revision, capabilities: Json) -> None:
        self.stream = stream
        self.revision = revision
        self.capabilities = capabilities
        self.heard: list[Any] = []
        self.greeting: Json = {}
        self._count = 0

    async def say(self, *messages: Any) -> None:
        """Send messages, and bytes unchanged."""
        for message in messages:
            await self.stream.send(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")

    async def hear(self) -> Any:
        """Return the next message of the server."""
        return json.loads(await asyncio.wait_for(self.stream.receive(), PATIENCE))

    async def answer(self, request_id: Any) -> Any:
        """Return the response with this ID; store earlier messages in `heard`."""
        while True:
            message = await self.hear()
            if isinstance(message, dict) and "method" not in message and message.get("id") == request_id:
                return message
            self.heard.append(message)

    async def until(self, method: str) -> Json:
        """Return the next message with this method; store earlier messages in `heard`."""
        while True:
            message: Json = await self.hear()
            if message.get("method") == method:
                return message
            self.heard.append(message)

    def make(self, method: str, params: Json | None = None, meta: Json | None = None) -> Json:
        """Return a valid request of the revision."""
        self._count += 1
        return dressed(self.revision, request(method, params, f"q{self._count}"), self.capabilities, meta)

    async def ask(self, method: str, params: Json | None = None, meta: Json | None = None) -> Json:
        """Send a request; return its response."""
        message = self.make(method, params, meta)
        await self.say(message)
        response: Json = await self.answer(message["id"])
        return response

    async def call(self, tool: str, arguments: Json | None = None, meta: Json | None = None) -> Json:
        """Call a tool; return its result."""
        response = await self.ask("tools/call", {"name": tool, "arguments": arguments or {}}, meta)
        result: Json = response["result"]
        return result

    async def code(self, method: str, params: Json | None = None) -> int:
        """Return the error code of a request that must be refused."""
        response = await self.ask(method, params)
        found: int = response["error"]["code"]
        return found

    async def silence(self) -> list[Any]:
        """Return and clear `heard`, with all messages until the response to a further request."""
        await self.ask("ping" if "ping" in self.revision.requests else "server/discover")
        told, self.heard = self.heard, []
        return told


@asynccontextmanager
async def speak(server: Server, revision: Revision, **capabilities: Any) -> AsyncIterator[Speaker]:
    """Yield a speaker to a server in memory, after the handshake if the revision has one."""
    async with serve_memory(server) as stream:
        speaker = Speaker(stream, revision, capabilities)
        if not revision.modern:
            await speaker.say(hello(revision.name, capabilities))
            speaker.greeting = await speaker.answer("hello")
            await speaker.say(notification("notifications/initialized"))
        yield speaker


class Reply:
    """A response over HTTP: complete, or an event stream that can be read in parts and closed."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._ended = False
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._started = asyncio.Event()
        self._left = asyncio.Event()
        self._rest = b""
        self.task: asyncio.Task[None] | None = None

    async def body(self) -> bytes:
        """Return everything until the end."""
        while await self._more():
            pass
        return self._rest

    async def _more(self) -> bool:
        """Wait for more of the body; return False at its end."""
        if not self._ended:
            piece = await asyncio.wait_for(self._pieces.get(), PATIENCE)
            self._ended = piece is None
            self._rest += piece or b""
        return not self._ended

    async def json(self) -> Any:
        return json.loads(await self.body())

    async def event(self) -> dict[str, str]:
        """Return the next server-sent event; {} at the end of the stream. Skip comments."""
        while True:
            while b"\n\n" not in self._rest:
                if not await self._more():
                    return {}
            block, _, self._rest = self._rest.partition(b"\n\n")
            lines = [line for line in block.decode().splitlines() if not line.startswith(":")]
            if lines:
                return {name: value.removeprefix(" ") for name, _, value in (line.partition(":") for line in lines)}

    async def events(self) -> list[dict[str, str]]:
        """Return all events until the end."""
        found = []
        while event := await self.event():
            found.append(event)
        return found

    async def messages(self) -> list[Any]:
        """Return all messages until the end, from JSON or from events."""
        if self.headers.get("content-type") == "application/json":
            return [await self.json()]
        return [json.loads(event["data"]) for event in await self.events() if event.get("data")]

    async def leave(self) -> None:
        """Close the connection, and wait until the server has noticed."""
        self._left.set()
        assert self.task is not None
        await asyncio.wait_for(asyncio.wait([self.task]), PATIENCE)

    async def started(self) -> Reply:
        await asyncio.wait_for(self._started.wait(), PATIENCE)
        return self

    async def take(self, message: Any) -> None:
        """Process a message that the application sends (ASGI)."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            self._started.set()
        else:
            self._pieces.put_nowait(message.get("body", b""))
            if not message.get("more_body", False):
                self._pieces.put_nowait(None)

    async def gone(self) -> None:
        await self._left.wait()


class Web:
    """Requests to the endpoint of a server in this process. Headers are given with underscores.

    Attributes:
        address: where the requests come from.
    """

    def __init__(self, app: HttpApp) -> None:
        self.app = app
        self.address = "127.0.0.1"

    async def send(self, method: str, body: Any = None, /, path: str = "/mcp", **headers: str) -> Reply:
        """Send a request; return the response when it starts. A body other than bytes is sent as JSON."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        named = {"host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
        if body is not None:
            named.setdefault("content-type", "application/json")
        target, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": target,
            "query_string": query.encode(),
            "client": (self.address, 1),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items()],
        }
        reply = Reply()
        given = False

        async def receive() -> Any:
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": data, "more_body": False}
            await reply.gone()
            return {"type": "http.disconnect"}

        reply.task = asyncio.ensure_future(self.app(scope, receive, reply.take))
        starting = asyncio.ensure_future(reply.started())
        await asyncio.wait([starting, reply.task], return_when=asyncio.FIRST_COMPLETED)
        if reply.task.done():
            reply.task.result()  # an exception of the application is a failure of the test
        return await starting

    async def post(self, message: Any, **headers: str) -> Reply:
        return await self.send("POST", message, **headers)

    async def get(self, **headers: str) -> Reply:
        return await self.send("GET", **headers)

    async def begin(self, revision: Revision, capabilities: Json | None = None, **headers: str) -> str:
        """Begin a session; return its ID."""
        reply = await self.post(hello(revision.name, capabilities), **headers)
        assert reply.status == 200, await reply.body()
        session = reply.headers["mcp-session-id"]
        await self.post(notification("notifications/initialized"), mcp_session_id=session, **headers)
        return session

    async def ask(
        self, revision: Revision, method: str, params: Json | None = None, meta: Json | None = None, **headers: str
    ) -> Reply:
        """Send a request of the per-request lifecycle with the required headers."""
        given = params or {}
        name = given.get("name") or given.get("uri") or given.get("taskId")
        own = {"mcp_protocol_version": revision.name, "mcp_method": method} | ({"mcp_name": name} if name else {})
        capabilities = given.pop("capabilities", None) if "capabilities" in given else None
        return await self.post(dressed(revision, request(method, given), capabilities, meta), **{**own, **headers})


@asynccontextmanager
async def web(server: Server, **options: Any) -> AsyncIterator[Web]:
    """Yield a server over HTTP, without a socket."""
    app = server.http_app(**options)
    told: asyncio.Queue[Json] = asyncio.Queue()
    answers: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.ensure_future(app({"type": "lifespan"}, told.get, answers.put))
    for event in ("startup", "shutdown"):
        told.put_nowait({"type": f"lifespan.{event}"})
        assert (await asyncio.wait_for(answers.get(), PATIENCE))["type"] == f"lifespan.{event}.complete"
        if event == "startup":
            yield Web(app)
    await life
