"""What authors of servers write, and what they are told when it is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import mcpfactory_runtime
from mcpfactory_runtime import Context, Image, McpError, Server, Text
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from tests.runtime.requirements import requirement
from tests.runtime.server.generated_package import use
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT


@requirement("initialize.offer", "completion.not-offered")
def test_a_server_offers_only_what_it_has() -> None:
    async def task(client: Client) -> dict[str, Any]:
        for method in ("tools/list", "resources/list", "prompts/list", "completion/complete"):
            with pytest.raises(McpError) as refused:
                await client.request(method)
            assert refused.value.code == METHOD_NOT_FOUND
        return client.capabilities

    for revision in (LATEST, LATEST_LEGACY):
        assert use(Server("empty"), task, revision=revision.name) == {"logging": {}}


@requirement("pages.stable", "pages.invalid-cursor", "pages.end")
def test_lists_come_in_pages_that_survive_changes() -> None:
    server = Server("long", page_size=3)
    for number in range(8):
        server.tool(name=f"t{number}")(nothing)

    async def task(client: Client) -> list[str]:
        first = await client.request("tools/list")
        server.remove_tool("t0")
        second = await client.request("tools/list", {"cursor": first["nextCursor"]})
        third = await client.request("tools/list", {"cursor": second["nextCursor"]})
        assert "nextCursor" not in third
        server.remove_tool("t2")
        with pytest.raises(McpError) as stale:
            await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert stale.value.code == INVALID_PARAMS
        return [tool["name"] for page in (first, second, third) for tool in page["tools"]]

    assert use(server, task) == [f"t{number}" for number in range(8)]


async def nothing() -> None:
    """Do nothing."""


def test_a_lifespan_surrounds_the_server_and_its_state_reaches_handlers() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def life(server: Server) -> AsyncIterator[str]:
        seen.append("start")
        yield "state"
        seen.append("end")

    server = Server("alive", lifespan=life)

    @server.tool
    async def state(ctx: Context) -> Text:
        """Tell the state."""
        return Text(ctx.state)

    result = use(server, lambda client: client.call_tool("state"))
    assert result["content"][0]["text"] == "state"
    assert seen == ["start", "end"]


@requirement("caching.hints", "caching.absent-before")
def test_results_of_the_newest_revision_say_how_long_they_keep() -> None:
    server = Server("cached", ttl_ms=60_000, cache_scope="public")
    server.tool(nothing)
    result = use(server, lambda client: client.request("tools/list"))
    assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (60_000, "public", "complete")
    old = use(server, lambda client: client.request("tools/list"), revision=LATEST_LEGACY.name)
    assert set(old) == {"tools"}


@requirement("tools.unique-names")
def test_names_are_taken_once() -> None:
    server = Server("double")
    server.tool(nothing)
    with pytest.raises(ValueError, match="nothing"):
        server.tool(nothing)
    server.resource("a://b")(nothing)
    with pytest.raises(ValueError, match="a://b"):
        server.resource("a://b")(nothing)
    server.prompt(name="p")(nothing)
    with pytest.raises(ValueError, match="p"):
        server.prompt(name="p")(nothing)
    with pytest.raises(KeyError):
        server.remove_tool("other")


@requirement("resources.templates")
def test_variables_of_a_template_must_be_the_parameters() -> None:
    async def takes(a: str, b: str = "") -> str:
        return a + b

    server = Server("templates")
    server.resource("x://{a}")(takes)
    server.resource("x://{a}/{b}")(takes)
    server.resource("y://{a}{?b}")(takes)
    for wrong in ("z://fixed", "z://{b}", "z://{a}/{c}", "z://{?a}"):
        with pytest.raises(TypeError, match="hint:"):
            server.resource(wrong)(takes)


@parametrize_subtests(
    "make",
    [
        lambda server: server.tool(lambda: 1),
        lambda server: Server("x", page_size=0),
        lambda server: mcpfactory_runtime.Image(),
        lambda server: mcpfactory_runtime.Image(b"", path="x"),
        lambda server: mcpfactory_runtime.Elicit("?"),
    ],
)
def test_mistakes_are_refused_with_a_hint(make: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="hint:"):
        make(Server("x"))


@pytest.mark.parametrize(
    ("missing", "says"),
    [("uvicorn", "hint: pip install 'mcpfactory-runtime[http]'"), ("mcpfactory_runtime.transports.http.serve", "")],
)
def test_what_http_needs_is_named_where_it_is_not_installed(missing: str, says: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from mcpfactory_runtime import Server\n"
        "Server('demo').run(['--http', '--port', '0'])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert ran.returncode == (2 if says else 1)
    assert ("Traceback" in ran.stderr) == (not says)
    assert says in ran.stderr


def test_one_import_of_the_package_loads_none_of_its_modules() -> None:
    program = "import sys, mcpfactory_runtime; print(sorted(n for n in sys.modules if n.startswith('mcpfactory_')))"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "['mcpfactory_runtime']"


async def yields_later() -> AsyncIterator[int]:
    yield 1
    yield 2


def yields() -> Any:
    yield from ("a", 1)


@parametrize_subtests(
    "returned, annotation, content, structured",
    [
        (["a", Image(b"x"), {"k": 1}], None, ["a", "image", '{"k":1}'], None),
        ((Text("a"), 1), None, ["a", "1"], None),
        ([Image(b"x")], list[Image], ["image"], None),
        (b"\xff\x00", None, ["/wA="], None),
        (b"\xff\x00", bytes, ["/wA="], {"result": "/wA="}),
        ([b"\xff"], None, ['["_w=="]'], None),
        ([1, "a"], None, ['[1,"a"]'], None),
    ],
)
def test_what_people_return_becomes_content(
    returned: Any, annotation: Any, content: list[str], structured: Any
) -> None:
    def tool() -> Any:
        return returned

    tool.__annotations__ = {} if annotation is None else {"return": annotation}
    server = Server("results")
    server.tool(tool)
    found = use(server, lambda client: client.call_tool("tool", {}))
    assert [block.get("text", block["type"]) for block in found["content"]] == content
    assert found.get("structuredContent") == structured


def test_what_a_generator_yields_is_a_list() -> None:
    server = Server("results")
    server.tool(yields_later)
    server.tool(yields)
    found = use(server, lambda client: client.call_tool("yields_later", {}))
    assert found["structuredContent"] == {"result": [1, 2]}
    assert use(server, lambda client: client.call_tool("yields", {}))["content"][0]["text"] == '["a",1]'


def test_decorators_say_what_to_write() -> None:
    server = Server("decorated")
    server.tool("named")(nothing)
    server.prompt("asked", title="Asked")(nothing)
    assert list(server.registry.tools) == ["named"]
    assert list(server.registry.prompts) == ["asked"]
    for wrong, words in (
        (lambda: server.tool(5), "5 is neither a function nor a name"),  # type: ignore[call-overload]
        (lambda: server.tool("a", name="b"), "the tool has two names: 'a' and 'b'"),
        (lambda: server.resource(nothing), 'a resource needs a URI\nhint: write @server.resource\\("notes'),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=words):
            wrong()
    for wrong_uri in ("today", "notes/today", "//host/x", "1a:b"):
        with pytest.raises(ValueError, match="the URI has no scheme"):
            server.resource(wrong_uri)(nothing)

    async def any_of(uri: str) -> str:
        return uri

    server.resource("{+uri}")(any_of)  # whatever nothing else serves
