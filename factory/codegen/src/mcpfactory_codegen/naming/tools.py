"""Tool names: the operationId when it says something, else method, path and summary.

Gather, then resolve: each operation has its forms in order, plainest first; in each phase, whoever is alone with a
proposal that is still free gets it, and the others go on to their next one. Of several with one proposal:

- the one whose operationId says just that keeps it, as nothing of it is lost; or else the one whose path is written so
- the one whose path is the beginning of the others' keeps it: `get_kit` of /kit, `get_kit_by_id` of /kit/{id};
- of those that had to be shortened, each keeps the words that the others lack, and tries again.

The last candidates carry a digest of method and path, so that the phases end.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.operation_ids import IdWords, id_words
from mcpfactory_codegen.naming.paths import PathWords, path_words
from mcpfactory_codegen.naming.shortening import Commonness, shortened
from mcpfactory_codegen.naming.verbs import VERBS
from mcpfactory_codegen.text import digest, singular, words

__all__ = ["TOOL_LIMIT", "may_be_tool", "name_tools"]


TOOL_LIMIT: Final = 64
"""Characters: what the strictest clients accept."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_EXACT: Final = {"PUT": "replace", "PATCH": "patch", "POST": "post"}
_METHODS_VERBS: Final = frozenset({"create", "update", "set"})
_DIGESTS: Final = (8, 16, 32)


def may_be_tool(name: str) -> bool:
    """Whether every client accepts the name."""
    return _NAME.match(name) is not None


@dataclass(slots=True)
class _Claimant:
    """An operation on its way to a name: its forms, plainest first, which one is tried, and the words that it keeps."""

    key: str
    forms: list[tuple[str, ...]]
    chosen: tuple[tuple[str, ...], tuple[str, ...]]
    path: frozenset[str]
    at: int = 0
    kept: frozenset[str] = frozenset()
    dense: bool = False

    def proposal(self, common: Commonness) -> str:
        if self.at < len(self.forms):
            return shortened(self.forms[self.at], TOOL_LIMIT, self.key, common, self.kept, dense=self.dense)
        number = self.at - len(self.forms)
        length = _DIGESTS[number] if number < len(_DIGESTS) else _DIGESTS[-1] + 1 + number
        if length > TOOL_LIMIT:  # unreachable unless SHA-256 collides
            return digest(self.key, TOOL_LIMIT) + "_" * (length - TOOL_LIMIT)
        room = TOOL_LIMIT - length - 1
        lead = shortened(self.forms[0], room, self.key, common)[:room].rstrip("_") if room > 0 else ""
        return f"{lead}_{digest(self.key, length)}" if lead else digest(self.key, length)

    def exact(self) -> int:
        """2 where the form that is tried is the whole operationId, 1 where it is the path as it is written, else 0."""
        if self.at >= len(self.forms) or self.forms[self.at] not in self.chosen or not self.fits():
            return 0
        return 2 - self.chosen.index(self.forms[self.at])

    def fits(self) -> bool:
        return self.at >= len(self.forms) or len("_".join(self.forms[self.at])) <= TOOL_LIMIT

    def keep(self, rivals: Iterable[tuple[str, ...]]) -> bool:
        """Keep the words that the rivals lack, if words had to be left out; whether that changes anything."""
        if self.fits():
            return False
        own, before = Counter(self.forms[self.at]), self.kept
        self.kept = before.union(*(own - Counter(rival) for rival in rivals))
        return self.kept != before

    def go_on(self) -> None:
        """Cut long words of a name that is too long, or else take the next form."""
        if self.dense or self.fits():
            self.at += 1
        else:
            self.dense = True


def name_tools(operations: Sequence[ApiOperation], pinned: Mapping[str, str]) -> dict[str, str]:
    """Return the tool name of every operation, by its key; unique without regard to case, `[A-Za-z0-9_-]{1,64}`."""
    names: dict[str, str] = {}
    holders: dict[str, tuple[str, ...]] = {}
    ordered = sorted(operations, key=lambda operation: operation.key)
    for operation in ordered:
        name = pinned.get(operation.key, "")
        if _NAME.match(name) and name.lower() not in holders:
            names[operation.key] = name
            holders[name.lower()] = words(name)
    claimants = {operation.key: _claimant(operation) for operation in ordered}
    common = Commonness.of(claimant.forms[0] for claimant in claimants.values())
    waiting = [claimant for key, claimant in claimants.items() if key not in names]
    while waiting:
        waiting = _phase(waiting, names, holders, common)
    return names


def _phase(
    waiting: list[_Claimant], names: dict[str, str], holders: dict[str, tuple[str, ...]], common: Commonness
) -> list[_Claimant]:
    """Give names to those that are alone with theirs; return the others."""
    claims: dict[str, list[_Claimant]] = defaultdict(list)
    for claimant in waiting:
        claims[claimant.proposal(common)].append(claimant)
    left: list[_Claimant] = []
    for name, group in claims.items():
        winner = None if name in holders else _winner(group)
        rivals = [*_forms(group), *([holders[name]] if name in holders else [])]
        losers = [claimant for claimant in group if claimant is not winner]
        unchanged = [claimant for claimant in losers if not claimant.keep(rivals)]
        if winner is not None:
            names[winner.key] = name
            holders[name] = _forms([winner])[0]
        if name in holders or len(unchanged) == len(losers):
            for claimant in unchanged:
                claimant.go_on()
        if all(claimant.fits() for claimant in group):
            holders.setdefault(name, rivals[0])  # a name that was refused to several is free for nobody else
        left += losers
    return left


def _forms(group: Sequence[_Claimant]) -> list[tuple[str, ...]]:
    return [claimant.forms[min(claimant.at, len(claimant.forms) - 1)] for claimant in group]


def _winner(group: Sequence[_Claimant]) -> _Claimant | None:
    """Return who of those with one proposal gets it."""
    if len(group) == 1:
        return group[0]
    most = max(claimant.exact() for claimant in group)
    among = [claimant for claimant in group if claimant.exact() == most and claimant.fits()]
    if len(among) == 1:
        return among[0]
    plainest = [one for one in among if all(one.path < other.path for other in among if other is not one)]
    return plainest[0] if len(plainest) == 1 else None


def _claimant(operation: ApiOperation) -> _Claimant:
    said = id_words(operation)
    # What was made of method and path is information, too: its nouns stay while there is room.
    path = path_words(operation, TOOL_LIMIT) if operation.operation_id else path_words(operation)
    literal = words(re.sub(r"\{[^{}]*\}", " ", operation.path))
    every = {*map(singular, literal), *re.findall(r"\{[^{}]*\}", operation.path)}
    forms = list(dict.fromkeys(_forms_of(operation, said, path)))
    return _Claimant(operation.key, forms, (said.whole, (path.verb, *path.written)), frozenset(every))


def _forms_of(operation: ApiOperation, said: IdWords, path: PathWords) -> Iterator[tuple[str, ...]]:
    """Yield the forms of an operation, plainest first; each but the first says more."""
    if said.plain:
        yield from _id_forms(said, path)
    else:
        yield from _path_forms(operation, said, path)
    base = said.whole or path.whole
    has = {singular(word) for word in base}
    nouns = map(singular, path.whole[1:]) if said.plain and path.written else ()
    rest = tuple(word for word in dict.fromkeys(nouns) if word not in has)
    more = tuple(word for word in path.rest if singular(word) not in has)
    by = ("by", *path.parameters) if path.parameters else ()
    full = base + rest
    raw = () if said.plain else (path.verb, *path.written)
    via = ("via", operation.method.lower())
    yield from filter(None, (full, full + by, raw, full + more, full + by + more, full + via, full + by + via))


def _id_forms(said: IdWords, path: PathWords) -> Iterator[tuple[str, ...]]:
    short = _without_parameters(said.plain, path)
    if len("_".join(said.plain)) > TOOL_LIMIT and short != said.plain:
        yield short
    yield said.plain
    yield said.whole


def _path_forms(operation: ApiOperation, said: IdWords, path: PathWords) -> Iterator[tuple[str, ...]]:
    if said.tail and said.tail[0] in VERBS:
        yield (said.tail[0], *path.near[1:])
        yield (said.tail[0], *path.near[1:], *said.tail[1:])
    yield path.near
    yield path.whole
    if path.verb in _METHODS_VERBS and operation.method in _EXACT:
        yield (_EXACT[operation.method], *path.near[1:])


def _without_parameters(parts: tuple[str, ...], path: PathWords) -> tuple[str, ...]:
    """Return the words without an ending that repeats the path's parameters: `getNoteByorderIdnoteId` is get note."""
    for index in range(1, len(parts)):
        ending = "".join(parts[index:])
        if ending.startswith("by") and _made_of(ending[2:], path.parameters):
            return parts[:index]
    return parts


def _made_of(text: str, parameters: tuple[str, ...]) -> bool:
    pieces = {*parameters, "and", "by", "id", "model"}
    return (
        bool(text)
        and re.fullmatch(f"({'|'.join(map(re.escape, sorted(pieces, key=len, reverse=True)))})+", text) is not None
    )
