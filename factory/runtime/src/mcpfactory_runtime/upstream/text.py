"""Bytes of a response as text for a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

__all__ = ["decode", "is_text", "plain"]

_TEXT_TYPES: Final = re.compile(
    r"text/|application/([\w.-]+\+)?(xml|yaml|x-yaml|javascript|x-www-form-urlencoded|graphql|sql|toml|csv|x-?ndjson|jsonl)\b"
    r"|application/(x-jsonlines|json-seq|jwt)|.*\+(xml|yaml)$"
)
_CONTROL: Final = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(127, 160)])


def is_text(kind: str) -> bool:
    """Whether a media type (without parameters; "" is unknown) is read as text."""
    return not kind or bool(_TEXT_TYPES.match(kind))


def decode(content: bytes, headers: Mapping[str, str], *, controls: bool = False) -> str:
    """Bytes as text, in the charset that the response names. Control characters go, save tab and line ends, unless `controls`."""
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", headers.get("content-type", ""), re.IGNORECASE)
    try:
        text = content.decode(found[1] if found else "utf-8", "replace")
    except (LookupError, ValueError):  # a charset that Python does not know
        text = content.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    return text if controls else text.translate(_CONTROL)


def plain(text: str) -> str:
    """Text without control characters and halves of surrogate pairs, which no message can carry."""
    return text.translate(_CONTROL).encode("utf-8", "replace").decode()
