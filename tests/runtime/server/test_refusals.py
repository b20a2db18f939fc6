"""What cannot be registered is refused when it is, with words that say what to write."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator

from mcpfactory_runtime import Context, Image, Server
from tests.subtest_table import parametrize_subtests


class Unknown:
    """Nothing that pydantic knows."""


def two_contexts(first: Context, second: Context) -> None: ...
def wrong_default(count: int = "many") -> None: ...  # type: ignore[assignment] # on purpose
def empty_default(count: int = "") -> None: ...  # type: ignore[assignment] # on purpose
def wrong_choice(speed: Literal["fast", "slow"] = "quick") -> None: ...  # type: ignore[assignment] # on purpose
def wrong_list(words: list[str] = [1]) -> None: ...  # type: ignore[list-item] # noqa: B006 - on purpose
def unknown_class(thing: Unknown, count: int) -> None: ...
def unknown_result() -> Unknown: ...
def plain() -> None: ...
def moody(_: object) -> int:
    raise RuntimeError("not now")


def four(a: str, b: str, c: str, d: str) -> list[str]: ...
async def alone(request: Any) -> dict[str, Any]: ...
async def no_generator(server: Any) -> int: ...
def one_yield(server: Any) -> Any:
    yield 1


def mounted(prefix: str) -> None:
    part = Server("part")
    part.tool(plain)
    Server("whole").mount(part, prefix)


REFUSED: dict[str, tuple[Callable[[Server], Any], type[Exception], str]] = {
    "two contexts": (lambda server: server.tool(two_contexts), TypeError, "first and second both take the Context\nhint: remove one"),
    "a default of another type": (lambda server: server.tool(wrong_default), TypeError, "the default of count cannot be 'many'"),
    "an empty text as the default of a number": (lambda server: server.tool(empty_default), TypeError, "the default of count cannot be ''"),
    "a default that is no choice": (lambda server: server.tool(wrong_choice), TypeError, "the default of speed cannot be 'quick'"),
    "a default with an item of another type": (lambda server: server.tool(wrong_list), TypeError, r"the default of words cannot be \[1\]"),
    "a class that nobody knows": (lambda server: server.tool(unknown_class), TypeError, "unknown_class: thing: "),
    "a result of such a class": (lambda server: server.tool(unknown_result), TypeError, "tool unknown_result: cannot derive an output schema"),
    "a misspelt annotation": (lambda server: server.tool(annotations={"readonly": True})(plain), TypeError, "unknown annotation readonly\nhint: use title, readOnlyHint"),
    "a hint that is no boolean": (lambda server: server.tool(annotations={"readOnlyHint": "yes"})(plain), TypeError, "readOnlyHint cannot be 'yes'\nhint: use True or False"),
    "a timeout that is text": (lambda server: server.tool(timeout="a")(plain), ValueError, "timeout cannot be 'a'\nhint: set a number of seconds"),  # type: ignore[call-overload] # on purpose
    "a function as a built tool": (lambda server: server.add_tool(plain), TypeError, r"hint: use server.tool\(function\)"),  # type: ignore[arg-type] # on purpose
    "middleware with one parameter": (lambda server: server.middleware(alone), TypeError, r"hint: write async def alone\(call, call_next\)"),
    "middleware of tools with one": (lambda server: server.tool_middleware(alone), TypeError, "middleware alone must take two arguments"),
    "completion with four": (lambda server: server.completion(four), TypeError, r"hint: write def complete\(ref, argument, context\)"),
    "a lifespan that is awaited": (lambda server: server.lifespan(no_generator), TypeError, "the lifespan no_generator is not an async generator\nhint: write async def"),
    "a lifespan of a plain generator": (lambda server: server.lifespan(one_yield), TypeError, "hint: write async def one_yield"),
    "a route without a path": (lambda server: server.route(plain), TypeError, r'a route needs a path\nhint: write @server.route\("/'),  # type: ignore[arg-type] # on purpose
    "a version that is no text": (lambda _: Server("x", version=1), TypeError, "the version of a server must be a string, not 1\nhint:"),  # type: ignore[arg-type] # on purpose
    "a server without a name": (lambda _: Server(" "), ValueError, "a server needs a name\nhint:"),
    "a prefix before its server": (lambda server: server.mount("p", Server("part")), TypeError, r"hint: mount\(server, 'p'\)"),  # type: ignore[arg-type] # on purpose
    "a part that is no server": (lambda server: server.mount(5), TypeError, r"5 is not a server\nhint: mount\(Server"),
    "a prefix that no tool can have": (lambda _: mounted("bad prefix"), ValueError, "'bad prefix_' is not a valid tool name\nhint:"),
    "a change of a tool that is not there": (lambda server: server.transform_tool("nope"), KeyError, "unknown tool 'nope'; tools: none registered yet"),
    "text that is no base64": (lambda _: Image(data="not base64!!"), ValueError, "text is not valid base64: .*\nhint: pass unencoded bytes"),
    "text with something else among its base64": (lambda _: Image(data="YWJj!!"), ValueError, "text is not valid base64: .*\nhint: pass unencoded bytes"),
    "text with something behind its base64": (lambda _: Image(data="YQ==YQ=="), ValueError, "text is not valid base64: .*\nhint: pass unencoded bytes"),
    "text that is not even ASCII": (lambda _: Image(data="é"), ValueError, "text is not valid base64: .*\nhint: pass unencoded bytes"),
}  # fmt: skip


@parametrize_subtests("what", REFUSED)
def test_it_says_what_to_write(what: str) -> None:
    attempt, kind, words = REFUSED[what]
    with pytest.raises(kind) as refused:
        attempt(Server("refusing"))
    assert re.search(words, str(refused.value.args[0])), refused.value


def test_what_looks_odd_and_is_meant_is_taken() -> None:
    server = Server("taking")

    @server.tool(annotations={"title": "T", "readOnlyHint": True})
    def taken(
        one: int | None = None, two: float = 1, three: bool = 0, four: Any = object, five: Literal["a"] = ""
    ) -> None: ...  # type: ignore[assignment] # as many write it

    @server.tool
    def asked(one: Annotated[int, AfterValidator(moody)] = 1) -> None: ...

    assert Image(data="YWJj\nYWJj\n").data == "YWJjYWJj"

    @server.middleware
    async def rest(*everything: Any) -> dict[str, Any]: ...

    @server.lifespan
    async def life(_: Any) -> AsyncIterator[int]:
        yield 1

    assert list(server.registry.tools) == ["taken", "asked"]
