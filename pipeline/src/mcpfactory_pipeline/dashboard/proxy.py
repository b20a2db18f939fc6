"""Whom a proxy in front of the dashboard logged in: it names them in a header, which is believed from that proxy alone.

A request is from the proxy when it has the secret that both know. The address says nothing where the dashboard listens: on loopback
every program of the machine has it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.dashboard.access import AccessError
from mcpfactory_runtime.urls import split_web_url

PROXY_SECRET_VARIABLE: Final = "MCPFACTORY_DASHBOARD_PROXY_SECRET"  # noqa: S105 - the name of a variable
SECRET_HEADER: Final = "X-MCPFactory-Proxy-Secret"  # noqa: S105 - the name of a header
_MIN_SECRET: Final = 16  # characters
_MAX_NAME: Final = 100  # characters of a person's name
_HEADER: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
# What every browser or proxy sends by itself: a name of a person in these would be somebody else's text.
_TAKEN: Final = frozenset(
    {
        "accept", "authorization", "connection", "content-length", "content-type", "cookie", "forwarded", "host", "origin", "referer", "user-agent",
        "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", SECRET_HEADER.lower(),
    }
)  # fmt: skip

RawHeaders = Iterable[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: the person logged in by the proxy, "" for none.

    `proxied`: the request came through the proxy.
    """

    person: str = ""
    proxied: bool = False


@dataclass(frozen=True, slots=True)
class TrustedProxy:
    """The proxy: in which header it names people, and the hash of the secret that it sends along."""

    header: str
    secret: str

    def caller(self, headers: RawHeaders) -> Caller:
        """Return the sender of a request.

        Raises:
            AccessError: the header or the secret is not from the proxy, or the name is invalid.
        """
        sent = [(name.lower(), value) for name, value in headers]
        named, secrets = _values(sent, self.header), _values(sent, SECRET_HEADER)
        if not named and not secrets:
            return Caller()
        if len(secrets) != 1 or not hmac.compare_digest(_hash(secrets[0]), self.secret):
            raise AccessError(
                f"{self.header} is believed from the proxy of this dashboard alone, and this request is not from it",
                hint="open the dashboard through its proxy; whoever runs it: docs/how-to/dashboard.md#behind-a-proxy",
            )
        if len(named) > 1:
            raise AccessError(
                f"{self.header} is there more than once: the proxy passes on what clients send",
                hint="let the proxy replace the header, and not add to it",
            )
        return Caller(_person(self.header, named[0]) if named else "", proxied=True)


def read_proxy(environ: Mapping[str, str], header: str) -> TrustedProxy:
    """Return the proxy that names people in `header`.

    Raises:
        ConfigError: for an invalid header, and without a secret in the environment.
    """
    if not _HEADER.fullmatch(header) or header.lower() in _TAKEN:
        raise ConfigError(f"{header!r} is no header for names of people", hint="--proxy-header X-Forwarded-User")
    secret = environ.get(PROXY_SECRET_VARIABLE, "").strip()
    if len(secret) < _MIN_SECRET:
        raise ConfigError(
            f"{PROXY_SECRET_VARIABLE} has fewer than {_MIN_SECRET} characters"
            if secret
            else f"{PROXY_SECRET_VARIABLE} is not set: any program of this machine could say who it is",
            hint=f"let the proxy send the same in {SECRET_HEADER}; python -c 'import secrets; print(secrets.token_urlsafe())' makes one",
        )
    return TrustedProxy(header, _hash(secret.encode()))


def public_origin(url: str) -> str:
    """Return the origin of the public address, in the form that browsers send; "" for "".

    Raises:
        ConfigError: if it is not an origin or has a path (pages are at the root).
    """
    if not url:
        return ""
    parts = split_web_url(url)
    if parts is None or any((parts.username, parts.password, parts.query, parts.fragment, parts.path.strip("/"))):
        raise ConfigError(f"{url!r} is no address of a dashboard", hint="--public-url https://factory.example.org")
    host, port = (parts.hostname or "").lower(), parts.port
    usual = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port and port != usual else "")


def _values(sent: Iterable[tuple[bytes, bytes]], header: str) -> list[bytes]:
    wanted = header.lower().encode()
    return [value for name, value in sent if name == wanted]


def _person(header: str, value: bytes) -> str:
    """Return the name of a person; with a comma it is that of several, of which clients may have written the first."""
    try:
        name = value.decode("utf-8").strip()
    except UnicodeDecodeError:
        name = "\n"
    if not name.isprintable() or "," in name or len(name) > _MAX_NAME:
        raise AccessError(
            f"what {header} has is no name of one person", hint=f"at most {_MAX_NAME} characters, and no comma"
        )
    return name


def _hash(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()
