"""What the OAuth steps are made of.

A procedure is a generator: it yields a `Fetch` (and is sent the `HttpAnswer`), a `Visit` (and is sent the URL that the
browser came back with) or a `Pause`, and returns its outcome. So all of it can be tested, and driven by any HTTP client.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

__all__ = [
    "Fetch",
    "HttpAnswer",
    "Json",
    "OAuthError",
    "Pause",
    "Steps",
    "Visit",
    "check_url",
    "drive",
    "fetch",
    "is_loopback",
    "json_object",
    "origin",
    "post_form",
    "texts",
]

Json = dict[str, Any]
T = TypeVar("T")


class OAuthError(Exception):
    """No token could be had. `code` says why: an OAuth error code of the server, or one of ours.

    Ours: `unsafe_url`, `bad_metadata`, `resource_mismatch`, `issuer_mismatch`, `no_pkce`, `no_registration`,
    `state_mismatch`, `bad_response`, `unsupported_method`, `no_browser`, `refused`, `unreachable`, `no_store`, `no_login`.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Fetch:
    """An HTTP request to make; redirects are not followed."""

    method: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole HTTP response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes


@dataclass(frozen=True, slots=True)
class Visit:
    """A page for the person's browser; the answer is the whole URL to which it was sent back.

    With a `code` the person types that code there, perhaps on another device; nobody is sent back, and the answer is "".
    """

    url: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class Pause:
    """Time to let go by, in seconds."""

    seconds: float


Steps = Generator[Fetch | Visit | Pause, Any, T]


async def drive(
    steps: Steps[T],
    fetch: Callable[[Fetch], Awaitable[HttpAnswer]],
    visit: Callable[[Visit], Awaitable[str]] | None = None,
) -> T:
    """Carry a procedure out; its outcome.

    Raises:
        OAuthError: `no_browser`.
    """
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            if isinstance(step, Fetch):
                answer = await fetch(step)
            elif isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
                answer = None
            elif visit is None:
                raise OAuthError("no_browser", "there is nobody to ask")
            else:
                answer = await visit(step)
    except StopIteration as end:
        outcome: T = end.value
        return outcome
    finally:
        steps.close()


def fetch(request: Fetch) -> Steps[HttpAnswer]:
    """One request, as a step."""
    answer = yield request
    assert isinstance(answer, HttpAnswer)
    return answer


def post_form(url: str, form: dict[str, str], headers: dict[str, str]) -> Steps[HttpAnswer]:
    """POST a form and ask for JSON."""
    content = urlencode(form).encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    return (yield from fetch(Fetch("POST", url, {**kind, **headers}, content)))


def json_object(answer: HttpAnswer, what: str) -> Json:
    """Return the body as an object.

    Raises:
        OAuthError: `bad_response`.
    """
    try:
        value = json.loads(answer.content)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise OAuthError("bad_response", f"{what} is no JSON object (HTTP status {answer.status})")
    return value


def check_url(url: Any, server: str, what: str) -> str:
    """Return a URL that a server named, if it may be used: https; http only on this machine, and only for a server that is here.

    Security Considerations, Communication Security; the second half keeps remote servers from pointing at local ones.

    Raises:
        OAuthError: `unsafe_url`.
    """
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        local = parts is not None and is_loopback(parts.hostname)
    except ValueError:
        parts, local = None, False
    if parts is not None and parts.hostname and not parts.username and not parts.fragment:
        if local:
            safe = parts.scheme in ("http", "https") and is_loopback(urlsplit(server).hostname)
        else:
            safe = parts.scheme == "https"
        if safe:
            return str(url)
    raise OAuthError(
        "unsafe_url", f"{what} is {url!r}\nhint: it must be an https URL (http for a server on this machine)"
    )


def is_loopback(host: str | None) -> bool:
    """Return whether a host name means this machine."""
    if host == "localhost":
        return True
    try:
        return ip_address(host or "").is_loopback
    except ValueError:
        return False


def origin(url: str) -> str:
    """Scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list; () for what is none."""
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()
