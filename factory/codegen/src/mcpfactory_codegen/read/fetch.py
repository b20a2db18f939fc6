"""The one place where code generation touches the network: one URL that the user named, with a size cap."""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from mcpfactory_runtime.addresses import host_port, is_public, is_web_address, split_web_url
from mcpfactory_runtime.errors import McpfactoryError
from mcpfactory_runtime.protocol.decoding import iter_decoded
from mcpfactory_runtime.redirects import MAX_REDIRECTS, Redirect, redirect_of

if TYPE_CHECKING:
    import httpx

__all__ = ["FetchError", "fetch", "host_of", "public_only", "redirected"]

_SECONDS: Final = 30.0
_PORTS: Final = {"http": 80, "https": 443}
_BESIDES: Final[ContextVar[Collection[str] | None]] = ContextVar("besides", default=None)


class FetchError(McpfactoryError):
    """The URL gave no document. `args[0]` says why; `hint` what to do."""


def host_of(url: str) -> str:
    """`host` or `host:port` of a URL, lower case; the port only when it is not the scheme's own. "" for what is no http or https URL."""
    parts = split_web_url(url)
    if parts is None:
        return ""
    host = (parts.hostname or "").lower()
    return host if parts.port in (None, _PORTS[parts.scheme]) else f"{host}:{parts.port}"


@contextmanager
def public_only(besides: Collection[str] = ()) -> Iterator[None]:
    """Within it every address that `fetch` connects to is public, whatever its name says at that moment.

    For URLs that somebody else named than who started the program. `besides` are hosts (`host`, `host:port`) that may be private.
    """
    token = _BESIDES.set(frozenset(one.lower() for one in besides))
    try:
        yield
    finally:
        _BESIDES.reset(token)


def fetch(url: str, *, allowed_hosts: Collection[str], max_bytes: int) -> tuple[bytes, str]:
    """GET `url`; return the body and the URL that it came from after redirects.

    Every redirect must stay on `http`/`https`, must not fall from https to http, and must lead to one of `allowed_hosts`
    (`host` or `host:port`): a document's server must not be able to send us to an address of its choice.

    Raises:
        FetchError: refused, unreachable, answered with something else than 200, or larger than `max_bytes`.
    """
    _check(url, allowed_hosts)
    import httpx  # noqa: PLC0415  # only reading from a URL may pay for it

    try:
        with httpx.Client(timeout=_SECONDS, follow_redirects=False) as client:
            for _ in range(MAX_REDIRECTS + 1):
                _check(url, allowed_hosts)
                target, options = _dialled(url)
                with client.stream("GET", target, **options) as answer:
                    redirect = redirect_of("GET", url, answer.status_code, answer.headers.get("location", ""))
                    if redirect is None:
                        return _body(answer, url, max_bytes), url
                url = redirected(redirect, url)
    except httpx.InvalidURL as error:
        raise FetchError(f"{url} is not a URL: {error}", "such as https://api.example.com/openapi.json") from None
    except httpx.HTTPError as error:
        raise FetchError(
            f"{url} cannot be read: {error or type(error).__name__}", "check the address and the network"
        ) from None
    raise FetchError(f"{url} redirects more than {MAX_REDIRECTS} times", "use the final URL")


def redirected(redirect: Redirect, url: str) -> str:
    """Return where a redirect leads. It may be another origin: no credentials go along, and `_check` knows the hosts.

    Raises:
        FetchError: to no address, or from https to something that is not encrypted.
    """
    if redirect.refusal == "target":
        raise FetchError(f"{url} redirects to what is neither http nor https", "use the final URL")
    if url.startswith("https:") and not redirect.url.startswith("https:"):
        raise FetchError(f"{url} redirects to {redirect.url}, which is not encrypted", "use the final URL")
    return redirect.url


def _check(url: str, allowed_hosts: Collection[str]) -> None:
    if not is_web_address(url):
        raise FetchError(f"{url} is neither http nor https", "give an http or https URL, or the path of a file")
    if split_web_url(url) is None:
        raise FetchError(
            f"{url} is no URL: its host or its port cannot be", "such as https://api.example.com/openapi.json"
        )
    host = host_of(url)
    if host not in {allowed.lower() for allowed in allowed_hosts}:
        raise FetchError(
            f"{url} leads to the host {host!r}, which is not allowed",
            f"allow the host {host!r}, or use its URL directly",
        )


def _dialled(url: str) -> tuple[str, dict[str, Any]]:
    """Return the URL to connect to, with headers and options: a checked address in place of a name that may lead elsewhere the next time."""
    headers = {"Accept": "application/json, application/yaml, */*"}
    parts, besides = urlsplit(url), _BESIDES.get()
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    place = host_port(host, port)
    if besides is None or {place, place.rpartition(":")[0]} & set(besides):
        return url, {"headers": headers}
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise FetchError(f"{url} cannot be read: {error.strerror}", "check the address and the network") from None
    addresses = [str(one[4][0]) for one in found]
    if not all(map(is_public, addresses)):
        raise FetchError(f"{url} is at no public address", "whoever starts the server permits the host")
    name = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    target = parts._replace(netloc=f"{name}:{port}").geturl()
    return target, {
        "headers": {**headers, "Host": parts.netloc.rpartition("@")[2]},
        "extensions": {"sni_hostname": host},
    }


def _body(answer: httpx.Response, url: str, max_bytes: int) -> bytes:
    if answer.status_code != 200:
        raise FetchError(f"{url} answered {answer.status_code} {answer.reason_phrase}", "check the address")
    chunks: list[bytes] = []
    size = 0
    for chunk in iter_decoded(answer):
        size += len(chunk)
        if size > max_bytes:
            raise FetchError(f"{url} is larger than {max_bytes // 1_000_000} MB", "is it the right address?")
        chunks.append(chunk)
    return b"".join(chunks)
