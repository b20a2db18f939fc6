"""The one HTTP client of all targets: no redirects, no credentials in the clear, no secrets in messages."""

from __future__ import annotations

import functools
import ipaddress
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from mcpfactory_pipeline.base.errors import ConfigError, TargetError

__all__ = ["HttpClient", "HttpResponse", "is_loopback", "open_client", "read_json", "require_url", "summary"]

_SHOWN: Final = 300  # characters of an answer that are shown


HttpResponse = httpx.Response
"""What is answered, read to its end; modules of targets name it by this, and do not load the library themselves."""


def summary(answer: HttpResponse) -> str:
    """Return the status and the beginning of the body, on one line, for a message."""
    text = " ".join(answer.content[: 4 * _SHOWN].decode(errors="replace").split())
    return f"it answered {answer.status_code}" + (f": {text[:_SHOWN]}" if text else "")


def read_json(answer: HttpResponse) -> Any:
    """Return the body as JSON.

    Raises:
        TargetError: it is no JSON.
    """
    try:
        return answer.json()
    except (ValueError, RecursionError) as error:
        raise TargetError(
            f"what was answered is no JSON: {summary(answer)}", hint="is the URL the right one?"
        ) from error


def require_url(url: str, where: str) -> str:
    """Return the URL, without a slash at its end.

    Raises:
        ConfigError: it is no URL, holds credentials, or tokens must not be sent there: http beyond loopback.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:  # as for `https://[::1`
        raise ConfigError(f"{where} is no URL: {url!r}: {error}", hint="https://…") from error
    if parts.username or parts.password:
        raise ConfigError(f"{where} holds credentials", hint="name a variable that holds the token instead")
    if not parts.hostname or parts.scheme not in {"https", "http"}:
        raise ConfigError(f"{where} is no URL: {url!r}", hint="https://…")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ConfigError(f"{where} is http, and a token would travel in the clear: {url}", hint="https://…")
    return url.rstrip("/")


class HttpClient:
    """Requests, one after the other, over connections that are kept."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        auth: tuple[str, str] | None = None,
    ) -> HttpResponse:
        """Send one request.

        Responses of any status are returned, redirects as well.

        Raises:
            TargetError: there is no response.
        """
        try:
            return self._client.request(method, url, headers=headers, content=content, auth=auth)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            place = urlsplit(url)
            raise TargetError(
                f"{place.scheme}://{place.netloc} cannot be reached: {type(error).__name__}: {error}",
                hint="publishing again continues where it stopped",
            ) from error


@contextmanager
def open_client(*, timeout: float = 120.0) -> Iterator[HttpClient]:
    """Yield a `HttpClient` for the block; `timeout` is in seconds, for each step of a request."""
    with httpx.Client(timeout=timeout, follow_redirects=False, verify=_trust()) as client:
        yield HttpClient(client)


@functools.cache
def _trust() -> ssl.SSLContext:
    """Whom to trust: read once, for that takes longer than most requests."""
    return httpx.create_ssl_context()


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by its name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
