"""The client against a real HTTP server on loopback."""

from __future__ import annotations

import asyncio
import gzip
import threading
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from typing import Any

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.results import ToolResult
from mcpfactory_runtime.upstream import Operation, Parameter, SecurityScheme, StubUpstream, Upstream, client
from mcpfactory_runtime.upstream.operation import Body, Field
from mcpfactory_runtime.upstream.request import build_request
from mcpfactory_runtime.upstream.response import to_tool_result

pytestmark = pytest.mark.anyio

GET = Operation("GET", "/x", (Parameter("q", "query", "q"),))
POST = Operation("POST", "/x", body=Body("application/json", (Field("b"),)))


def case(response: Any, method: str = "GET", path: str = "/x") -> dict[str, Any]:
    return {"request": {"method": method, "path": path}, "response": response}


@asynccontextmanager
async def api(*cases: dict[str, Any], **options: Any) -> AsyncIterator[tuple[StubUpstream, Upstream]]:
    environ = options.pop("environ", {})
    async with StubUpstream(cases) as stub:
        options = {"retry_wait": 0, **options}
        settings = {"MCPFACTORY_BASE_URL": stub.base_url, **environ}
        async with Upstream(
            "https://document.invalid", options.pop("schemes", ()), environ=settings, **options
        ) as upstream:
            yield stub, upstream


async def refused(call: Awaitable[Any]) -> str:
    with pytest.raises(ToolError) as caught:
        await call
    return str(caught.value)


Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw(handler: Handler) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    with closing(server):
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_the_request_arrives_byte_for_byte_as_it_was_built() -> None:
    every = "".join(map(chr, range(32, 127))) + "é"
    parameters = (Parameter("p", "path", "p", allow_reserved=True), Parameter("q", "query", "q", allow_reserved=True))
    operation = Operation("GET", "/a/{p}", parameters)
    arguments = {"p": every, "q": every}
    async with api(case({"body": {"ok": True}}, path=f"/a/{every}")) as (stub, upstream):
        result = await upstream.send(operation, arguments)
    assert result.structured == {"ok": True}
    built = build_request(operation, arguments, "http://h").url.removeprefix("http://h")
    assert f"{stub.requests[0].path}?{stub.requests[0].query}" == built
    assert stub.requests[0].header("accept") == "application/json"


async def test_credentials_arrive_and_are_taken_out_of_what_comes_back() -> None:
    schemes = [SecurityScheme("k", "apiKey", ("KEY",), "header", "X-Key")]
    operation = Operation("GET", "/x", security=(("k",),))
    echo = {"body": {"you sent": "canary-1234"}, "headers": {"X-Echo": "canary-1234"}}
    async with api(case(echo), schemes=schemes, environ={"KEY": "canary-1234"}) as (stub, upstream):
        result = await upstream.send(operation, {})
    assert stub.requests[0].header("x-key") == "canary-1234"
    assert "canary-1234" not in repr(result)


async def test_missing_credentials_are_told_before_anything_is_sent() -> None:
    schemes = [SecurityScheme("k", "apiKey", ("KEY",), "header", "X-Key")]
    async with api(case({"body": {}}), schemes=schemes) as (stub, upstream):
        assert "KEY is not set" in await refused(upstream.send(Operation("GET", "/x", security=(("k",),)), {}))
    assert stub.requests == []


async def test_an_address_from_the_document_must_be_public_unless_the_user_permits_it() -> None:
    async with StubUpstream([case({"body": {}})]) as stub:
        port = stub.base_url.rpartition(":")[2]
        for base in (stub.base_url, f"http://localhost:{port}"):
            async with Upstream(base, environ={}) as upstream:
                assert "private or local address" in await refused(upstream.send(GET, {}))
        own = Operation("GET", "/x", server=stub.base_url)
        async with Upstream("https://a.invalid", environ={"MCPFACTORY_BASE_URL": "http://127.0.0.1:9"}) as upstream:
            assert "private or local address" in await refused(upstream.send(own, {}))
        assert stub.requests == []
        async with Upstream(stub.base_url, environ={"MCPFACTORY_ALLOW_PRIVATE": "1"}) as upstream:
            assert (await upstream.send(GET, {})).structured == {}


async def test_a_private_host_is_called_where_a_person_named_it_and_at_that_port_only() -> None:
    async with StubUpstream([case({"body": {}})]) as stub:
        port = int(stub.base_url.rpartition(":")[2])
        for private in ({f"127.0.0.1:{port}"}, {"127.0.0.1"}):
            async with Upstream(stub.base_url, environ={}, private=private) as upstream:
                assert (await upstream.send(GET, {})).structured == {}
        for private in ({f"127.0.0.1:{port + 1}"}, {f"localhost:{port}"}, {""}):
            async with Upstream(stub.base_url, environ={}, private=private) as upstream:
                assert "private or local address" in await refused(upstream.send(GET, {}))
        async with Upstream("http://127.0.0.1:9", environ={}, private={"127.0.0.1:9"}) as upstream:
            own = Operation("GET", "/x", server=stub.base_url)
            assert "private or local address" in await refused(upstream.send(own, {}))


async def test_a_variable_of_the_servers_own_goes_before_the_one_of_all() -> None:
    async with StubUpstream([case({"body": {}})]) as stub:
        shared = {
            "MCPFACTORY_BASE_URL": "http://127.0.0.1:9",
            "MCPFACTORY_ALLOW_PRIVATE": "1",
            "MCPFACTORY_TIMEOUT": "soon",
        }
        environ = {**shared, "SHOP_BASE_URL": stub.base_url, "SHOP_TIMEOUT": "20"}
        async with Upstream("", environ=environ, prefix="SHOP") as upstream:
            assert (await upstream.send(GET, {})).structured == {}
        environ = {"MCPFACTORY_ALLOW_PRIVATE": "1", "SHOP_ALLOW_PRIVATE": "0"}
        async with Upstream(stub.base_url, environ=environ, prefix="SHOP") as upstream:
            told = await refused(upstream.send(GET, {}))
            assert "to set SHOP_BASE_URL to the API's address, or SHOP_ALLOW_PRIVATE=1" in told
        async with Upstream(
            "", environ={"SHOP_BASE_URL": "", "OTHER_BASE_URL": stub.base_url}, prefix="SHOP"
        ) as upstream:
            assert "to set SHOP_BASE_URL" in await refused(upstream.send(GET, {}))
        async with Upstream(stub.base_url, environ={**shared, "SHOP_TIMEOUT": "later"}, prefix="SHOP") as upstream:
            assert "SHOP_TIMEOUT is 'later'" in await refused(upstream.send(GET, {}))
    assert len(stub.requests) == 1


KEY = SecurityScheme("key", "apiKey", ("SHOP_KEY",), "header", "X-Key")
ANY = [{"request": {"method": method}, "response": {"body": {}}} for method in ("GET", "POST")]


def moved(status: int, location: str, method: str = "GET") -> dict[str, Any]:
    return case({"status": status, "headers": {"Location": location}}, method)


@pytest.mark.parametrize(
    ("operation", "status", "location", "meant"),
    [
        (GET, 301, "/x/", "GET /x/ "),
        (GET, 302, "y?a=1", "GET /y "),
        (POST, 303, "/jobs/7", "GET /jobs/7 "),
        (POST, 307, "/x/", 'POST /x/ {"n":1}'),
        (POST, 308, "/x/", 'POST /x/ {"n":1}'),
    ],
)
async def test_a_redirect_within_the_origin_is_followed_with_the_credential(
    operation: Operation, status: int, location: str, meant: str
) -> None:
    secured = replace(operation, security=(("key",),))
    options: dict[str, Any] = {"schemes": [KEY], "environ": {"SHOP_KEY": "secret-1"}}
    async with api(moved(status, location, operation.method), *ANY, **options) as (stub, upstream):
        await upstream.send(secured, {"b": {"n": 1}} if operation.body else {})
    first, last = stub.requests
    assert f"{last.method} {last.path} {last.body.decode()}" == meant
    assert first.header("x-key") == last.header("x-key") == "secret-1"
    assert last.header("content-type") == ("application/json" if last.body else None)


@pytest.mark.parametrize(
    ("operation", "status"), [(GET, 301), (GET, 302), (GET, 303), (GET, 307), (POST, 303), (POST, 307), (POST, 308)]
)
async def test_nothing_is_sent_to_another_origin(operation: Operation, status: int) -> None:
    secured = replace(operation, security=(("key",),))
    options: dict[str, Any] = {"schemes": [KEY], "environ": {"SHOP_KEY": "secret-1", "MCPFACTORY_ALLOW_PRIVATE": "1"}}
    async with StubUpstream(ANY) as other:
        for target in (f"{other.base_url}/x", f"{other.base_url.replace('127.0.0.1', 'localhost')}/x"):
            async with api(moved(status, target, operation.method), **options) as (stub, upstream):
                told = await refused(upstream.send(secured, {"b": 1} if operation.body else {}))
            assert f"a redirect to {target.split('/')[2]}, which is another origin and not followed" in told
            assert len(stub.requests) == 1
        assert other.requests == []


async def test_redirects_that_do_not_end_are_left_after_a_few() -> None:
    async with api(moved(302, "/x")) as (stub, upstream):
        assert "which is a loop, or exceeds 5 redirects" in await refused(upstream.send(GET, {}))
    assert len(stub.requests) == 1
    hops = [case({"status": 302, "headers": {"Location": f"/{n + 1}"}}, path=f"/{n}") for n in range(9)]
    async with api(moved(302, "/0"), *hops) as (stub, upstream):
        assert "which is a loop, or exceeds 5 redirects" in await refused(upstream.send(GET, {}))
    assert len(stub.requests) == 6


async def test_cookies_of_one_call_do_not_reach_the_next() -> None:
    async with api(case({"body": {}, "headers": {"Set-Cookie": "sid=1; Path=/"}})) as (stub, upstream):
        await upstream.send(GET, {})
        await upstream.send(GET, {})
    assert [request.header("cookie") for request in stub.requests] == [None, None]


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_repeatable_call_is_repeated_when_the_api_is_busy(status: int) -> None:
    answers = [{"status": status, "headers": {"Retry-After": "0"}}, {"status": status}, {"body": {"n": 3}}]
    async with api(case(answers)) as (stub, upstream):
        assert (await upstream.send(GET, {})).structured == {"n": 3}
    assert len(stub.requests) == 3


async def test_it_is_repeated_twice_at_most_and_not_when_the_wait_is_long() -> None:
    async with api(case({"status": 503}), case({"status": 429, "headers": {"Retry-After": "3600"}}, path="/y")) as (
        stub,
        upstream,
    ):
        assert "503" in await refused(upstream.send(GET, {}))
        assert len(stub.requests) == 3
        assert "Retry-After: 3600 seconds" in await refused(upstream.send(Operation("GET", "/y"), {}))
        assert len(stub.requests) == 4


async def test_a_call_that_changes_something_is_not_repeated() -> None:
    async with api(case({"status": 503}, "POST")) as (stub, upstream):
        assert "503" in await refused(upstream.send(POST, {"b": 1}))
    assert len(stub.requests) == 1


async def test_a_long_response_is_cut_at_the_byte_limit_after_decompression() -> None:
    bomb = {"base64": b64encode(gzip.compress(b"x" * 5_000_000)).decode()}
    response = {"content_type": "text/plain", "body": bomb, "headers": {"Content-Encoding": "gzip"}}
    async with api(case(response), max_bytes=100_000, max_text=1000) as (_, upstream):
        (block,) = (await upstream.send(GET, {})).content
    assert block["text"].startswith("x" * 1000 + "\n\n[Cut")
    assert "more than 100,000 bytes" in block["text"]


@pytest.mark.parametrize(
    ("kind", "body", "in_thread"),
    [
        ("application/json", [1], False),
        ("application/json", ["x" * 1_000_000], True),
        ("application/xml", "<r/>", True),
    ],
)
async def test_xml_and_large_json_are_parsed_in_a_thread(
    kind: str, body: Any, in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def parsed(*arguments: Any, **options: Any) -> ToolResult:
        threads.append(threading.current_thread())
        return to_tool_result(*arguments, **options)

    monkeypatch.setattr(client, "to_tool_result", parsed)
    async with api(case({"content_type": kind, "body": body})) as (_, upstream):
        await upstream.send(GET, {})
    (thread,) = threads
    assert (thread is not threading.current_thread()) == in_thread


async def test_a_refused_connection_names_host_and_port() -> None:
    async with Upstream("", environ={"MCPFACTORY_BASE_URL": "http://127.0.0.1:9"}, retry_wait=0) as upstream:
        told = await refused(upstream.send(GET, {}))
    assert "no connection to 127.0.0.1:9 (connection refused)" in told
    assert "MCPFACTORY_BASE_URL" in told


@pytest.mark.parametrize("base", ["", "/v1", "ftp://h/x", "http://", "http://h:99999/"])
async def test_a_base_url_that_cannot_be_called_is_told(base: str) -> None:
    async with Upstream(base, environ={}) as upstream:
        assert "not a complete http or https URL" in await refused(upstream.send(GET, {}))


async def test_an_api_that_does_not_answer_in_time_is_told() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the client gives up

    async with raw(silent) as url, Upstream("", environ={"MCPFACTORY_BASE_URL": url}, timeout=0.2) as upstream:
        assert "did not answer within 0.2 seconds" in await refused(upstream.send(GET, {}))


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", b"nonsense\r\n\r\n"])
async def test_an_exchange_that_breaks_off_is_told(answer: bytes) -> None:
    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)

    async with raw(broken) as url, Upstream("", environ={"MCPFACTORY_BASE_URL": url}, retry_wait=0) as upstream:
        assert "was interrupted" in await refused(upstream.send(GET, {}))


async def test_the_person_who_runs_the_server_says_how_long_a_call_may_take() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw(silent) as url:
        environ = {"MCPFACTORY_BASE_URL": url, "MCPFACTORY_TIMEOUT": "0.2"}
        async with Upstream("", environ=environ) as upstream:
            assert "did not answer within 0.2 seconds" in await refused(upstream.send(Operation("GET", "/x"), {}))
            environ["MCPFACTORY_TIMEOUT"] = "soon"
            told = await refused(upstream.send(Operation("GET", "/x"), {}))
            assert "MCPFACTORY_TIMEOUT is 'soon'" in told
