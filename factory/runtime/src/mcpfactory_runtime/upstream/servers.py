"""Base URLs of an API, and messages about redirects that are not followed.

`MCPF_<SERVER>_BASE_URL` moves the root, and `MCPF_<SERVER>_<NAME>_BASE_URL` moves the server NAME. A server at the
root's host moves with the root if the new URL ends with the path of the old URL. Other servers move only with their own
variable. `unchanged_servers` returns the servers that did not move, because a user who moved the root to a sandbox
might not notice calls to production.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.operation import Operation, ServerAddress
from mcpfactory_runtime.upstream.secrets import Settings, server_url_setting
from mcpfactory_runtime.urls import DEFAULT_PORTS, MAX_REDIRECTS, Redirect, host_port, host_port_of


class Addresses:
    """Addresses of the servers of one API."""

    def __init__(self, settings: Settings, base_url: str, servers: Iterable[ServerAddress] = ()) -> None:
        self._settings = settings
        self._base_url = base_url
        self._servers = {one.name: one for one in servers}

    @property
    def root(self) -> str:
        """Return the effective base URL of the root: the operator's setting, or else the URL in the document."""
        return self._settings.value("BASE_URL") or self._base_url

    @property
    def others(self) -> tuple[str, ...]:
        """Return the effective base URLs of the other servers, in the order of their names."""
        return tuple(self.of(name) for name in sorted(self._servers))

    def of(self, server: str) -> str:
        """Return the effective base URL of a server by name. "" stands for the root, and a URL is returned unchanged.

        An unknown name raises ToolError.
        """
        if not server:
            return self.root
        if "://" in server:
            return server
        if server not in self._servers:
            raise ToolError(
                f"The server {server!r} of the API is unknown.\nhint: ask the person who runs this server to "
                "generate its code again: mcpfactory update NAME."
            )
        return self._settings.own(server_url_setting(server)) or self._followed(server) or self._servers[server].url

    def variable(self, server: str) -> str:
        """Return the variable that sets the address of a server."""
        return self._settings.variable(server_url_setting(server) if server in self._servers else "BASE_URL")

    def set_by(self, server: str) -> str:
        """Return the variable that sets a server's address, or "" if the address comes from the document."""
        if "://" in server:
            return ""
        if server and self._settings.own(server_url_setting(server)):
            return self.variable(server)
        moved = self._settings.value("BASE_URL") and (not server or self._followed(server))
        return self._settings.set_by("BASE_URL") if moved else ""

    def variable_for_host(self, host: str, port: int) -> str:
        """Return the variable for the address of the server at a host and port."""
        place = host_port(host, port)
        return self.variable(next((name for name in self._servers if host_port_of(self.of(name)) == place), ""))

    def chosen(self) -> frozenset[str]:
        """Return `host:port` of each address that the operator set.

        For port 80, the result also contains port 443, because APIs redirect http to https.
        """
        values = [
            self._settings.value("BASE_URL"),
            *(self._settings.own(server_url_setting(name)) for name in self._servers),
        ]
        places = {host_port_of(value) for value in values if value}
        return frozenset(places | {f"{place}443" for one in places if (place := one.removesuffix("80")).endswith(":")})

    def unchanged_servers(self) -> tuple[ServerAddress, ...]:
        """Return the servers that did not move when the user moved the root."""
        chosen = self._settings.value("BASE_URL").rstrip("/")
        if not chosen or chosen == self._base_url.rstrip("/"):
            return ()
        return tuple(one for name, one in self._servers.items() if not self.set_by(name))

    def _followed(self, server: str) -> str:
        """Return the address of a server that moved with the root, or "" if the address is unclear."""
        chosen, ours = _split(self._settings.value("BASE_URL")), _split(self._servers[server].url)
        root = _split(self._base_url)
        if chosen is None or ours is None or root is None or _host(ours) != _host(root):
            return ""
        lead, below = chosen.path.rstrip("/"), root.path.rstrip("/")
        if not lead.endswith(below):
            return ""
        return f"{chosen.scheme}://{chosen.netloc}{lead.removesuffix(below)}{ours.path}"


def unchanged_servers_notice(addresses: Addresses) -> str:
    """Return a line with the servers that did not move with the root, or "" if there are none."""
    unmoved = addresses.unchanged_servers()
    if not unmoved:
        return ""
    places = ", ".join(one.url or one.name for one in unmoved)
    variables = ", ".join(addresses.variable(one.name) for one in unmoved)
    return (
        f"{addresses.set_by('')} does not move operations at {places}: they still use that address; set {variables} "
        "to move them"
    )


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        return parts if parts.hostname and parts.port != 0 else None
    except ValueError:
        return None


def _host(parts: SplitResult) -> tuple[str, int]:
    """Return host and port, with one default port for http and https, because http redirects to https."""
    port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
    return (parts.hostname or "").rstrip("."), 443 if port in DEFAULT_PORTS.values() else port


_LOGIN: Final = re.compile(r"(?<![a-z])(log-?in|sign-?in|sso|saml2?|oauth2?|authori[sz]e|accounts|idp)(?![a-z])", re.I)
_OPERATOR: Final = "hint: the person who runs this server"


def redirect_message(redirect: Redirect | None, operation: Operation, url: str, variable: str) -> str:
    """Return the part of an error message after the status."""
    if redirect is None or redirect.refusal == "target":
        return "a redirect without a valid target.\nhint: use another tool, or ask the API's provider."
    where, sets = _where(redirect, url), f"{_OPERATOR} sets {variable}"
    if redirect.refusal == "circle":
        said = f"a redirect {where}, which is a loop, or exceeds {MAX_REDIRECTS} redirects."
    elif redirect.refusal == "method":
        said = f"a redirect {where}, with a status that does not repeat {operation.method}."
    elif redirect.refusal == "downgrade":
        return f"a redirect {where}, which is not encrypted and not followed.\n{sets} to an address without redirects."
    else:
        said = f"a redirect {where}, which is another origin and not followed."
    if _LOGIN.search(redirect.host + urlsplit(redirect.url).path):
        return f"{said}\n{_OPERATOR} checks its credentials: the target looks like a login page."
    if slash := _slash_hint(redirect, url):
        return f"{said}\n{_OPERATOR} corrects the path in the API document: the API expects {slash} trailing slash."
    base = _base(redirect, operation, url)
    return f"{said}\n{sets} to {base or 'the address that answers'}, if it is trusted."


def _where(redirect: Redirect, url: str) -> str:
    """Return the target's host, or the path on the same host, without the query, which may contain secrets."""
    ours, theirs = urlsplit(url), urlsplit(redirect.url)
    if redirect.refusal == "downgrade":
        return f"to http://{redirect.host}"
    return f"to {redirect.host}" if ours.netloc != theirs.netloc else f"to {theirs.path or '/'} of the same host"


def _slash_hint(redirect: Redirect, url: str) -> str:
    """Return "a" or "no" if the target only differs by a trailing slash, or else ""."""
    ours, theirs = urlsplit(url), urlsplit(redirect.url)
    if ours.netloc != theirs.netloc or ours.path.rstrip("/") != theirs.path.rstrip("/") or ours.path == theirs.path:
        return ""
    return "a" if theirs.path.endswith("/") else "no"


def _base(redirect: Redirect, operation: Operation, url: str) -> str:
    """Return the base URL in the target of a redirect, or "" if the target has another path."""
    ours, theirs = urlsplit(url).path, urlsplit(redirect.url)
    length = len([one for one in operation.path.partition("?")[0].split("/") if one])
    tail = "/".join(["", *ours.split("/")[-length:]]) if length else "/"
    if not theirs.path.endswith(tail) or ours.count("/") < length:
        return ""
    return f"{theirs.scheme}://{theirs.netloc}{theirs.path.removesuffix(tail)}"
