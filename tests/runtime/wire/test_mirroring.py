"""Arguments that are mirrored in headers."""

from __future__ import annotations

from base64 import b64encode
from typing import Annotated

import pytest
from pydantic import Field

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.errors import HEADER_MISMATCH
from mcpfactory_runtime.revisions import LATEST
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, web
from tests.runtime.wire.slow import slow

pytestmark = pytest.mark.anyio


def encoded(text: str) -> str:
    return f"=?base64?{b64encode(text.encode()).decode()}?="


# what is mirrored: (arguments, headers, whether the call is served)
MIRRORED: list[tuple[Json, dict[str, str], bool]] = [
    ({"region": "eu"}, {"mcp_param_region": "eu"}, True),
    ({"region": "ü"}, {"mcp_param_region": encoded("ü")}, True),
    ({"size": 5}, {"mcp_param_size": "5.0"}, True),
    ({}, {}, True),
    ({}, {"mcp_param_other": "x", "mcp_param_colour": "red"}, True),
    ({"region": "eu"}, {}, False),
    ({"region": "eu"}, {"mcp_param_region": "us"}, False),
    ({"region": "ü"}, {"mcp_param_region": "=?base64?w7w?="}, False),
    ({"size": 5}, {"mcp_param_size": "6"}, False),
]


@requirement(
    "param-header.missing",
    "param-header.mismatch",
    "param-header.invalid",
    "param-header.absent",
    "param-header.status",
    "param-header.decoded",
    "param-header.numeric",
    "param-header.unknown",
)
@pytest.mark.parametrize(("arguments", "headers", "good"), MIRRORED)
async def test_mirrored_arguments_must_be_what_their_headers_say(
    arguments: Json, headers: dict[str, str], good: bool
) -> None:
    async with web(slow()[0]) as http:
        reply = await http.ask(LATEST, "tools/call", {"name": "mirrored", "arguments": arguments}, None, **headers)
        answer = await reply.json()
        assert (reply.status, answer.get("error", {}).get("code")) == ((200, None) if good else (400, HEADER_MISMATCH))


@requirement("param-header.definition")
def test_a_tool_with_an_invalid_annotation_is_refused() -> None:
    async def take(price: Annotated[float, Field(json_schema_extra={"x-mcp-header": "Price"})]) -> str:
        """Take."""
        return str(price)

    with pytest.raises(ValueError, match="hint:"):
        Server("mirrored").tool(take)
