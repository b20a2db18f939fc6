"""Login through a browser on this machine, with a redirect to a loopback port (RFC 8252 §7.3)."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError

_PATH: Final = "/callback"
_HEAD: Final = 16_384  # maximum bytes of a request's header section
_DONE: Final = b"<!doctype html><meta charset=utf-8><title>mcpfactory</title><p>Thank you. You can close this page."
_OTHER_PAGE: Final = (
    b"<!doctype html><meta charset=utf-8><title>mcpfactory</title><p>This page does not belong to the current login."
)


class Loopback:
    """A login through the local browser, for `OAuth(visit, redirect_uri=visit.redirect_uri)`.

    Args:
        port: port of the redirect URI on 127.0.0.1. The default is a fixed port, because clients register the redirect
            URI.
        show: shows a URL to the user, without blocking.
        timeout: maximum seconds for the login.
    """

    def __init__(
        self, port: int = 33418, show: Callable[[str], Any] = webbrowser.open, timeout: float | None = 300.0
    ) -> None:
        self.redirect_uri = f"http://127.0.0.1:{port}{_PATH}"
        self._port = port
        self._show = show
        self._timeout = timeout

    async def __call__(self, url: str) -> str:
        """Show `url` and return the URL to which the browser was redirected.

        Raises:
            OAuthError: `no_browser`: the port is in use, or the login took too long.
        """
        state = parse_qs(urlsplit(url).query).get("state")
        redirected: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            target = await _target(reader)
            ours = urlsplit(target).path == _PATH and parse_qs(urlsplit(target).query).get("state") == state
            body = _DONE if ours else _OTHER_PAGE
            writer.write(b"HTTP/1.1 %d OK\r\n" % (200 if ours else 404))
            writer.write(
                b"Content-Type: text/html; charset=utf-8\r\nConnection: close\r\nContent-Length: %d\r\n" % len(body)
            )
            writer.write(b"Cache-Control: no-store\r\n\r\n" + body)
            writer.close()
            with suppress(ConnectionError):  # browsers may reset connections that they opened speculatively
                await writer.wait_closed()
            if ours and not redirected.done():
                redirected.set_result(self.redirect_uri + target.removeprefix(_PATH))

        try:
            server = await asyncio.start_server(serve, "127.0.0.1", self._port, limit=_HEAD)
        except OSError as error:
            raise OAuthError(
                "no_browser", f"cannot listen on port {self._port}: {error.strerror}\nhint: choose another port"
            ) from None
        with closing(server):  # `async with` would wait for connections that browsers opened speculatively
            self._show(url)
            try:
                return await asyncio.wait_for(redirected, self._timeout)
            except TimeoutError:
                raise OAuthError("no_browser", f"the login was not approved within {self._timeout:g} seconds") from None


async def _target(reader: asyncio.StreamReader) -> str:
    """Return the path and query of a request, or "" if the request is invalid."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return ""
    words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
    return words[1] if len(words) == 3 and words[0] == "GET" else ""
