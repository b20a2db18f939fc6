"""URLs: public addresses and redirects.

A redirect to the same origin is followed according to its status.

After 301 and 302, a request with a safe method is repeated. After 303, the next request is a GET without body. A HEAD
request stays a HEAD request. After 307 and 308, the request is repeated with its body.

A redirect from `http` to `https` on the same host stays within the origin if both use their default ports, because
traffic becomes encrypted. A redirect from `https` to `http` leaves the origin. A redirect to another origin is not
followed, because it would send credentials to a host that the response chose.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, Literal
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

_SCHEME: Final = re.compile(r"https?:", re.IGNORECASE)
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# RFC 6762, ICANN (2024-07-29) and RFC 8375 define these names, in this order.
_PRIVATE_NAMES: Final = (".local", ".internal", ".home.arpa")

_NAT64: Final = ip_network("64:ff9b::/96")  # the last 32 bits are an IPv4 address (RFC 6052)
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})  # an IPv4 address follows these bytes (RFC 5214 §6.1)
# Special-purpose networks (RFC 6890) that count as global in some Python versions since 3.11.0.
_SPECIAL: Final = tuple(
    ip_network(one)
    for one in (
        # The host of an Azure virtual machine has the address 168.63.129.16.
        *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
        *("64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
    )
)


def is_public(address: str) -> bool:
    """Return True if an IP address is public, or raise ValueError. The address may have a zone (`fe80::1%eth0`).

    Loopback, private, link-local, multicast and reserved addresses are not public. An address that embeds such an
    address is also not public.
    """
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        if ip.teredo or ip.is_site_local:
            return False
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in _NAT64:
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
        if int(ip) >> 32 & 0xFFFF_FFFF in _ISATAP and not is_public(str(IPv4Address(int(ip) & 0xFFFFFFFF))):
            return False
    if any(ip in network for network in _SPECIAL):
        return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def host_port(host: str, port: int) -> str:
    """Return `host:port` in canonical form for comparisons, with an IPv6 address in brackets."""
    name = host.lower().strip("[]")
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def has_web_scheme(text: str) -> bool:
    """Return True if a text begins with `http:` or `https:`."""
    return _SCHEME.match(text) is not None


def split_web_url(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL, or None if the scheme, host or port is invalid (RFC 3986 §3.2)."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:  # the URL contains an unclosed bracket or an invalid port
        return None
    return parts if parts.scheme in DEFAULT_PORTS and parts.hostname else None


def host_port_of(url: str) -> str:
    """Return `host:port` of a URL, or "" if the URL is not a complete http or https URL."""
    parts = split_web_url(url)
    return host_port(parts.hostname or "", _port(parts)) if parts else ""


def private_target_kind(url: str) -> str:
    """Return the kind of a private target, "this machine" or "a private network", or "" if the host looks public.

    Names are not resolved. A private address of a name is detected only when a request is sent.
    """
    host = host_port_of(url).rpartition(":")[0].strip("[]").rstrip(".")
    try:
        ip = ip_address(host.partition("%")[0])
    except ValueError:
        if host == "localhost" or host.endswith(".localhost"):
            return "this machine"
        alone = bool(host) and "." not in host
        return "a private network" if alone or host.endswith(_PRIVATE_NAMES) else ""
    if ip.is_loopback or ip.is_unspecified:
        return "this machine"
    return "" if is_public(host) else "a private network"


MAX_REDIRECTS: Final = 5

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "QUERY"})
_KEPT: Final = "%/:?#[]@!$&'()*+,;=~"  # characters of a Location header that stay unencoded
_FOLLOWED: Final = frozenset({301, 302, 303, 307, 308})

Refusal = Literal["", "target", "origin", "downgrade", "method", "circle"]
"""Reason why a redirect is not followed.

`target` is not an http address. `origin` is another origin. `downgrade` leads from https to http. `method` is a status
that does not permit to repeat the request with the same method. `circle` is a loop, or too many redirects.
"""

_REASONS: Final[dict[Refusal, str]] = {
    "target": "which is not followed",
    "origin": "which is another origin and not followed; hint: use that address if it is trusted",
    "downgrade": "which is not encrypted and not followed; hint: use an address without redirects",
    "method": "with a status that does not repeat the request; hint: use that address",
    "circle": f"which is a loop, or exceeds {MAX_REDIRECTS} redirects",
}


@dataclass(frozen=True, slots=True)
class Redirect:
    """Target of a redirect, and the next request, or the reason in `refusal` why it is not followed."""

    url: str
    method: str
    keeps_body: bool
    refusal: Refusal = ""

    @property
    def reason(self) -> str:
        """Return the target and the reason for the refusal, to end a sentence."""
        return f"a redirect to {self.url.partition('?')[0] or 'no address'}, {_REASONS[self.refusal or 'circle']}"

    @property
    def host(self) -> str:
        """Return `host` or `host:port` of the target."""
        return urlsplit(self.url).netloc


class RedirectTracker:
    """The redirects of one request, without loops, and at most `MAX_REDIRECTS`."""

    def __init__(self) -> None:
        self._seen: list[tuple[str, str]] = []

    def next(self, method: str, url: str, status: int, location: str) -> Redirect | None:
        """Return the redirect of a response, like `redirect_of`, but also refuse loops and too many redirects."""
        found = redirect_of(method, url, status, location)
        if found is None or found.refusal:
            return found
        self._seen.append((method, url))
        if len(self._seen) > MAX_REDIRECTS or (found.method, found.url) in self._seen:
            return Redirect(found.url, found.method, found.keeps_body, "circle")
        return found


def redirect_of(method: str, url: str, status: int, location: str) -> Redirect | None:
    """Return the redirect of a response, or None if the response is not a redirect."""
    if not 300 <= status < 400 or status == 304:
        return None
    target = _joined(url, location)
    if status not in _FOLLOWED or not target:
        return Redirect(target, method, keeps_body=True, refusal="target")
    changed = status == 303 and method not in ("GET", "HEAD")
    meant = "GET" if changed else method
    refusal: Refusal = ""
    if not is_same_origin(url, target):
        lower = is_same_origin(target, url)
        refusal = "downgrade" if lower else "origin"
    elif status in (301, 302) and method not in _SAFE:
        refusal = "method"
    return Redirect(target, meant, keeps_body=not changed, refusal=refusal)


def is_same_origin(url: str, target: str) -> bool:
    """Return True if the target has the origin of a URL, or is the https version of the URL."""
    ours, theirs = _split(url), _split(target)
    if ours is None or theirs is None or (ours.hostname or "").rstrip(".") != (theirs.hostname or "").rstrip("."):
        return False
    before, after = _port(ours), _port(theirs)
    upgraded = (ours.scheme, before, theirs.scheme, after) == ("http", 80, "https", 443)
    return upgraded or (ours.scheme == theirs.scheme and before == after)


def _joined(url: str, location: str) -> str:
    """Return the absolute, encoded URL of a Location without user and fragment, or "" if the URL is invalid."""
    try:
        parts = _split(urljoin(url, quote(location.strip(), safe=_KEPT)))
    except ValueError:
        return ""
    if not location.strip() or parts is None:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, parts.query, ""))


def _split(url: str) -> SplitResult | None:
    parts = split_web_url(url)
    return parts if parts and parts.port != 0 else None


def _port(parts: SplitResult) -> int:
    return parts.port or DEFAULT_PORTS[parts.scheme]
