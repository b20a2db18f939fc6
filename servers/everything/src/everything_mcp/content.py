"""Tools that return every kind of content, report progress, log and fail."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from mcpfactory_runtime import Audio, Context, EmbeddedText, Image, Text, ToolError, ToolResult
from pydantic import Field

from .media import PNG, WAV

_PAUSE = 0.05  # seconds between notifications, so that clients receive them one by one

JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


async def test_simple_text() -> Text:
    """Return one text block."""
    return Text("This is a simple text response for testing.")


async def test_image_content() -> Image:
    """Return a picture."""
    return Image(PNG, "image/png")


async def test_audio_content() -> Audio:
    """Return a recording."""
    return Audio(WAV, "audio/wav")


async def test_embedded_resource() -> EmbeddedText:
    """Return a resource, included in full."""
    return EmbeddedText("test://embedded-resource", "This is an embedded resource content.")


async def test_multiple_content_types() -> ToolResult:
    """Return text, a picture and a resource."""
    return ToolResult(
        [
            Text("Multiple content types test:"),
            Image(PNG, "image/png"),
            EmbeddedText("test://mixed-content-resource", '{"test": "data", "value": 123}', "application/json"),
        ]
    )


async def test_tool_with_logging(ctx: Context) -> Text:
    """Log three messages while working."""
    for step in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(step)
        await asyncio.sleep(_PAUSE)
    return Text("Tool with logging executed successfully")


async def test_logging_tool(ctx: Context) -> Text:
    """Log on every level."""
    for level in ("debug", "info", "warning", "error"):
        await ctx.log(level, f"a message of level {level}", logger="everything")
    return Text("Logged.")


async def test_error_handling() -> Text:
    """Return a tool error, which the model can read."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(ctx: Context) -> Text:
    """Report progress three times."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"Completed step {progress} of 100")
        await asyncio.sleep(_PAUSE)
    return Text("Done.")


async def test_reconnection(ctx: Context) -> Text:
    """Close the stream early; the client must reconnect for the result."""
    ctx.close_stream(retry=500)
    await asyncio.sleep(4 * _PAUSE)
    return Text("Reconnection test completed successfully. If you received this, the client came back.")


async def json_schema_2020_12_tool(
    name: str | None = None,
    address: dict[str, str] | None = None,
    contactMethod: str | None = None,
    phone: str | None = None,
    email: str | None = None,
) -> Text:
    """List an input schema with the keywords of JSON Schema 2020-12."""
    given = {"name": name, "address": address, "contactMethod": contactMethod, "phone": phone, "email": email}
    return Text(f"JSON Schema 2020-12 tool called with: {[key for key, value in given.items() if value is not None]}")


async def test_x_mcp_header(
    region: Annotated[str, Field(description="Where to run", json_schema_extra={"x-mcp-header": "Region"})] = "",
) -> Text:
    """Take an argument that HTTP clients mirror in a header."""
    return Text(f"region={region}")


async def test_missing_capability(ctx: Context) -> Text:
    """Need a capability of the client."""
    ctx.require("sampling")
    return Text("The client offers sampling.")


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_logging,
    test_logging_tool,
    test_error_handling,
    test_tool_with_progress,
    test_reconnection,
    test_missing_capability,
)
