"""What an http or https URL is. Pure; nothing here raises, whatever a document or a person wrote."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import SplitResult, urlsplit

__all__ = ["is_web_address", "split_web_url"]

_SCHEME: Final = re.compile(r"https?:", re.IGNORECASE)


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
    return parts if parts.scheme in {"http", "https"} and parts.hostname else None
