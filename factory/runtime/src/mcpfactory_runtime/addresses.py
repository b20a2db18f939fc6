"""What an http or https URL leads to. Hosts that come from an API document must be on the public internet. Pure."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

__all__ = ["describe_private", "host_port", "host_port_of", "is_public", "is_web_address", "split_web_url"]

_SCHEME: Final = re.compile(r"https?:", re.IGNORECASE)
_PORTS: Final = {"http": 80, "https": 443}
_PRIVATE_NAMES: Final = (".local", ".internal", ".home.arpa")  # RFC 6762, ICANN 2024-07-29, RFC 8375

_NAT64: Final = ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})  # RFC 5214 §6.1: an IPv4 address stands behind them
# Of the registries of special-purpose addresses (RFC 6890), what not every Python since 3.11.0 knows as not global.
_SPECIAL: Final = tuple(
    ip_network(one)
    for one in (
        *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),  # the last is the host of a machine at Azure
        *("64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16"),
    )
)


def is_public(address: str) -> bool:
    """Return whether an IP address is public: not loopback, private, link-local, multicast, reserved, nor one of these in disguise.

    Args:
        address: as the resolver gave it; a zone (`fe80::1%eth0`) is permitted.

    Raises:
        ValueError: it is no IP address.
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
    """`host:port` in the one way that is compared; `[…]:port` for an IPv6 address."""
    name = host.lower().strip("[]")
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def is_web_address(text: str) -> bool:
    """Return whether a text names something on the web, by its scheme. Whether it can be reached `split_web_url` says."""
    return _SCHEME.match(text) is not None


def split_web_url(text: str) -> SplitResult | None:
    """Return the parts of an http or https URL; None for another scheme, no host, and a host or a port that cannot be (RFC 3986 §3.2)."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:  # a bracket that is not closed, a port that is none
        return None
    return parts if parts.scheme in _PORTS and parts.hostname else None


def host_port_of(url: str) -> str:
    """`host:port` that a URL leads to; "" for what is no complete http or https URL."""
    parts = split_web_url(url)
    return host_port(parts.hostname or "", parts.port or _PORTS[parts.scheme]) if parts else ""


def describe_private(url: str) -> str:
    """In words, what of its own a URL leads to: "this machine", "a private network"; "" for what is public as far as its name tells.

    Nothing is resolved: that a name with a public look leads to a private address is seen when it is called.
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
