"""HTTP client of publish targets, and identity tokens of CI jobs."""

from __future__ import annotations

import functools
import ipaddress
import json
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx

from mcpfactory_pipeline.base.errors import ConfigError, PublishError, TargetUnavailableError
from mcpfactory_runtime.protocol.decoding import iter_decoded

_SHOWN: Final = 300  # maximum number of characters of a response in a message


HttpResponse = httpx.Response
"""A complete HTTP response."""


def summary(answer: HttpResponse) -> str:
    """Return the status and the start of the body as one line."""
    text = " ".join(answer.content[: 4 * _SHOWN].decode(errors="replace").split())
    return f"it answered {answer.status_code}" + (f": {text[:_SHOWN]}" if text else "")


def response_json(answer: HttpResponse) -> Any:
    """Return the body as JSON."""
    try:
        return answer.json()
    except (ValueError, RecursionError) as error:
        raise TargetUnavailableError(
            f"the response is not valid JSON: {summary(answer)}", hint="check the URL"
        ) from error


def require_secure_url(url: str, where: str) -> str:
    """Return the URL without a final slash.

    Raises:
        ConfigError: the URL is invalid, contains credentials, or would send a token unencrypted.
    """
    try:
        parts = urlsplit(url)
    except ValueError as error:  # raised for example for `https://[::1`
        raise ConfigError(
            f"{where} is not a valid URL: {url!r}: {error}", hint="use a URL such as https://…"
        ) from error
    if parts.username or parts.password:
        raise ConfigError(
            f"{where} contains credentials",
            hint="store the token in an environment variable, and give the name of the variable",
        )
    if not parts.hostname or parts.scheme not in {"https", "http"}:
        raise ConfigError(f"{where} is not a valid URL: {url!r}", hint="use a URL such as https://…")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ConfigError(f"{where} uses http, which would send a token unencrypted: {url}", hint="use https://…")
    return url.rstrip("/")


_PATIENCE: Final = 120.0  # seconds; timeout of each connection, read and write
_LARGEST: Final = 50_000_000  # maximum size of a decompressed response in bytes


class HttpClient:
    """HTTP client with persistent connections and without redirects."""

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
        """Send one request. Error statuses and redirects are returned as responses."""
        try:
            with self._client.stream(method, url, headers=headers, content=content, auth=auth) as answer:
                body = bytearray()
                for piece in iter_decoded(answer):
                    body += piece
                    if len(body) > _LARGEST:
                        raise TargetUnavailableError(
                            f"{url}: response is larger than {_LARGEST} bytes", hint="check the address"
                        )
                headers = {key: value for key, value in answer.headers.items() if key != "content-encoding"}
                return httpx.Response(answer.status_code, headers=headers, content=bytes(body))
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            place = urlsplit(url)
            raise TargetUnavailableError(
                f"{place.scheme}://{place.netloc} cannot be reached: {type(error).__name__}: {error}",
                hint="publish again to continue the upload",
            ) from error


@contextmanager
def open_client() -> Iterator[HttpClient]:
    """Yield a client that is closed after the block."""
    with httpx.Client(timeout=_PATIENCE, follow_redirects=False, verify=_trust()) as client:
        yield HttpClient(client)


@functools.cache
def _trust() -> ssl.SSLContext:
    """Return the TLS context. The context is cached, because loading takes longer than most requests."""
    return httpx.create_ssl_context()


def is_loopback(host: str) -> bool:
    """Return True if a host name or address belongs to this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


JSON: Final = {"Content-Type": "application/json", "Accept": "application/json"}


def request_job_token(wire: HttpClient, audience: str, environ: Mapping[str, str], variable: str = "") -> str:
    """Return the identity token of this CI job for `audience`.

    GitHub Actions issues the token on request. GitLab stores the token in the environment variable `variable`.
    """
    if given := environ.get(variable, ""):
        return given
    url, token = environ.get("ACTIONS_ID_TOKEN_REQUEST_URL", ""), environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not url or not token:
        raise ConfigError(
            "this job has no identity token: neither GitHub Actions nor another provider supplied a token",
            hint="set 'id-token: write' below 'permissions' in the workflow, or set 'auth' to another value",
        )
    require_secure_url(url, "ACTIONS_ID_TOKEN_REQUEST_URL")
    wanted = f"{url}{'&' if '?' in url else '?'}audience={quote(audience, safe='')}"
    answer = wire.request("GET", wanted, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})
    return response_text_field(answer, "value", url.partition("?")[0])


def exchange_token(wire: HttpClient, url: str, body: Mapping[str, str] | None, field: str) -> str:
    """Exchange a token for a token of the publish target."""
    answer = wire.request("POST", url, headers=JSON, content=json.dumps(body).encode() if body else None)
    return response_text_field(answer, field, url)


def response_text_field(answer: HttpResponse, field: str, url: str) -> str:
    """Return a text field of a response. Error messages omit the body, because it may contain a token."""
    if answer.status_code >= 500 or answer.status_code == 429:
        raise TargetUnavailableError(f"{url} returned HTTP {answer.status_code}", hint="publish again")
    found = response_json(answer) if answer.status_code < 300 else None
    if not isinstance(found, dict) or not isinstance(found.get(field), str):
        raise PublishError(
            f"{url} returned no {field}: HTTP {answer.status_code}",
            hint="check the login, or the registered publisher",
        )
    return str(found[field])
