"""Routes of one's own beside MCP, as browsers, webhooks and load balancers ask for them, over sockets."""

from __future__ import annotations

import logging
import threading
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import StreamingResponse

from mcpfactory_runtime import Server
from mcpfactory_runtime.auth import Authorization
from tests.runtime.transports.test_mounting import served
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.anyio
RESOURCE, ISSUER = "http://127.0.0.1/mcp", "http://127.0.0.1/issuer"


def routed(**options: Any) -> Server:
    server = Server("routed", version="1", **options)

    @server.route("/books/{isbn}")
    async def book(request: Request) -> dict[str, str]:
        return {"isbn": request.path_params["isbn"], "q": request.query_params.get("q", "")}

    @server.route("/hooks/{path:path}", methods=["post", "put"], public=True)
    async def hook(request: Request) -> str:
        return f"{request.method} {request.path_params['path']} {len(await request.body())}"

    @server.route("/thread")
    def thread(request: Request) -> str:
        return threading.current_thread().name

    @server.route("/who")
    async def who(request: Request) -> Any:
        return {"who": getattr(request.user, "subject", ""), "scopes": request.auth.scopes, **dict(request.headers)}

    @server.route("/stream")
    async def stream(_: Request) -> StreamingResponse:
        async def parts() -> Any:
            yield b"one "
            yield b"two"

        return StreamingResponse(parts(), media_type="text/csv")

    @server.route("/nothing", methods=["DELETE"])
    async def nothing(_: Request) -> None:
        """Deletes nothing."""

    @server.route("/raw")
    async def raw(_: Request) -> bytes:
        return b"\x00\x01"

    @server.route("/broken")
    async def broken(_: Request) -> str:
        raise RuntimeError("the password is hunter2")

    @server.route("/gone")
    async def gone(_: Request) -> str:
        raise HTTPException(410, "not here any more", {"x-since": "1999"})

    return server


async def asked(app: Any, method: str, path: str, **options: Any) -> httpx.Response:
    async with served(app) as url, httpx.AsyncClient(base_url=url, trust_env=False) as http:
        return await http.request(method, path, **options)


@pytest.mark.parametrize(
    ("method", "path", "status", "kind", "text"),
    [
        ("GET", "/books/9?q=tea", 200, "application/json", '{"isbn":"9","q":"tea"}'),
        ("HEAD", "/books/9", 200, "application/json", ""),
        ("PUT", "/hooks/a/b", 200, "text/plain; charset=utf-8", "PUT a/b 0"),
        ("GET", "/stream", 200, "text/csv; charset=utf-8", "one two"),
        ("DELETE", "/nothing", 204, None, ""),
        ("GET", "/raw", 200, "application/octet-stream", "\x00\x01"),
        ("GET", "/gone", 410, "text/plain; charset=utf-8", "not here any more\n"),
        ("GET", "/elsewhere", 404, "text/plain; charset=utf-8", "Nothing here. hint: the MCP endpoint is /mcp\n"),
        ("GET", "/health", 200, "application/json", '{"status":"ok"}'),
    ],
)
async def test_what_a_route_returns_is_sent(method, path, status, kind, text):
    answer = await asked(routed().http_app(), method, path)
    assert (answer.status_code, answer.headers.get("content-type"), answer.text) == (status, kind, text)


async def test_other_methods_are_refused_with_those_that_there_are():
    answer = await asked(routed().http_app(), "DELETE", "/hooks/a")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, PUT")


async def test_a_failure_is_in_the_log_and_not_in_the_answer(caplog):
    with caplog.at_level(logging.ERROR):
        answer = await asked(routed().http_app(), "GET", "/broken")
    assert (answer.status_code, "hunter2" in answer.text) == (500, False)
    assert "hunter2" in caplog.text
    assert "GET /broken failed" in caplog.text


async def test_only_who_may_call_the_server_gets_what_is_not_public():
    claims = {"iss": ISSUER, "sub": "ana", "aud": RESOURCE, "client_id": "c", "scope": "read write"}
    auth = Authorization(resource=RESOURCE, issuer=ISSUER, verify=lambda token: claims if token == "good" else None)
    app = routed().http_app(auth=auth)
    assert (await asked(app, "GET", "/books/9")).status_code == 401
    assert (await asked(app, "GET", "/books/9", headers={"authorization": "Bearer bad"})).status_code == 401
    found = (await asked(app, "GET", "/who", headers={"authorization": "Bearer good"})).json()
    assert (found["who"], found["scopes"], "authorization" in found) == ("ana", ["read", "write"], False)
    assert (await asked(app, "POST", "/hooks/a")).status_code == 200


async def test_foreign_pages_and_hosts_are_refused_and_named_pages_are_served():
    app = routed().http_app(allowed_origins={"https://app.test"})
    for headers in ({"origin": "https://evil.test"}, {"host": "evil.test"}):
        assert (await asked(app, "POST", "/hooks/a", headers=headers)).status_code == 403
    page = {"origin": "https://app.test"}
    preflight = {**page, "access-control-request-method": "PUT"}
    granted = await asked(app, "OPTIONS", "/hooks/a", headers=preflight)
    assert (granted.status_code, granted.headers["access-control-allow-methods"]) == (204, "POST, PUT")
    assert (await asked(app, "OPTIONS", "/mcp", headers=preflight)).headers["access-control-allow-methods"] == (
        "GET, POST, DELETE"
    )
    answer = await asked(app, "PUT", "/hooks/a", headers=page)
    assert answer.headers["access-control-allow-origin"] == "https://app.test"


@parametrize_subtests(
    "path, methods, said",
    [
        ("hooks", ["GET"], "does not begin with a slash"),
        ("/hooks", ["FETCH"], "unknown HTTP method: FETCH"),
        ("/hooks", [], "/hooks has no HTTP methods"),
        ("/health", ["GET"], "/health is reserved"),
        ("/metrics/", ["POST"], "/metrics/ is reserved"),
        ("/.well-known/oauth-protected-resource", ["GET"], "oauth-protected-resource is reserved"),
        ("/taken", ["POST", "GET"], "GET /taken is already taken"),
    ],
)
def test_a_route_that_cannot_be_served_is_refused_when_it_is_written(path, methods, said):
    server = Server("routed", version="1")
    server.route("/taken")(lambda request: "")
    with pytest.raises(ValueError, match=said):
        server.route(path, methods=methods)(lambda request: "")


def test_a_route_where_mcp_or_a_page_is_served_is_refused_by_the_application():
    server = Server("routed", version="1")
    server.route("/rpc", methods=["POST"])(lambda request: "")
    with pytest.raises(ValueError, match="/rpc is already used for MCP, a login or a page"):
        server.http_app(path="/rpc")
    server.http_app()


async def test_routes_of_parts_come_along_unless_their_path_is_taken():
    whole, part = Server("whole", version="1"), routed()
    whole.mount(part, "shop")
    assert (await asked(whole.http_app(), "GET", "/books/7")).json()["isbn"] == "7"
    other = Server("other", version="1")
    other.route("/books/{isbn}")(lambda request: "")
    with pytest.raises(ValueError, match="is already taken"):
        other.mount(part)
    assert (len(other.routes), other.parts) == (1, [])
