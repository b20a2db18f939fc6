"""Pagination: the arguments for the next call of the same tool.

URLs are never followed. If an API returns the URL of the next page, the query values of the URL become values of the
operation's parameters. The URL must have the same host as the answer.

The first available sign of more items determines the next call. A Link header with rel="next" (RFC 8288) gives query
values, and X-Next-Page gives a page. `Paging.next` gives a cursor, or the query values of a URL. For the kind `last`, a
flag gives the ID of the last item. For `page` and `offset`, a flag, a total, or a full page gives the next page or the
number of items so far.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urljoin, urlsplit

from mcpfactory_runtime.upstream.encoding import UNSET
from mcpfactory_runtime.upstream.operation import Operation, Paging

META: Final = "mcpfactory/next"
"""Key in a result's `_meta`, for the changed arguments of the next call."""

_LINK: Final = re.compile(r"<([^<>]*)>([^<]*)")
_REL: Final = re.compile(r";\s*rel\s*=\s*\"?([^\";,]*)", re.IGNORECASE)
_LOOKS_LIKE_URL: Final = re.compile(r"https?://|[/?]", re.IGNORECASE)
_LONGEST: Final = 4_000  # maximum characters of a cursor


@dataclass(frozen=True, slots=True)
class Continuation:
    """Changes for the next call.

    `certain` is False if a full page is the only indication of more items. If the next page is on another host,
    `elsewhere` is the host, and `arguments` is empty.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    certain: bool = True
    elsewhere: str = ""

    def message(self) -> str:
        """Return one sentence about the continuation for the model."""
        if self.elsewhere:
            return f"More is on another host, {self.elsewhere}, which is not followed."
        changed = ", ".join(f"{name}={_quoted(value)}" for name, value in self.arguments.items())
        return f"{'More' if self.certain else 'There may be more'}: call again with the same arguments and {changed}."


def continuation(
    operation: Operation,
    arguments: Mapping[str, Any],
    value: Any,
    headers: Mapping[str, str],
    url: str,
    *,
    cut: bool = False,
) -> Continuation | None:
    """Return the continuation after an answer, or None if there is no next page, or the next page is unknown.

    `value` is the answer, and `cut` is True if the answer was truncated. Only a continuation that counts the remaining
    items is then valid.
    """
    paging = operation.paging
    if not cut:
        linked, decided = _from_headers(operation, arguments, headers, url)
        if decided:
            return linked
        if paging is not None and paging.next and (found := value_at_path(value, paging.next, UNSET)) is not UNSET:
            following = _from_value(operation, arguments, found, url) if _flag(paging, value) is not False else None
            if following is None or not following.elsewhere or paging.kind == "cursor":
                return following
    if paging is None:
        return None
    count = _COUNTERS[paging.kind]
    return count(paging, arguments, value, cut) if count else None


def value_at_path(value: Any, path: tuple[str, ...], default: Any = None) -> Any:
    """Return the value at a path of member names, or the default."""
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return default
        value = value[name]
    return value


# --- continuation in the response ---


def _from_headers(
    operation: Operation, arguments: Mapping[str, Any], headers: Mapping[str, str], url: str
) -> tuple[Continuation | None, bool]:
    page = headers.get("x-next-page", "").strip()
    if page.isdecimal() and len(page) < 10 and operation.paging is not None and operation.paging.kind == "page":
        return Continuation({operation.paging.argument: int(page)}), True
    links = {
        name.lower(): target
        for target, rest in _LINK.findall(headers.get("link", ""))
        for found in _REL.findall(rest)
        for name in found.split()
    }
    if "next" in links:
        return _from_url(operation, arguments, links["next"], url), True
    return None, not links.keys().isdisjoint({"prev", "first", "last"})


def _from_value(operation: Operation, arguments: Mapping[str, Any], found: Any, url: str) -> Continuation | None:
    if isinstance(found, bool) or found in (None, "") or not isinstance(found, str | int | float):
        return None
    if isinstance(found, str) and _LOOKS_LIKE_URL.match(found):
        by_query = _from_url(operation, arguments, found, url)
        if by_query is not None or re.match(r"https?://", found):
            return by_query
    if operation.paging is None or (isinstance(found, str) and len(found) > _LONGEST):
        return None
    if arguments.get(operation.paging.argument) == found:  # the API returned the same page again
        return None
    return Continuation({operation.paging.argument: found})


def _from_url(operation: Operation, arguments: Mapping[str, Any], target: str, url: str) -> Continuation | None:
    """Return a continuation with the query values of a URL that differ from the sent values."""
    try:
        next_url, this = urlsplit(urljoin(url, target)), urlsplit(url)
        if next_url.hostname != this.hostname:
            return Continuation(elsewhere=(next_url.hostname or "")[:100])
        query = parse_qsl(next_url.query, keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return None
    names = [name for name, _ in query]
    by_name = {one.name: one.argument for one in operation.parameters if one.place == "query"}
    paging = operation.paging
    changed: dict[str, Any] = {}
    for name, text in query:
        argument = by_name.get(name)
        if argument is None or names.count(name) > 1 or len(text) > _LONGEST:
            continue
        if _as_sent(arguments.get(argument, UNSET)) != text:
            whole = text.isdecimal() and len(text) < 16 and paging is not None and paging.kind in ("page", "offset")
            changed[argument] = int(text) if whole else text
    return Continuation(changed) if changed else None


def _as_sent(value: Any) -> str | None:
    if value is UNSET or value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(value: Any) -> str:
    return str(value) if isinstance(value, int | float) else '"' + str(value).replace('"', '\\"') + '"'


# --- counted continuation ---


def _by_last(paging: Paging, _: Mapping[str, Any], value: Any, cut: bool) -> Continuation | None:
    items = value_at_path(value, paging.items)
    if not isinstance(items, list) or not items or not (cut or _flag(paging, value)):
        return None
    last = items[-1].get("id") if isinstance(items[-1], dict) else None
    return Continuation({paging.argument: last}) if isinstance(last, str | int) else None


def _by_page(paging: Paging, arguments: Mapping[str, Any], value: Any, cut: bool) -> Continuation | None:
    items = value_at_path(value, paging.items)
    count = len(items) if isinstance(items, list) else -1
    page = _number(arguments.get(paging.argument), paging.first)
    if cut or page is None or count == 0:
        return None
    following = {paging.argument: page + 1}
    more = _flag(paging, value)
    pages, total = _number(value_at_path(value, paging.pages)), _number(value_at_path(value, paging.total))
    size = _number(arguments.get(paging.size), paging.limit or None)
    if more is None and pages is not None:
        more = page - paging.first + 1 < pages
    if more is None and total is not None and (size or count) > 0:
        more = (page - paging.first + 1) * (size or count) < total
    if more is None:
        return Continuation(following, certain=False) if size and count >= size else None
    return Continuation(following) if more else None


def _by_offset(paging: Paging, arguments: Mapping[str, Any], value: Any, cut: bool) -> Continuation | None:
    items = value_at_path(value, paging.items)
    start = _number(arguments.get(paging.argument), 0)
    if not isinstance(items, list) or not items or start is None:
        return None
    following = {paging.argument: start + len(items)}
    more = True if cut else _flag(paging, value)
    total = _number(value_at_path(value, paging.total))
    if more is None and total is not None:
        more = start + len(items) < total
    if more is None:
        size = _number(arguments.get(paging.size), paging.limit or None)
        return Continuation(following, certain=False) if size and len(items) >= size else None
    return Continuation(following) if more else None


def _flag(paging: Paging, value: Any) -> bool | None:
    """Return True if the answer reports more items, False if it reports the end, and None otherwise."""
    more, done = (value_at_path(value, path) if path else None for path in (paging.more, paging.done))
    return more if isinstance(more, bool) else not done if isinstance(done, bool) else None


def _number(value: Any, default: int | None = None) -> int | None:
    """Return an integer from a number or a string, `default` if the value is missing, or else None."""
    if value is UNSET or value is None:
        return default
    if isinstance(value, str) and value.isdecimal() and len(value) < 16:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_COUNTERS: Final = {"link": None, "cursor": None, "last": _by_last, "page": _by_page, "offset": _by_offset}
