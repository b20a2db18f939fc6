"""Which addresses a server may call: hosts that come from an API document must be on the public internet."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

__all__ = ["is_public"]

_NAT64: Final = ip_network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address


def is_public(address: str) -> bool:
    """Whether an IP address is public: not loopback, private, link-local, multicast, reserved, nor one of these in disguise.

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
    return ip.is_global and not ip.is_multicast and not ip.is_reserved
