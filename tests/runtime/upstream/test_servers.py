"""Several servers of one API: where each call goes, as the document and the environment say."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, SecurityScheme, ServerAddress, StubUpstream, Upstream
from mcpfactory_runtime.upstream.secrets import Settings, server_override_variables
from mcpfactory_runtime.upstream.servers import Addresses, unchanged_servers_notice
from tests.subtest_table import parametrize_subtests

ROOT = "https://api.test/2.0"
SERVERS = (
    ServerAddress("uploads", "https://uploads.test/api"),
    ServerAddress("origin", "https://api.test"),
    ServerAddress("eu-west", ""),
)


def addresses(**environ: str) -> Addresses:
    return Addresses(Settings(environ, "SHOP"), ROOT, SERVERS)


@parametrize_subtests("environ, root, uploads, origin", [
        ({}, ROOT, "https://uploads.test/api", "https://api.test"),
        ({"SHOP_UPLOADS_BASE_URL": "http://u"}, ROOT, "http://u", "https://api.test"),
        ({"SHOP_BASE_URL": "http://s/x/2.0"}, "http://s/x/2.0", "https://uploads.test/api", "http://s/x"),
        ({"SHOP_BASE_URL": "http://s/2.0/"}, "http://s/2.0/", "https://uploads.test/api", "http://s"),
        ({"MCPFACTORY_BASE_URL": "http://s/2.0"}, "http://s/2.0", "https://uploads.test/api", "http://s"),
        ({"SHOP_BASE_URL": "http://s"}, "http://s", "https://uploads.test/api", "https://api.test"),
        ({"SHOP_BASE_URL": "http://s", "SHOP_ORIGIN_BASE_URL": "http://o"}, "http://s", "https://uploads.test/api", "http://o"),
        ({"MCPFACTORY_UPLOADS_BASE_URL": "http://any"}, ROOT, "https://uploads.test/api", "https://api.test"),
    ])  # fmt: skip
def test_each_server_is_where_its_variable_says_or_else_the_document(
    environ: dict[str, str], root: str, uploads: str, origin: str
) -> None:
    found = addresses(**environ)
    assert [found.of(name) for name in ("", "uploads", "origin")] == [root, uploads, origin]


@parametrize_subtests(
    "environ, notice",
    [
        ({}, ""),
        ({"SHOP_BASE_URL": f"{ROOT}/"}, ""),
        ({"SHOP_UPLOADS_BASE_URL": "http://u"}, ""),
        (
            {"SHOP_BASE_URL": "http://s/2.0", "SHOP_EU_WEST_BASE_URL": "http://e"},
            "SHOP_BASE_URL does not move operations at https://uploads.test/api: "
            "they still use that address; set SHOP_UPLOADS_BASE_URL to move them",
        ),
        (
            {
                "MCPFACTORY_BASE_URL": "http://s",
                **server_override_variables("SHOP", ["uploads", "eu-west"], "http://s"),
            },
            "MCPFACTORY_BASE_URL does not move operations at https://api.test: "
            "they still use that address; set SHOP_ORIGIN_BASE_URL to move them",
        ),
        (
            {
                "SHOP_BASE_URL": "http://s",
                **server_override_variables("SHOP", [one.name for one in SERVERS], "http://s"),
            },
            "",
        ),
    ],
)
def test_what_a_moved_root_leaves_behind_is_said(environ: dict[str, str], notice: str) -> None:
    assert unchanged_servers_notice(addresses(**environ)) == notice


def test_a_url_in_place_of_a_name_stays_and_an_unknown_name_says_what_to_do() -> None:
    found = addresses(SHOP_BASE_URL="http://s")
    assert found.of("https://other.test/alt") == "https://other.test/alt"
    assert found.set_by("https://other.test/alt") == ""
    with pytest.raises(ToolError, match="mcpfactory update"):
        found.of("gone")


KEY = SecurityScheme("key", "apiKey", ("SHOP_API_KEY",), "header", "X-Key")
AT_ROOT = Operation("GET", "/a", security=(("key",),))
AT_UPLOADS = Operation("GET", "/a", security=(("key",),), server="uploads")
ANSWER = {"request": {"method": "GET"}, "response": {"status": 200, "body": {}}}


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("moved", "meant"),
    [
        ((), [["/2.0/a"], ["/api/a"], []]),
        (("SHOP_BASE_URL",), [[], ["/api/a"], ["/a"]]),
        (("SHOP_UPLOADS_BASE_URL",), [["/2.0/a"], [], ["/a"]]),
        (("SHOP_BASE_URL", "SHOP_UPLOADS_BASE_URL"), [[], [], ["/a", "/a"]]),
    ],
)
async def test_each_call_reaches_its_own_host_with_the_credential(
    moved: tuple[str, ...], meant: list[list[str]]
) -> None:
    async with AsyncExitStack() as stack:
        stubs = [await stack.enter_async_context(StubUpstream([ANSWER])) for _ in range(3)]
        environ = {"SHOP_API_KEY": "secret-1", "SHOP_ALLOW_PRIVATE": "1", **dict.fromkeys(moved, stubs[2].base_url)}
        servers = [ServerAddress("uploads", f"{stubs[1].base_url}/api")]
        options = {"servers": servers, "environ": environ, "prefix": "SHOP"}
        api = await stack.enter_async_context(Upstream(f"{stubs[0].base_url}/2.0", [KEY], **options))  # type: ignore[arg-type]
        for operation in (AT_ROOT, AT_UPLOADS):
            await api.send(operation, {})
        assert [[request.path for request in stub.requests] for stub in stubs] == meant
        assert {dict(one.headers)["x-key"] for stub in stubs for one in stub.requests} == {"secret-1"}


@pytest.mark.anyio
async def test_the_variable_of_a_server_permits_its_host_and_is_named_when_it_is_refused() -> None:
    async with StubUpstream([ANSWER]) as stub:
        private = ServerAddress("uploads", stub.base_url)
        async with Upstream("https://api.test", servers=[private], environ={}, prefix="SHOP") as api:
            with pytest.raises(ToolError, match="to set SHOP_UPLOADS_BASE_URL to the API's address"):
                await api.send(Operation("GET", "/a", server="uploads"), {})
        chosen = {"SHOP_UPLOADS_BASE_URL": stub.base_url}
        async with Upstream("https://api.test", servers=[private], environ=chosen, prefix="SHOP") as api:
            await api.send(Operation("GET", "/a", server="uploads"), {})
        assert len(stub.requests) == 1
