"""Detection of pagination from an operation's inputs and response.

The runtime uses the result to tell the model how to get the next page. Case and punctuation in names are ignored
(`page[number]` is `pagenumber`). If an argument looks like a cursor but the response has no matching member, a problem
is reported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from operator import eq
from typing import Any, Final, Literal

from mcpfactory_codegen.credential_parameters import normalize_name
from mcpfactory_codegen.effects import effect_of
from mcpfactory_codegen.inputs import Input, Inputs
from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.naming import OperationNames
from mcpfactory_codegen.text import word_group
from mcpfactory_runtime.schemas.walk import properties_of, resolve_definition, types_of
from mcpfactory_runtime.upstream.operation import Paging

UNCLEAR: Final = "paging-unclear"
"""Problem code for an operation with unrecognized paging."""

Path = tuple[str, ...]


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(tuple(path.split(".")) for path in text.split())


_CURSOR: Final = word_group("cursor-arguments")
_LAST: Final = frozenset(["after", "afterid", "startingafter", "startafter"])
_PAGE: Final = frozenset(["page", "pagenumber", "pageno", "pagenum", "pageindex", "currentpage", "p"])
_OFFSET: Final = frozenset(["offset", "skip", "start", "startat", "startindex", "startrow", "pageoffset"])
_SIZE: Final = word_group("size-arguments")

_NEXT: Final = _paths("""
    nextcursor nextpagetoken nexttoken nextiterator nextmarker nextcontinuationtoken continuationtoken
    paginationtoken nextpage.offset nextpage.cursor next.after next.cursor cursors.after cursor.after cursor.next
    endcursor iterator bookmark scrollid pagination.after paging.after pagination.cursor cursor after lastid
""")
"""Ends of paths to a cursor, most reliable ends first.

Members of a path are separated by `.`.
"""

_URLS: Final = _paths("""
    nexturl nextlink odatanextlink nextpageurl nexthref next.href next.url next.uri nextpage.uri links.next
    pages.next next nextpage
""")
_MORE: Final = word_group("more-members")
_DONE: Final = frozenset(["done", "last", "islast", "islastpage", "lastpage", "end", "complete", "isfinished"])
_TOTAL: Final = word_group("total-members")
_PAGES: Final = frozenset(["totalpages", "pages", "pagecount", "numpages", "lastpage", "pagestotal", "maxpage"])
_ITEMS: Final = ("data", "items", "results", "values", "records", "entries", "list", "elements", "result", "content")

_NO_VALUE: Final = frozenset({"object", "array", "boolean"})
_PLACES: Final = frozenset({"query", "body", "form"})
_WHOLE: Final = frozenset({"integer", "number"})
_DEPTH: Final = 3
_MOST: Final = 300  # maximum number of response members to read


def recognize_paging(
    operation: ApiOperation, given: Inputs, named: OperationNames, api: Api, answer: Callable[[], Mapping[str, Any]]
) -> tuple[Paging | None, str]:
    """Return the operation's paging or None, and a note about an unclear case or "".

    `answer` returns the plain form of the response (`OutputSchemas.shape`).
    """
    found = {normalize_name(item.name): item for item in given.items if item.place in _PLACES and item.name}
    candidates = [name for name in found if name in _CURSOR or name in _PAGE or name in _OFFSET]
    if not candidates:
        return None, ""
    inputs = _Inputs(
        found, {name: _kinds(resolve_definition(found[name].schema, api.schemas)) - {"null"} for name in candidates}
    )
    graphql = operation.body is not None and bool(operation.body.graphql)
    seen = _AnswerMembers(answer(), _DEPTH + 1 if graphql else _DEPTH)  # GraphQL nests the result in `data`
    for rule in (_by_cursor, _by_number, _by_last):
        paging = rule(inputs, seen)
        if paging is not None:
            break
    else:
        if not any("link" in one.headers for one in operation.responses):
            cursor = inputs.first(_CURSOR - _LAST | _PAGE | _OFFSET, whole=False)
            # a parameter `start` without a page size may be a time
            sure = cursor in _CURSOR or not _SIZE.isdisjoint(found)
            if not (cursor and sure and answer() and effect_of(operation).kind == "reads"):
                return None, ""
            return None, f"its response does not contain the next value of `{found[cursor].name}`"
        paging = _PagingMatch("link", min(candidates, key=lambda name: name in _LAST))
    size = next((name for name in found if name in _SIZE and name != paging.argument), "")
    first = resolve_definition(found[paging.argument].schema, api.schemas)
    known = (first.get("default"), first.get("minimum")) if isinstance(first, dict) else ()
    zero = paging.kind == "page" and 0 in known
    return Paging(
        paging.kind,
        named.arguments[found[paging.argument].slot],
        next=paging.next,
        items=seen.items or (),
        size=named.arguments[found[size].slot] if size else "",
        limit=_default(resolve_definition(found[size].schema, api.schemas)) if size else 0,
        first=0 if zero else 1,
        more=seen.ending(_MORE, "boolean"),
        done=seen.ending(_DONE, "boolean"),
        total=seen.ending(_TOTAL, "integer", "number"),
        pages=seen.ending(_PAGES, "integer", "number"),
    ), ""


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Inputs by normalized name, and the value types of the inputs that can select a page."""

    items: Mapping[str, Input]
    types: Mapping[str, frozenset[str]]

    def first(self, words: frozenset[str], *, whole: bool) -> str:
        """Return the first input in `words`, from inputs with only number types (`whole`) or from all other inputs."""
        return next(
            (n for n, kinds in self.types.items() if n in words and (kinds <= _WHOLE and bool(kinds)) is whole), ""
        )


@dataclass(frozen=True, slots=True)
class _PagingMatch:
    kind: Literal["link", "cursor", "last", "page", "offset"]
    argument: str  # normalized name of the argument that selects the page
    next: Path = ()


class _AnswerMembers:
    """Members of a response, outer members first, and the path of the list of items."""

    def __init__(self, shape: Mapping[str, Any], depth: int) -> None:
        self.members: list[tuple[Path, Path, frozenset[str]]] = []
        """For each member, the path, the normalized path, and the types."""
        self.items: Path | None = () if "array" in _kinds(shape) else None
        waiting: deque[tuple[Path, Path, Mapping[str, Any]]] = deque(
            [((), (), shape)] if "object" in _kinds(shape) else []
        )
        lists: list[tuple[int, int, Path]] = []
        while waiting and len(self.members) < _MOST:
            path, plain, one = waiting.popleft()
            for name, inner in properties_of(one).items():
                kinds = _kinds(inner)
                self.members.append(((*path, name), (*plain, normalize_name(name)), kinds))
                if "array" in kinds:
                    known = _ITEMS.index(name.lower()) if name.lower() in _ITEMS else len(_ITEMS)
                    lists.append((len(path), known, (*path, name)))
                elif "object" in kinds and len(path) < depth - 1:
                    waiting.append(((*path, name), (*plain, normalize_name(name)), inner))
        top = [one for one in lists if one[0] == min(lists)[0]]
        if self.items is None and top and (min(top)[1] < len(_ITEMS) or len(top) == 1):
            self.items = min(top)[2]

    def at(self, ends: Iterable[Path]) -> Path:
        """Return the path of a scalar member with an ending from `ends`, or (). Earlier endings have priority."""
        for end in ends:
            fitting = [path for path, plain, own in self.members if plain[-len(end) :] == end and not own & _NO_VALUE]
            if fitting:
                return self._nearest(fitting)
        return ()

    def ending(self, words: frozenset[str], *kinds: str) -> Path:
        """Return the path of a member with one of these names and types."""
        return self._nearest([path for path, plain, own in self.members if plain[-1] in words and own & {*kinds}])

    def _nearest(self, paths: list[Path]) -> Path:
        """Return the path nearest to the list of items, because each list of a response can have a total."""
        ours = self.items or ()
        return max(paths, key=lambda path: len([*takewhile(bool, map(eq, path, ours))]), default=())


def _by_cursor(inputs: _Inputs, seen: _AnswerMembers) -> _PagingMatch | None:
    """Return paging by a cursor or URL that the response contains and that an argument takes."""
    names = (inputs.first(words, whole=False) for words in (_CURSOR - _LAST, _LAST, _PAGE, _OFFSET))
    name = next((one for one in names if one), "")
    place = seen.at(_NEXT) or seen.at(_URLS)
    if not name or not place:
        return None
    # the response may contain the cursor of the current page, not of the next page
    if name in _LAST and normalize_name(place[-1]) == "cursor":
        return None
    return _PagingMatch("cursor", name, place)


def _by_number(inputs: _Inputs, seen: _AnswerMembers) -> _PagingMatch | None:
    if name := inputs.first(_PAGE, whole=True):
        return _PagingMatch("page", name, seen.at(_URLS))
    if name := inputs.first(_OFFSET, whole=True):
        return _PagingMatch("offset", name, seen.at(_URLS)) if seen.items is not None else None
    return None


def _by_last(inputs: _Inputs, seen: _AnswerMembers) -> _PagingMatch | None:
    """Return paging by the ID of the last item, if a flag in the response shows that more items exist."""
    name = inputs.first(_LAST, whole=False) or inputs.first(_LAST, whole=True)
    return _PagingMatch("last", name) if name and seen.items is not None and seen.ending(_MORE, "boolean") else None


def _kinds(shape: Any) -> frozenset[str]:
    return frozenset(types_of(shape))


def _default(schema: Any) -> int:
    value = schema.get("default") if isinstance(schema, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
