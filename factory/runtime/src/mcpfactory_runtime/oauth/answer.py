"""A whole HTTP response, apart from any HTTP library."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HttpAnswer"]


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A whole HTTP response; header names are in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes
