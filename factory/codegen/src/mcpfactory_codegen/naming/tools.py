"""Tool names: the operationId if it is meaningful, else method, path and summary.

Each operation has candidate names, simplest first. In each round, a name that only one operation proposes goes to this
operation. Operations without a name then propose their next candidate. If several operations propose a name, the
operation whose operationId is exactly that name gets the name. The second priority is the operation whose path has
exactly the words of the name. If no single operation qualifies, the name goes to the operation whose path segments all
other paths contain, as in `get_kit` for /kit and `get_kit_by_id` for /kit/{id}.

Names that are too long are shortened step by step. The first steps drop words that most operations have, and repeated
phrases. Then words are abbreviated, such as `configuration` to `config`. Then articles, prepositions, repeated words
and the most common words are dropped. Finally, the name is cut and gets a digest. Verbs, the last words, and words in
`kept` are dropped last. `kept` has words that other operations with the same candidate name lack.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mcpfactory_codegen.effects import GENERIC_VERBS, VERBS
from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.operation_words import (
    OperationIdWords,
    PathWords,
    operation_id_words,
    path_words,
    verb_kind,
)
from mcpfactory_codegen.text import VERSION, digest, join_and_shorten, singular, word_pairs, words

TOOL_LIMIT: Final = 64
"""Maximum characters of a name, from the limits of the strictest clients."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_MAX_WITH_VERSION: Final = 2  # words; a longer operationId loses the version at its start
_EXACT: Final = {"PUT": "replace", "PATCH": "patch", "POST": "post"}
_METHODS_VERBS: Final = frozenset({"create", "update", "set"})
_DIGESTS: Final = (8, 16, 32)


def is_valid_tool_name(name: str) -> bool:
    """Return True if all clients accept the name."""
    return _NAME.match(name) is not None


@dataclass(slots=True)
class _UnnamedOperation:
    """Operation without a name.

    `forms` has the candidates, plainest first.
    """

    key: str
    forms: list[tuple[str, ...]]
    chosen: tuple[tuple[str, ...], tuple[str, ...]]
    path: frozenset[str]
    at: int = 0
    kept: frozenset[str] = frozenset()

    def proposal(self, common: WordFrequency) -> str:
        if self.at < len(self.forms):
            return shortened(self.forms[self.at], TOOL_LIMIT, self.key, common, self.kept)
        number = self.at - len(self.forms)
        length = _DIGESTS[number] if number < len(_DIGESTS) else _DIGESTS[-1] + 1 + number
        if length > TOOL_LIMIT:  # a name can get this long only if two SHA-256 digests are equal
            return digest(self.key, TOOL_LIMIT) + "_" * (length - TOOL_LIMIT)
        room = TOOL_LIMIT - length - 1
        lead = shortened(self.forms[0], room, self.key, common)[:room].rstrip("_") if room > 0 else ""
        return f"{lead}_{digest(self.key, length)}" if lead else digest(self.key, length)

    def exact(self) -> int:
        """Return 2 if the current form is the whole operationId, 1 if the form is the literal path, else 0."""
        if self.at >= len(self.forms) or self.forms[self.at] not in self.chosen or not self.fits():
            return 0
        return 2 - self.chosen.index(self.forms[self.at])

    def fits(self) -> bool:
        return self.at >= len(self.forms) or len("_".join(self.forms[self.at])) <= TOOL_LIMIT

    def keep(self, rivals: Iterable[tuple[str, ...]]) -> bool:
        """Keep the words of a too long form that the rivals lack. Return True if a word was added to `kept`."""
        if self.fits():
            return False
        own, before = Counter(self.forms[self.at]), self.kept
        self.kept = before.union(*(own - Counter(rival) for rival in rivals))
        return self.kept != before


def name_tools(operations: Sequence[ApiOperation], pinned: Mapping[str, str]) -> dict[str, str]:
    """Return the tool name of every operation, by its key.

    Names match `[A-Za-z0-9_-]{1,64}`, and differ in more than the case of letters.
    """
    names: dict[str, str] = {}
    holders: dict[str, tuple[str, ...]] = {}
    ordered = sorted(operations, key=lambda operation: operation.key)
    for operation in ordered:
        name = pinned.get(operation.key, "")
        if _NAME.match(name) and name.lower() not in holders:
            names[operation.key] = name
            holders[name.lower()] = words(name)
    ids = Counter(operation.operation_id for operation in ordered)
    claimants = {operation.key: _claimant(operation, ids) for operation in ordered}
    common = WordFrequency.from_names(claimant.forms[0] for claimant in claimants.values())
    waiting = [claimant for key, claimant in claimants.items() if key not in names]
    while waiting:
        waiting = _phase(waiting, names, holders, common)
    return names


def _phase(
    waiting: list[_UnnamedOperation], names: dict[str, str], holders: dict[str, tuple[str, ...]], common: WordFrequency
) -> list[_UnnamedOperation]:
    claims: dict[str, list[_UnnamedOperation]] = defaultdict(list)
    for claimant in waiting:
        claims[claimant.proposal(common)].append(claimant)
    left: list[_UnnamedOperation] = []
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
                claimant.at += 1
        if all(claimant.fits() for claimant in group):
            holders.setdefault(name, rivals[0])  # a name that several operations proposed stays reserved
        left += losers
    return left


def _forms(group: Sequence[_UnnamedOperation]) -> list[tuple[str, ...]]:
    return [claimant.forms[min(claimant.at, len(claimant.forms) - 1)] for claimant in group]


def _winner(group: Sequence[_UnnamedOperation]) -> _UnnamedOperation | None:
    """Return the claimant that gets the name, or None if no single claimant is the best."""
    if len(group) == 1:
        return group[0]
    most = max(claimant.exact() for claimant in group)
    among = [claimant for claimant in group if claimant.exact() == most and claimant.fits()]
    if len(among) == 1:
        return among[0]
    plainest = [one for one in among if all(one.path < other.path for other in among if other is not one)]
    return plainest[0] if len(plainest) == 1 else None


def _claimant(operation: ApiOperation, ids: Counter[str]) -> _UnnamedOperation:
    if ids[operation.operation_id] > 1 and _contradicts(operation):
        operation = replace(operation, operation_id="")
    exact = operation_id_words(operation).chosen
    # generators number the further operations of one name, such as `findById_1` and `GetBook2`
    uncounted = operation.operation_id.rstrip("0123456789").rstrip("_")
    said = operation_id_words(replace(operation, operation_id=uncounted) if uncounted in ids else operation)
    # words of the path are dropped only if the operation has no operationId
    path = path_words(operation, TOOL_LIMIT) if operation.operation_id else path_words(operation)
    literal = words(re.sub(r"\{[^{}]*\}", " ", operation.path))
    every = {*map(singular, literal), *re.findall(r"\{[^{}]*\}", operation.path)}
    forms = list(dict.fromkeys(_forms_of(operation, said, path)))
    return _UnnamedOperation(operation.key, forms, (exact, (path.verb, *path.written)), frozenset(every))


def _contradicts(operation: ApiOperation) -> bool:
    """Return True if the operationId begins with a verb of another kind than the path, such as `getBook` for DELETE."""
    first = next(iter(words(operation.operation_id)), "")
    known = first in GENERIC_VERBS and verb_kind(first) in {"read", "create", "update", "delete"}
    return known and verb_kind(first) != verb_kind(path_words(operation).verb)


def _forms_of(operation: ApiOperation, said: OperationIdWords, path: PathWords) -> Iterator[tuple[str, ...]]:
    """Yield candidate names for an operation, as words, from plain to specific."""
    if said.chosen:
        yield from _id_forms(said, path)
    else:
        yield from _path_forms(operation, said, path)
    base = said.chosen or path.whole
    has = {singular(word) for word in base}
    nouns = map(singular, path.whole[1:]) if said.chosen and path.written else ()
    rest = tuple(word for word in dict.fromkeys(nouns) if word not in has)
    more = tuple(word for word in path.rest if singular(word) not in has)
    by = ("by", *path.parameters) if path.parameters else ()
    full = base + rest
    raw = (path.verb, *path.written) if path.written and not said.chosen else ()
    via = ("via", operation.method.lower())
    yield from filter(None, (full, full + by, raw, full + more, full + by + more, full + via, full + by + via))


def _id_forms(said: OperationIdWords, path: PathWords) -> Iterator[tuple[str, ...]]:
    if VERSION.match(said.chosen[0]) and len(said.chosen) > _MAX_WITH_VERSION:
        yield said.chosen[1:]
    short = _without_parameters(said.chosen, path)
    if len("_".join(said.chosen)) > TOOL_LIMIT and short != said.chosen:
        yield short
    yield said.chosen


def _path_forms(operation: ApiOperation, said: OperationIdWords, path: PathWords) -> Iterator[tuple[str, ...]]:
    if said.tail and said.tail[0] in VERBS:
        yield (said.tail[0], *path.near[1:])
        yield (said.tail[0], *path.near[1:], *said.tail[1:])
    yield path.near
    yield path.whole
    if path.verb in _METHODS_VERBS and operation.method in _EXACT:
        yield (_EXACT[operation.method], *path.near[1:])


def _without_parameters(parts: tuple[str, ...], path: PathWords) -> tuple[str, ...]:
    """Remove an ending that repeats the path's parameters, so that `getNoteByorderIdnoteId` becomes “get note”."""
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


# --- names that are too long ---


SHORT_FORMS: Final = word_pairs("short-forms")
"""Long words and their usual short forms."""
_ARTICLES: Final = frozenset({"a", "an", "the", "of"})
_PREPOSITIONS: Final = frozenset({"for", "in", "to", "from", "with", "on", "at", "and", "by", "via"})
_ENOUGH: Final = 8
"""Minimum number of an API's operations. In a smaller API, no word counts as common."""


@dataclass(frozen=True, slots=True)
class WordFrequency:
    """For each word, the number of operations that contain the word, and the `total` number of operations."""

    counts: Counter[str]
    total: int

    @classmethod
    def from_names(cls, names: Iterable[Sequence[str]]) -> WordFrequency:
        """Count each word once per name, in the singular."""
        every = list(names)
        return cls(Counter(word for name in every for word in {singular(word) for word in name}), len(every))

    def everywhere(self, word: str) -> bool:
        """Return True if at least half of a sufficient number of operations have the word."""
        return self.total >= _ENOUGH and 2 * self.counts[singular(word)] >= self.total

    def rarity(self, word: str) -> int:
        """Return a number that increases with the rarity of the word."""
        return -self.counts[singular(word)]


def shortened(
    parts: Sequence[str], limit: int, key: str, common: WordFrequency, kept: Collection[str] = frozenset()
) -> str:
    """Join words by `_`, shortened to `limit` characters. If necessary, add a digest of `key`."""
    middle = limit // 2  # leave out words in the middle of a long path, to limit the running time
    words = [*parts[:middle], *parts[-middle:]] if len(parts) > limit else list(parts)
    work = _NameShortener(words, limit, common, frozenset(kept))
    for step in (work.everywhere, work.phrases, work.abbreviate, work.little, work.repeated, work.commonest):
        if work.fits():
            break
        step()
    return work.name() if work.fits() else join_and_shorten(work.left(), limit, key)


def _usual(word: str) -> str:
    if word in SHORT_FORMS:
        return SHORT_FORMS[word]
    short = SHORT_FORMS.get(singular(word), "")
    return short + "s" if short and not short.endswith("s") else short


class _NameShortener:
    """The words of one name, and the indexes of dropped words."""

    __slots__ = ("common", "kept", "limit", "out", "parts", "shown")

    def __init__(self, parts: list[str], limit: int, common: WordFrequency, kept: frozenset[str]) -> None:
        self.parts = parts
        self.shown = list(parts)
        self.limit = limit
        self.common = common
        self.kept = kept
        self.out: list[int] = []

    def left(self) -> list[str]:
        return [word for index, word in enumerate(self.shown) if index not in self.out]

    def name(self) -> str:
        return "_".join(self.left())

    def fits(self) -> bool:
        return len(self.name()) <= self.limit

    def phrases(self) -> None:
        """Drop repeated phrases of two or more words.

        Drop the second occurrence if a preposition precedes it, and otherwise the first occurrence.
        """
        ones = [singular(word) for word in self.parts]
        for length in range(len(self.parts) // 2, 1, -1):
            for first in range(len(self.parts) - length):
                for again in range(first + length, len(self.parts) - length + 1):
                    if ones[first] == ones[again] and self._same(first, again, length) and not self.fits():
                        later = self.parts[again - 1] in _PREPOSITIONS
                        start = again if later else first
                        self.out += [at for at in range(start, start + length) if at not in self.out]

    def everywhere(self) -> None:
        """Drop words that occur in most operations, from the start of the name."""
        service = [0] if not VERBS.isdisjoint(self.parts[1:]) and self.parts[0] not in self.kept else []
        every = dict.fromkeys([*service, *self._droppable()])
        self._drop_until_it_fits([index for index in every if self.common.everywhere(self.parts[index])])

    def abbreviate(self) -> None:
        """Abbreviate long words, including plurals, with the largest savings first."""
        short = {word: found for word in self.left() if (found := _usual(word))}
        for word in sorted(short, key=lambda word: (len(short[word]) - len(word), word)):
            if self.fits():
                return
            self.shown = [short[word] if shown == word else shown for shown in self.shown]

    def little(self) -> None:
        """Drop articles and, if the name is still too long, prepositions."""
        for group in (_ARTICLES, _PREPOSITIONS):
            inner = range(1, len(self.parts) - 1)
            self._drop_until_it_fits(index for index in inner if self.parts[index] in group - self.kept)

    def repeated(self) -> None:
        """Drop repeated words."""
        later: set[str] = set()
        twice = []
        for index in reversed(range(len(self.parts))):
            if index not in self.out:
                word = singular(self.parts[index])
                if word in later and word not in VERBS and self.parts[index] not in self.kept:
                    twice.append(index)
                later.add(word)
        self._drop_until_it_fits(sorted(twice))

    def commonest(self) -> None:
        """Drop the most common words, with verbs and kept words last."""
        order = sorted(self._droppable(), key=lambda index: (self.common.rarity(self.parts[index]), index))
        self._drop_until_it_fits(order)
        if not self.fits():
            spared = [index for index in range(len(self.parts) - 1) if index not in self.out]
            spared.sort(
                key=lambda index: (self.parts[index] in self.kept, self.common.rarity(self.parts[index]), index)
            )
            self._drop_until_it_fits(spared[: max(0, len(spared) - 1)])

    def _droppable(self) -> list[int]:
        """Return the indexes of droppable words: no verbs, no kept words, and not the last two words."""
        return [
            index
            for index, word in enumerate(self.parts[:-2])
            if index not in self.out and word not in VERBS and word not in self.kept
        ]

    def _drop_until_it_fits(self, order: Iterable[int]) -> None:
        for index in order:
            if self.fits():
                return
            if index not in self.out:
                self.out.append(index)

    def _same(self, first: int, again: int, length: int) -> bool:
        pairs = zip(range(first, first + length), range(again, again + length), strict=True)
        return all(
            not {one, two} & {*self.out}
            and self.parts[one] not in self.kept
            and singular(self.parts[one]) == singular(self.parts[two])
            for one, two in pairs
        )
