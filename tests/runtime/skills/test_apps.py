"""Apps: pages as resources, and tools that name them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.revisions import APPS, LATEST_LEGACY
from mcpfactory_runtime.testing import connect
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.anyio

HTML = "<!doctype html><title>Clock</title><p>12:00</p>"


def make(**options: Any) -> Server:
    server = Server("clock")
    server.app("ui://clock", html=HTML, **options)

    @server.tool(app="ui://clock", visibility=["model", "app"], meta={"own": 1, "ui": {"x": 2}})
    async def now() -> str:
        """Say what time it is."""
        return "12:00"

    return server


@pytest.mark.parametrize("revision", ["", LATEST_LEGACY.name])
async def test_a_page_is_a_resource_and_its_tool_names_it(revision: str) -> None:
    options = {
        "csp": {"connectDomains": ["https://time.example"]},
        "permissions": ["geolocation"],
        "prefers_border": False,
        "title": "Clock",
    }
    async with connect(make(**options), revision=revision) as client:
        assert ("extensions" in client.capabilities) == (not revision)
        if not revision:
            assert client.capabilities["extensions"] == {APPS: {}}
        (tool,) = await client.list_tools()
        assert tool["_meta"] == {
            "own": 1,
            "ui": {"x": 2, "resourceUri": "ui://clock", "visibility": ["model", "app"]},
        }
        (resource,) = await client.list_resources()
        ui = {
            "csp": {"connectDomains": ["https://time.example"]},
            "permissions": {"geolocation": {}},
            "prefersBorder": False,
        }
        assert resource["_meta"] == {"ui": ui}
        assert (resource["name"], resource["title"]) == ("clock", "Clock")
        assert resource["mimeType"] == "text/html;profile=mcp-app"
        assert await client.read_resource("ui://clock") == [
            {"uri": "ui://clock", "mimeType": "text/html;profile=mcp-app", "text": HTML, "_meta": {"ui": ui}}
        ]
        assert (await client.call_tool("now"))["content"][0]["text"] == "12:00"


async def test_a_page_from_a_file_is_read_at_every_request(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<p>1</p>")
    server = Server("x")
    server.app("ui://page", path=page)
    async with connect(server) as client:
        assert (await client.read_resource("ui://page"))[0]["text"] == "<p>1</p>"
        page.write_text("<p>2</p>")
        assert await client.read_resource("ui://page") == [
            {"uri": "ui://page", "mimeType": "text/html;profile=mcp-app", "text": "<p>2</p>"}
        ]


@parametrize_subtests(
    "uri, options, error",
    [
        ("http://x", {"html": HTML}, ValueError),
        ("ui://", {"html": HTML}, ValueError),
        ("ui://{x}", {"html": HTML}, ValueError),
        ("ui://x", {}, TypeError),
        ("ui://x", {"html": HTML, "path": "x"}, TypeError),
        ("ui://x", {"path": "/nothing/here.html"}, ValueError),
        ("ui://x", {"html": HTML, "csp": {"scripts": []}}, ValueError),
        ("ui://x", {"html": HTML, "permissions": ["usb"]}, ValueError),
        ("ui://x", {"html": HTML, "permissions": "camera"}, ValueError),
    ],
)
def test_a_page_that_no_host_would_show_is_refused(uri: str, options: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"hint:|no file"):
        Server("x").app(uri, **options)
