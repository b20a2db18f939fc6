"""Registered clients (RFC 7591) and client ID metadata documents."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_runtime.auth.authorization import is_local_url

_MAX_URIS: Final = 10
_LONGEST_URI: Final = 500  # maximum characters of a URI
_LONGEST_NAME: Final = 80  # maximum characters of a client's name
# Maximum characters of all redirect URIs together. The client ID, which is part of URLs, contains the redirect URIs.
_LONGEST: Final = 2000
# A URI must not contain < > " \ ^ ` { | } (RFC 3986 §2).
_URI: Final = re.compile(r"[a-z][a-z0-9+.-]*:[!#-;=?-\[\]_a-z~%]+", re.IGNORECASE)
# Browsers or operating systems handle most of these schemes. The others send the code unencrypted.
_FORBIDDEN_SCHEMES: Final = re.compile(
    r"about|blob|data|file|filesystem|ftp|intent|javascript|mailto|vbscript|view-source|wss?"
)


class OAuthRequestError(Exception):
    """Error response of RFC 6749 §5.2, with a description for developers."""

    def __init__(self, code: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.code, self.status = code, status


@dataclass(frozen=True, slots=True)
class ProxyClient:
    """A client of the OAuth proxy. Tokens and records contain `label`, a digest of the client ID."""

    id: str
    label: str
    name: str
    redirect_uris: tuple[str, ...]


def read_client_registration(body: Any) -> tuple[str, tuple[str, ...]]:
    """Return the name and redirect URIs from a client's metadata, or raise OAuthRequestError."""
    if not isinstance(body, dict):
        raise OAuthRequestError("invalid_client_metadata", "The body must be a JSON object")
    uris = body.get("redirect_uris")
    if not isinstance(uris, list) or not 0 < len(uris) <= _MAX_URIS or sum(map(len, map(str, uris))) > _LONGEST:
        raise OAuthRequestError(
            "invalid_redirect_uri", f"redirect_uris must have 1 to {_MAX_URIS} URIs, {_LONGEST} characters in total"
        )
    for uri in uris:
        if not isinstance(uri, str) or not _may_receive(uri):
            raise OAuthRequestError(
                "invalid_redirect_uri",
                "A redirect URI must use https, http on this machine, or an application's own scheme",
            )
    name = body.get("client_name")
    shown = "".join(one for one in name if one.isprintable()) if isinstance(name, str) else ""
    return shown[:_LONGEST_NAME], tuple(uris)


def is_client_metadata_url(client_id: str) -> bool:
    """Return True if a client ID can be the URL of a metadata document: an https URL with a path, in normal form."""
    try:
        parts = urlsplit(client_id)
        port = parts.port
    except ValueError:
        return False
    return (
        len(client_id) <= _LONGEST_URI
        and _URI.fullmatch(client_id) is not None
        and parts.scheme == "https"
        and parts.netloc == (parts.hostname or "/") + (f":{port}" if port else "")
        and len(parts.path) > 1
        and not {".", ".."} & set(parts.path.split("/"))
        and "#" not in client_id
    )


def read_client_metadata(client_id: str, body: Any) -> tuple[str, tuple[str, ...]]:
    """Return the name and redirect URIs from the metadata document of a client, or raise OAuthRequestError."""
    described = read_client_registration(body)
    if body.get("client_id") != client_id:
        raise OAuthRequestError("invalid_client", "The client_id in the document does not match this client")
    if "client_secret" in body or body.get("token_endpoint_auth_method", "none") != "none":
        raise OAuthRequestError(
            "invalid_client", "The document requires client authentication, which is not supported here"
        )
    return described


def is_registered_redirect(registered: Iterable[str], uri: str) -> bool:
    """Return True if `uri` is a registered redirect URI. A loopback address may have any port (RFC 8252 §7.3)."""
    return any(uri == one or _loopback(uri) == _loopback(one) != "" for one in registered)


def _may_receive(uri: str) -> bool:
    if len(uri) > _LONGEST_URI or not _URI.fullmatch(uri) or "#" in uri:
        return False
    try:
        parts = urlsplit(uri)
        port, host = parts.port, parts.hostname
    except ValueError:
        return False
    if parts.scheme in ("http", "https"):
        return bool(host) and "@" not in parts.netloc and port != 0 and (parts.scheme == "https" or is_local_url(uri))
    return not _FORBIDDEN_SCHEMES.fullmatch(parts.scheme)


def _loopback(uri: str) -> str:
    """Return an http URI of this machine without its port, or "" for any other URI."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return ""
    if parts.scheme != "http" or not is_local_url(uri) or not _may_receive(uri):
        return ""
    return f"{parts.hostname}{uri.split(parts.netloc, 1)[1]}"


Described = tuple[str, tuple[str, ...]]

log = logging.getLogger(__name__)

_KEPT: Final = 300.0  # seconds that a document is cached; a missing document is also cached
_MAX_DOCUMENTS: Final = 200  # maximum number of cached documents
_MOST_FETCHES: Final = 30  # maximum fetches per minute
_MAX_CONCURRENT: Final = 4  # maximum concurrent fetches


class ClientMetadataCache:
    """Cache of client metadata documents. Use the cache only in the event loop.

    `fetch` returns the document at an untrusted URL, or raises OSError.
    """

    def __init__(self, fetch: Callable[[str], Awaitable[bytes]] | None, clock: Callable[[], float]) -> None:
        self._fetch = fetch or _fetch_public
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Described | None]] = OrderedDict()
        self._fetched: deque[float] = deque(maxlen=_MOST_FETCHES)
        self._busy = asyncio.Semaphore(_MAX_CONCURRENT)

    async def find(self, client_id: str) -> Described | None:
        """Return the name and redirect URIs of a client, or None if its document is invalid or unavailable."""
        now = self._clock()
        until, described = self._known.get(client_id, (0.0, None))
        exhausted = len(self._fetched) == _MOST_FETCHES and self._fetched[0] > now - 60.0
        if until > now or exhausted:  # above the fetch limit, even stale documents are returned
            return described
        self._fetched.append(now)
        async with self._busy:
            described = await self._read(client_id)
        self._known[client_id] = (now + _KEPT, described)
        self._known.move_to_end(client_id)
        if len(self._known) > _MAX_DOCUMENTS:
            self._known.popitem(last=False)
        return described

    async def _read(self, client_id: str) -> Described | None:
        try:
            return read_client_metadata(client_id, json.loads(await self._fetch(client_id)))
        except (OSError, ValueError, OAuthRequestError) as error:
            log.warning("cannot use the document of a client: %r", str(error)[:300])
            return None


async def _fetch_public(url: str) -> bytes:
    from mcpfactory_runtime.client.http import fetch_public  # noqa: PLC0415 - loaded on demand

    return await fetch_public(url)
