"""Which names headers and XML elements can have: asked when an API document is read, and again when a request is built."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["is_xml_name", "unusable_header"]

_OF_THE_CLIENT: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect"}
)
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIRST: Final = (
    "A-Z_a-z\\xC0-\\xD6\\xD8-\\xF6\\xF8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F"
    "\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\U00010000-\\U000EFFFF"
)
_PART: Final = f"[{_FIRST}][{_FIRST}\\-.0-9\\xB7\\u0300-\\u036F\\u203F\\u2040]*"
_NAME: Final = re.compile(f"{_PART}(?::{_PART})?\\Z")  # XML 1.0 §2.3, with at most one colon (Namespaces in XML §4)


def is_xml_name(name: str) -> bool:
    """Whether an element or attribute may be called so, with or without a prefix."""
    return len(name) <= 1000 and _NAME.match(name) is not None


def unusable_header(name: str) -> str:
    """Why no argument can set the header of this name ("is no …"); "" when one can."""
    if not _TOKEN.fullmatch(name):
        return "is no name of a header"
    if name.lower() in _OF_THE_CLIENT or name.lower().startswith("proxy-"):
        return "belongs to the connection"
    return ""
