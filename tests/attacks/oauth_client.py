"""Attacks of MCP servers on the OAuth client: its secret, private addresses, and its token folder."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from unittest.mock import patch

from mcpfactory_runtime.client import http
from mcpfactory_runtime.client.http import HttpChannel
from mcpfactory_runtime.oauth.grants import OAuthClientSettings, register
from mcpfactory_runtime.oauth.steps_and_metadata import AuthorizationServer, Fetch, OAuthError, check_metadata_url
from mcpfactory_runtime.oauth.token_store import FileStore
from tests.attacks.http_target import HarmError


def _secret(_: Path) -> str:
    identity = OAuthClientSettings("n", "http://127.0.0.1:1/callback", "me", "s3cret")
    try:
        next(register(identity, AuthorizationServer("https://evil.example", "", "https://evil.example/token")))
    except StopIteration as end:
        raise HarmError(f"{end.value} goes to evil.example") from None
    except OAuthError as error:
        return str(error)
    raise HarmError("it registers anew")


def _loopback(url: str, server: str) -> str:
    try:
        check_metadata_url(url, server, "token_endpoint")
    except OAuthError as error:
        return str(error).partition("\n")[0]
    raise HarmError(f"{url} is called")


def _inside(url: str) -> str:
    async def fetch() -> None:
        channel = HttpChannel("https://mcp.example.com/mcp")
        await channel._permitted_urls(Fetch("GET", url).url)

    try:
        asyncio.run(fetch())
    except OAuthError as error:
        return str(error)
    raise HarmError(f"{url} is called")


def _rebound(_: Path) -> str:
    """Call a public name with a private address, as an attacker's DNS server can return it."""

    async def addresses(url: str) -> list[str]:
        return ["10.0.0.1"]

    with patch.object(http, "_addresses", addresses):
        return _inside("https://auth.example.com/token")


def _folder(folder: Path) -> str:
    (folder / "a.json").write_text(json.dumps({"access_token": "planted"}))
    folder.chmod(0o777)
    try:
        found = FileStore(folder).read("a")
    except OAuthError as error:
        return str(error).partition("\n")[0].replace(str(folder), "the folder")
    raise HarmError(f"{found} is believed")


ROWS = {
    "a secret, and an authorization server that the server chose": ("refused", _secret),
    "127.evil.com as this machine": ("refused", lambda _: _loopback("http://127.evil.com/token", "http://127.0.0.1/mcp")),
    "a server at 127.evil.com that leads to this machine": (
        "refused", lambda _: _loopback("http://127.0.0.1:8000/token", "http://127.evil.com/mcp"),
    ),
    **{
        f"an endpoint at {host}": ("refused", lambda _, host=host: _inside(f"https://{host}/token"))
        for host in ("169.254.169.254", "10.0.0.1", "[fe80::1]", "[::ffff:127.0.0.1]", "localhost", "2130706433")
    },
    "an endpoint whose name was made to lead inside, as the server's": ("refused", _rebound),
    "tokens in a folder that everybody may write": ("refused", _folder),
}  # fmt: skip
