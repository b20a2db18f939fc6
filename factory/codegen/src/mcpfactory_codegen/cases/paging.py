"""Two pages of a list, where a tool's list goes on: an answer after which there is more, and one that is the last.

What the next call must have is stated here a second time, and not taken from the runtime, so that the two check each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_codegen.text import compact
from mcpfactory_runtime.upstream.operation import Paging

__all__ = ["PAGE_SIZE", "first_page", "last_page"]

PAGE_SIZE: Final = 2
"""Items of a page, where the call or the document does not say how many."""

Json = dict[str, Any]

_CURSOR: Final = "cursor-2"
_NUMBER: Final = 7  # a cursor, where it is a number
_MOST: Final = 20  # items of a page that is made
_LONGEST: Final = 20_000  # characters of an answer: longer ones are cut
_MORE: Final = 5  # pages


def first_page(
    paging: Paging, parameter: str, arguments: Mapping[str, Any], response: Json
) -> tuple[Json, Json] | None:
    """Return an answer after which there is more, and the arguments of the next call; None where the document says too little.

    Args:
        paging: how the list goes on.
        parameter: the name of the paging argument in the API's query; "" where it travels elsewhere.
        arguments: of the call that is answered.
        response: a documented answer, whose body is JSON.
    """
    body = _full(paging, arguments, response["body"])
    following = None if body is None else _following(paging, arguments, body)
    if body is None or following is None:
        return None
    by_url = paging.kind == "link" or (paging.next and (paging.kind != "cursor" or _is_url(_at(body, paging.next))))
    if (by_url and not parameter) or not _says_more(paging, arguments):
        return None
    url = f"?{quote(parameter, '')}={following}"
    headers = {"headers": {"Link": f'<{url}>; rel="next"'}} if paging.kind == "link" else {}
    if paging.next:
        _put(body, paging.next, url if by_url else following)
    _put_counts(paging, arguments, body, more=_MORE)
    return {**response, "body": body, **headers}, {paging.argument: following}


def last_page(paging: Paging, arguments: Mapping[str, Any], response: Json) -> Json | None:
    """Return an answer after which there is no more; None where it could not say so. The arguments are those of `first_page`."""
    body = _full(paging, arguments, response["body"])
    if body is None:
        return None
    if paging.next:
        _put(body, paging.next, None)
    elif paging.kind in {"page", "offset"} and not _tells(paging):
        items = _at(body, paging.items)
        items.clear()
    _put_counts(paging, arguments, body, more=0)
    return {**response, "body": body}


def _full(paging: Paging, arguments: Mapping[str, Any], body: Any) -> Any:
    """Return the body of an answer with a full list; None where there is no place for what this paging needs."""
    body = deepcopy(body)
    if not isinstance(body, dict) and (paging.next or _tells(paging) or not isinstance(body, list)):
        return None
    items = _at(body, paging.items)
    if isinstance(items, list) and items:
        items[:] = [deepcopy(items[at % len(items)]) for at in range(min(_size(paging, arguments), _MOST))]
        return body if len(compact(body)) < _LONGEST else None
    return body if paging.kind in {"cursor", "link"} else None


def _size(paging: Paging, arguments: Mapping[str, Any]) -> int:
    """Return how many items a page has."""
    given = arguments.get(paging.size, paging.limit)
    return given if type(given) is int and given > 0 else PAGE_SIZE


def _now(paging: Paging, arguments: Mapping[str, Any]) -> Any:
    """Return what the call that is answered asked for."""
    return arguments.get(paging.argument, paging.first if paging.kind == "page" else 0)


def _following(paging: Paging, arguments: Mapping[str, Any], body: Any) -> Any:
    """Return the value that the next call's argument must have; None where nothing plain can be said."""
    if paging.kind in {"page", "offset"}:
        now = _now(paging, arguments)
        if type(now) is not int or now < (paging.first if paging.kind == "page" else 0):
            return None
        return now + (1 if paging.kind == "page" else len(_at(body, paging.items)))
    if paging.kind == "last":
        last = _at(body, paging.items)[-1]
        known = last.get("id") if isinstance(last, dict) else None
        return known if isinstance(known, str | int) and not isinstance(known, bool) else None
    return _NUMBER if paging.next and type(_at(body, paging.next)) is int else _CURSOR


def _tells(paging: Paging) -> bool:
    """Whether an answer has a flag, or a number of all, that says whether there is more."""
    return any((paging.more, paging.done, paging.total, paging.kind == "page" and paging.pages))


def _says_more(paging: Paging, arguments: Mapping[str, Any]) -> bool:
    """Whether an answer can say that there is more: in words, or by being full."""
    if paging.next or paging.kind not in {"page", "offset"} or _tells(paging):
        return True
    known = arguments.get(paging.size, paging.limit)
    return type(known) is int and 0 < known <= _MOST


def _put_counts(paging: Paging, arguments: Mapping[str, Any], body: Any, *, more: int) -> None:
    """Write whether, and how much, there is beside this page: as many pages `more`."""
    now, size = _now(paging, arguments), _size(paging, arguments)
    now = now if type(now) is int else 0
    pages = now - paging.first + 1 if paging.kind == "page" else 1
    seen = pages * size if paging.kind == "page" else now + min(size, _MOST)
    told = {
        paging.more: more > 0,
        paging.done: more == 0,
        paging.pages: pages + more,
        paging.total: seen + more * size,
    }
    for path, value in told.items():
        if path:
            _put(body, path, value)


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(("http://", "https://", "/", "?"))


def _at(body: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        body = body.get(name) if isinstance(body, dict) else None
    return body


def _put(body: Json, path: tuple[str, ...], value: Any) -> None:
    """Set a member; the objects on the way are made where they lack."""
    for name in path[:-1]:
        inner = body.get(name)
        body[name] = inner if isinstance(inner, dict) else {}
        body = body[name]
    body[path[-1]] = value
