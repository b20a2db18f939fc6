"""What all views share: their form for programs, and lists that are shown a page at a time."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import TypeAdapter

__all__ = ["Pager", "adapter", "page_number", "paged", "shorten", "to_json", "to_json_text"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Pager:
    """Which part of a list is shown: `page` of `pages`, and how many entries the whole list has."""

    page: int
    pages: int
    total: int


def paged(entries: Sequence[_T], wanted: str, size: int) -> tuple[tuple[_T, ...], Pager]:
    """Return the entries of the wanted page, counted from 1; what is no page of the list gives the nearest that is."""
    pages = max(1, -(-len(entries) // size))
    page = page_number(wanted, pages)
    return tuple(entries[(page - 1) * size : page * size]), Pager(page, pages, len(entries))


def page_number(wanted: str, pages: int) -> int:
    """Return the number of the wanted page, or of the nearest one."""
    return min(max(int(wanted), 1), pages) if wanted.isascii() and wanted.isdecimal() and len(wanted) < 10 else 1


def shorten(text: str, size: int) -> str:
    """Return a text, cut after so many characters."""
    return text if len(text) <= size else f"{text[:size]}…"


@functools.cache
def adapter(view: type[Any]) -> TypeAdapter[Any]:
    """Return what writes views of a class as plain data, and knows their schema."""
    return TypeAdapter(view)


def to_json(view: Any) -> dict[str, Any]:
    """Return a view as plain data: the fields that its page shows, and a status as its key."""
    data: dict[str, Any] = adapter(view.__class__).dump_python(view, mode="json")
    return data


def to_json_text(view: Any) -> bytes:
    """Return the plain data of a view as indented JSON."""
    return adapter(view.__class__).dump_json(view, indent=2, warnings=False) + b"\n"
