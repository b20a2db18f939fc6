"""Dependencies: made for a call, handed over by annotation, closed after it, whatever happens to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import pytest

from mcpfactory_runtime import Context, Depends, Server, ToolError
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.server.dependencies import override
from mcpfactory_runtime.testing import connect

pytestmark = pytest.mark.anyio

LOG: list[str] = []


@pytest.fixture(autouse=True)
def _empty() -> None:
    LOG.clear()


def plain() -> str:
    LOG.append("plain")
    return "plain"


async def awaited() -> str:
    return "awaited"


def opened() -> Iterator[str]:
    LOG.append("open")
    try:
        yield "opened"
    except BaseException as error:
        LOG.append(f"saw {type(error).__name__}")
        raise
    finally:
        LOG.append("close")


async def opened_async() -> AsyncIterator[str]:
    LOG.append("open async")
    try:
        yield "opened async"
    finally:
        LOG.append("close async")


@contextmanager
def managed() -> Iterator[str]:
    LOG.append("open managed")
    yield "managed"
    LOG.append("close managed")


class Shelf:
    def __init__(self, name: Annotated[str, Depends(opened)], size: int = 3) -> None:
        self.words = f"{name} shelf of {size}"


def nested(first: Annotated[str, Depends(opened)], ctx: Context, again: str = Depends(opened)) -> str:
    return f"{first} {again} {ctx.client_info['name']}"


ShelfOf = Annotated[Shelf, Depends(Shelf)]


def server() -> Server:
    made = Server("dependent", version="1")

    @made.tool
    async def all_kinds(  # noqa: PLR0917 - one of each kind
        word: str,
        a: Annotated[str, Depends(plain)],
        b: Annotated[str, Depends(awaited)],
        c: Annotated[str, Depends(opened)],
        d: Annotated[str, Depends(opened_async)],
        e: Annotated[str, Depends(managed)],
        shelf: ShelfOf,
        number: int = 1,
    ) -> list[str]:
        """Say everything."""
        LOG.append("call")
        return [word, a, b, c, d, e, shelf.words, str(number)]

    @made.tool
    def in_thread(c: Annotated[str, Depends(opened)], n: Annotated[str, Depends(nested)]) -> str:
        LOG.append("call")
        return f"{c}, {n}"

    @made.tool
    def yields(c: Annotated[str, Depends(opened)]) -> Iterator[str]:
        yield from (c, LOG[-1])

    @made.tool
    def fails(c: Annotated[str, Depends(opened)]) -> str:
        raise ToolError(f"{c} and failed")

    @made.resource("shelf://{name}")
    async def shelf(name: str, c: Annotated[str, Depends(opened)]) -> str:
        return f"{name} {c}"

    @made.prompt
    async def greet(name: str, c: Annotated[str, Depends(opened)]) -> str:
        return f"{name} {c}"

    @made.completion
    async def complete(ref: Any, argument: Any, c: Annotated[str, Depends(opened)]) -> list[str]:
        return [f"{argument.value} {c}"]

    return made


async def said(client: Client, tool: str, arguments: Any = None) -> Any:
    return (await client.call_tool(tool, arguments or {}))["structuredContent"]["result"]


async def test_each_kind_is_made_once_in_order_and_closed_in_reverse() -> None:
    async with connect(server()) as client:
        listed = {tool["name"]: tool for tool in await client.list_tools()}
        assert list(listed["all_kinds"]["inputSchema"]["properties"]) == ["word", "number"]
        assert listed["all_kinds"]["inputSchema"]["required"] == ["word"]
        assert listed["all_kinds"]["description"] == "Say everything."
        assert await said(client, "all_kinds", {"word": "x"}) == [
            *("x", "plain", "awaited", "opened", "opened async", "managed", "opened shelf of 3", "1")
        ]
    assert LOG == ["plain", "open", "open async", "open managed", "call", "close managed", "close async", "close"]


async def test_providers_depend_on_others_and_take_the_context() -> None:
    async with connect(server(), info={"name": "robot", "version": "1"}) as client:
        assert await said(client, "in_thread") == "opened, opened opened robot"
        assert "Context" not in str(await client.list_tools())
    assert LOG == ["open", "call", "close"]


async def test_resources_prompts_and_completions_have_them() -> None:
    async with connect(server()) as client:
        assert (await client.read_resource("shelf://a"))[0]["text"] == "a opened"
        assert (await client.get_prompt("greet", {"name": "b"}))["messages"][0]["content"]["text"] == "b opened"
        assert [one["name"] for one in (await client.list_prompts())[0]["arguments"]] == ["name"]
        reference = {"type": "ref/prompt", "name": "greet"}
        assert (await client.complete(reference, "name", "c"))["values"] == ["c opened"]
    assert LOG == ["open", "close"] * 3


async def test_a_test_puts_another_provider_in_its_place() -> None:
    async with connect(server()) as client:
        with override(opened, lambda: "a fake"):
            assert (await client.read_resource("shelf://a"))[0]["text"] == "a a fake"
        assert (await client.read_resource("shelf://a"))[0]["text"] == "a opened"


def test_mistakes_are_said_at_registration() -> None:
    made = Server("dependent", version="1")

    def wants(name: str) -> str:
        return name

    with pytest.raises(TypeError, match="the parameter name has no value"):

        @made.tool
        async def first(one: str = Depends(wants)) -> None: ...

    with pytest.raises(TypeError, match="inline=True is for `def` functions without dependencies"):

        @made.tool(inline=True)
        def second(one: Annotated[str, Depends(plain)]) -> None: ...
