"""The one place where code generation touches the network: one URL that the user named, with a size cap."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from mcpfactory_runtime.errors import McpfactoryError

if TYPE_CHECKING:
    import httpx

__all__ = ["FetchError", "fetch", "host_of", "redirected"]

_REDIRECTS: Final = 5
_SECONDS: Final = 30.0


class FetchError(McpfactoryError):
    """The URL gave no document. `args[0]` says why; `hint` what to do."""


def host_of(url: str) -> str:
    """`host` or `host:port` of a URL, lower case; the port only when it is not the scheme's own."""
    parts = urlsplit(url)
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    host = (parts.hostname or "").lower()
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"


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
            for _ in range(_REDIRECTS + 1):
                _check(url, allowed_hosts)
                with client.stream("GET", url, headers={"Accept": "application/json, application/yaml, */*"}) as answer:
                    if not answer.is_redirect:
                        return _body(answer, url, max_bytes), url
                    location = answer.headers.get("location", "")
                url = redirected(url, location)
    except httpx.InvalidURL as error:
        raise FetchError(f"{url} is not a URL: {error}", "such as https://api.example.com/openapi.json") from None
    except httpx.HTTPError as error:
        raise FetchError(
            f"{url} cannot be read: {error or type(error).__name__}", "check the address and the network"
        ) from None
    raise FetchError(f"{url} redirects more than {_REDIRECTS} times", "use the final URL")


def redirected(url: str, location: str) -> str:
    """Where a redirect leads.

    Raises:
        FetchError: from https to something that is not encrypted.
    """
    target = urljoin(url, location)
    if url.startswith("https:") and not target.startswith("https:"):
        raise FetchError(f"{url} redirects to {target}, which is not encrypted", "use the final URL")
    return target


def _check(url: str, allowed_hosts: Collection[str]) -> None:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise FetchError(f"{url} is neither http nor https", "give an http or https URL, or the path of a file")
    host = host_of(url)
    if host not in {allowed.lower() for allowed in allowed_hosts}:
        raise FetchError(
            f"{url} leads to the host {host!r}, which is not allowed",
            f"allow the host {host!r}, or use its URL directly",
        )


def _body(answer: httpx.Response, url: str, max_bytes: int) -> bytes:
    if answer.status_code != 200:
        raise FetchError(f"{url} answered {answer.status_code} {answer.reason_phrase}", "check the address")
    chunks: list[bytes] = []
    size = 0
    for chunk in answer.iter_bytes(65536):
        size += len(chunk)
        if size > max_bytes:
            raise FetchError(f"{url} is larger than {max_bytes // 1_000_000} MB", "is it the right address?")
        chunks.append(chunk)
    return b"".join(chunks)
