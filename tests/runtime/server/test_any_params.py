"""Whatever the parameters, a server answers every request once, with a code of the peer's fault and never of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.protocol.errors import INTERNAL_ERROR
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.testing import serve_memory
from tests.runtime.requirements import requirement
from tests.timeouts import TIMEOUT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["add", "hello"]) | JSON,
        "uri": st.sampled_from(["a://b", "a://x/1"]) | JSON,
        "arguments": st.dictionaries(st.sampled_from(["a", "b"]), JSON) | JSON,
        "cursor": JSON,
        "level": st.just("error") | JSON,
        "ref": st.fixed_dictionaries({"type": st.just("ref/prompt") | JSON, "name": JSON}) | JSON,
        "argument": st.fixed_dictionaries({"name": JSON, "value": JSON}) | JSON,
        "context": st.fixed_dictionaries({"arguments": JSON}) | JSON,
        "notifications": st.dictionaries(st.sampled_from(["toolsListChanged", "resourceSubscriptions"]), JSON) | JSON,
        "requestState": JSON,
        "inputResponses": JSON,
        "protocolVersion": JSON,
        "capabilities": JSON,
        "clientInfo": JSON,
    },
)
METHODS = sorted((LATEST.requests | LATEST_LEGACY.requests) - {"subscriptions/listen"})


def make() -> Server:
    server = Server("any")

    @server.tool
    async def add(a: int, b: list[str] | None = None) -> int:
        """Add."""
        return a

    @server.resource("a://b")
    async def fixed() -> str:
        """Fixed."""
        return "x"

    @server.resource("a://x/{number}")
    async def variable(number: int) -> str:
        """Variable."""
        return "x"

    @server.prompt
    async def hello(a: str, b: int = 0) -> str:
        """Say hello."""
        return a

    @server.completion
    async def complete(ref: Any, argument: Any, context: Any) -> list[str]:
        """Suggest."""
        return [argument.value]

    return server


async def answers(requests: list[tuple[str, dict[str, Any]]]) -> dict[int, Any]:
    """The answers to some requests, each in both lifecycles."""
    async with serve_memory(make()) as stream:
        await stream.send(b'{"jsonrpc":"2.0","id":-1,"method":"initialize","params":{"protocolVersion":"x"}}\n')
        for number, (method, params) in enumerate(requests):
            meta = {META_VERSION: LATEST.name, META_CAPABILITIES: {}}
            for offset, full in ((0, params), (1, {**params, "_meta": meta})):
                message = {"jsonrpc": "2.0", "id": 2 * number + offset, "method": method, "params": full}
                await stream.send(json.dumps(message).encode() + b"\n")
        found: dict[int, Any] = {}
        while len(found) < 2 * len(requests) + 1:
            answer = json.loads(await asyncio.wait_for(stream.receive(), TIMEOUT))
            assert answer["id"] not in found
            found[answer["id"]] = answer
        return found


@requirement("message.result-xor-error", "completion.validate", "resources.validate-uri")
@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(METHODS), PARAMS), min_size=1, max_size=8))
def test_every_request_is_answered_once_whatever_its_parameters(requests: list[tuple[str, dict[str, Any]]]) -> None:
    for answer in asyncio.run(answers(requests)).values():
        assert ("result" in answer) != ("error" in answer)
        if "error" in answer:
            assert answer["error"]["code"] != INTERNAL_ERROR, answer
        else:
            assert "internal error" not in json.dumps(answer), answer
