"""Search index that ranks tools for a question, without a language model.

The ranking is BM25F (Robertson and Zaragoza, 2009, section 3.4) with additions for APIs:

- A related word in the table `search_words.txt` also matches. A distant relation matches only if no near relation
  matches.
- Misspelled words and compound words also match, and words that the API's descriptions use for a resource.
- A tool that matches more words of the question outranks a tool that repeats one word.
- A tool with fewer other words in name and path ranks higher: `list_invoices` before `list_invoice_lines`.
- A question about reading prefers tools that read. A question about writing prefers the HTTP method that the verb
  suggests. A question about several things prefers tools that return lists.
- If operations differ only in method or version, only the best operation is among the first results.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

from mcpfactory_runtime.schemas.walk import COMBINATORS, items_schema_of, properties_of, subschemas_of
from mcpfactory_runtime.server.generated.search_words import (
    SELF,
    VERBS,
    SearchQuestion,
    Term,
    associations,
    identifier_words,
    parse_search_question,
    suggested_http_methods,
    synonyms,
    text_words,
)
from mcpfactory_runtime.types import Json

_VARIABLE: Final = re.compile(r"\{[^{}]*\}")
_VERSION: Final = re.compile(r"/v\d+(?:(?:alpha|beta)\d*)?(?=/|$)")
_SEGMENT: Final = re.compile(r"[/#]")
_READING: Final = frozenset({"GET"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"})
_METHODS: Final = frozenset({"get", "post", "put", "patch", "delet", "head"})
_ONE: Final = frozenset({"get", "read"})  # verbs in the names of tools that return one item
_OLD: Final = re.compile(r"deprecated|legacy", re.IGNORECASE)

# Limits on the indexed data of one tool, so that long schemas do not slow down the index.
_DESCRIPTION: Final = 500  # maximum characters of a description
_DETAILS: Final = 20  # maximum number of arguments whose descriptions are indexed
_DETAIL: Final = 120  # maximum characters of each argument's description
_NAMES: Final = 60  # maximum number of argument names
_VALUES: Final = 80  # maximum number of enum values
_VALUE: Final = 40  # characters; enum values of this length or more are not indexed
_DEPTH: Final = 4  # maximum nesting level of schemas

# Minimum fraction of the tools with a word that have the word's subject in name or path.
_SUPPORT: Final = 0.5
# Minimum factor by which a word's subject is more frequent among the tools with the word than among all tools.
_LIFT: Final = 3.0
_COMMON: Final = 0.2  # fraction of all tools; words in more tools have no subject


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """Weights of the ranking, tuned with the questions `tuned` of `python -m benchmarks search`.

    Attributes:
        saturation: k1 of BM25.
        synonym: weight of a synonym of a word that no name or path contains.
        known_synonym: weight of a synonym of a word that a name or path contains.
        association: weight of a distantly related word.
        learned: weight of a subject from `SearchIndex._learned`.
        compound: weight of two words that are written as one.
        misspelt: weight of a word that differs by one or two letters.
        verb: weight of the verb at the beginning of a question.
        pronoun: weight of "my".
        distances: weights of terms by `Term.distance`.
        again: weight of a second match of the same word of a tool.
        coverage: influence of the fraction of the question's words that a tool matches.
        fit: influence of the fraction of a tool's name and path that the question matches.
        method: factor for a tool whose method the question suggests.
        other_method: factor for a tool whose method differs from the suggested ones.
        amount: factor for a tool that returns one item or a list, as the question asks.
        leaf: factor if the question names the last resource of the tool's path.
        deprecated: factor for a deprecated tool.
    """

    saturation: float = 2.9
    synonym: float = 1.0
    known_synonym: float = 0.7
    association: float = 0.7
    learned: float = 0.42
    compound: float = 0.9
    misspelt: float = 0.7
    verb: float = 0.9
    pronoun: float = 0.42
    distances: tuple[float, float, float, float] = (1.0, 0.85, 1.0, 0.4)
    again: float = 0.38
    coverage: float = 0.7
    fit: float = 0.78
    method: float = 2.4
    other_method: float = 0.6
    amount: float = 1.13
    leaf: float = 1.45
    deprecated: float = 0.83


_WEIGHTS: Final = RankingWeights()

# field → weight, usual number of words, and discount for longer fields
_FIELDS: Final[dict[str, tuple[float, float, float]]] = {
    "name": (2.0, 4, 0.4),
    "title": (1.7, 6, 0.5),
    "path": (0.8, 4, 0.4),
    "group": (0.8, 1, 0.0),
    "description": (1.6, 40, 0.6),
    "arguments": (0.4, 8, 0.7),
    "values": (0.6, 8, 0.6),
    "details": (0.25, 60, 0.7),
}


@dataclass(frozen=True, slots=True)
class IndexedTool:
    """Indexed data of one tool.

    Attributes:
        operation: method and path, or "" if unknown.
        group: the tool's module.
        values: permitted values of the arguments.
        details: descriptions of the arguments.
        reads: True if the tool is read-only, or None if unknown.
    """

    name: str
    title: str = ""
    description: str = ""
    operation: str = ""
    group: str = ""
    arguments: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    reads: bool | None = None

    @classmethod
    def from_wire(cls, wire: Json, operation: str = "", group: str = "") -> Self:
        """Return the indexed data of a tool from its object in tools/list."""
        names: list[str] = []
        values: list[str] = []
        details: list[str] = []
        _collect(wire.get("inputSchema"), names, values, details, 0)
        return cls(
            name=wire["name"],
            title=wire.get("title", ""),
            description=wire.get("description", ""),
            operation=operation,
            group=group,
            arguments=tuple(names[:_NAMES]),
            values=tuple(values[:_VALUES]),
            details=tuple(details),
            reads=wire.get("annotations", {}).get("readOnlyHint"),
        )

    @property
    def method(self) -> str:
        """Return the operation's method, or "" if unknown."""
        return self.operation.partition(" ")[0]

    @property
    def path(self) -> str:
        """Return the operation's path, or "" if unknown."""
        return self.operation.partition(" ")[2]


def _collect(schema: Any, names: list[str], values: list[str], details: list[str], depth: int) -> None:
    if not isinstance(schema, dict) or depth > _DEPTH or len(names) >= _NAMES:
        return
    values += [value for value in schema.get("enum") or () if isinstance(value, str) and len(value) < _VALUE]
    for part in (*subschemas_of(schema, *COMBINATORS), items_schema_of(schema)):
        _collect(part, names, values, details, depth + 1)
    for name, part in properties_of(schema).items():
        names.append(name)
        text = part.get("description") if isinstance(part, dict) else None
        if isinstance(text, str) and len(details) < _DETAILS:
            details.append(text[:_DETAIL])
        _collect(part, names, values, details, depth + 1)


@dataclass(frozen=True, slots=True)
class _Traits:
    """Properties of a tool for the ranking.

    Attributes:
        core: words of the tool's name and path.
        leaf: words of the path's last resource.
        methods: GET for a read-only tool; otherwise the operation's method, or the methods that the name suggests.
        lists: True if the tool returns several items.
        twin: index of the first tool with the same description and path, apart from the version in the path.
    """

    core: frozenset[str]
    leaf: frozenset[str]
    methods: frozenset[str]
    lists: bool
    deprecated: bool
    twin: int


class SearchIndex:
    """Search index of tools."""

    def __init__(self, entries: Iterable[IndexedTool], weights: RankingWeights = _WEIGHTS) -> None:
        self._weights = weights
        self._traits: list[_Traits] = []
        self._postings: dict[str, dict[int, float]] = {}
        self._cores: Counter[str] = Counter()  # word → number of tools that have the word in name or path
        # Word → number of tools that have the word in name, title or last resource.
        self._heads: Counter[str] = Counter()
        twins: dict[tuple[str, str], int] = {}
        for number, entry in enumerate(entries):
            name = _without_method(identifier_words(entry.name))
            segments = [words for part in _SEGMENT.split(_VARIABLE.sub("", entry.path)) if (words := _name_words(part))]
            path = [word for words in segments for word in words]
            title = _without_method(text_words(entry.title))
            leaf = frozenset(segments[-1]) if segments else frozenset()
            same = (_VERSION.sub("", entry.path), entry.description)
            twin = twins.setdefault(same, number) if entry.description else number
            traits = _Traits(
                core=frozenset([*name, *path]),
                leaf=leaf,
                methods=_methods(entry, name),
                lists=_lists(entry, name),
                deprecated=_OLD.search(entry.title) is not None or _OLD.search(entry.description) is not None,
                twin=twin,
            )
            self._traits.append(traits)
            self._cores.update(traits.core)
            self._heads.update({*name, *title, *leaf})
            for word, weight in _word_weights(entry, name, title, path).items():
                self._postings.setdefault(word, {})[number] = weight
        self._rarities = {word: self._worth(word) for word in self._postings}
        self._core_worths = [sum(self._rarities[word] for word in traits.core) for traits in self._traits]

    def search(self, question: str, limit: int, within: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return the positions and scores of the best tools, best first.

        If `within` is given, search only tools at these positions.
        """
        return self._twins_last(self._ranked(question, within))[:limit]

    def _ranked(self, question: str, within: Sequence[int] | None) -> list[tuple[int, float]]:
        asked = parse_search_question(question)
        meant = self._possible_words(asked.terms)
        hits = _Hits(self._weights.again)
        asked_words: dict[str, float] = {}
        for term, words in zip(asked.terms, meant, strict=True):
            emphasis = self._emphasis(term)
            worth = max((self._rarities[word] * factor for word, factor in words.items()), default=0.0)
            hits.whole += worth * emphasis
            for number, (score, share, word) in self._matches(words, term.options[0] == SELF).items():
                hits.add(number, word, score * emphasis, share * worth * emphasis)
            for word, factor in words.items():
                asked_words[word] = max(asked_words.get(word, 0.0), factor)
        chosen = hits.scores if within is None else {one: hits.scores[one] for one in within if one in hits.scores}
        ranked = [
            (number, score * self._factor(number, hits.coverage(number), asked, asked_words))
            for number, score in chosen.items()
        ]
        ranked = [pair for pair in ranked if pair[1] > 0]
        ranked.sort(key=lambda pair: (-pair[1], pair[0]))
        return ranked

    def _twins_last(self, ranked: list[tuple[int, float]]) -> list[tuple[int, float]]:
        seen: set[int] = set()
        first: list[tuple[int, float]] = []
        last: list[tuple[int, float]] = []
        for number, score in ranked:
            twin = self._traits[number].twin
            (last if twin in seen else first).append((number, score))
            seen.add(twin)
        return first + last

    def _emphasis(self, term: Term) -> float:
        weights = self._weights
        own = weights.verb if term.leads else weights.pronoun if term.options[0] == SELF else 1.0
        return own * weights.distances[term.distance]

    # -- words of the index that a term may mean --------------------------------------------------------------------

    def _possible_words(self, terms: Sequence[Term]) -> list[dict[str, float]]:
        meant = [self._variants(term.options) for term in terms]
        for number in range(len(terms) - 1):
            joined = terms[number].options[0] + terms[number + 1].options[0]
            if joined in self._postings:
                for words in meant[number : number + 2]:
                    words[joined] = max(words.get(joined, 0.0), self._weights.compound)
        return meant

    def _variants(self, options: Sequence[str]) -> dict[str, float]:
        found: dict[str, float] = {}
        for word in options:
            known = word in self._cores
            counts = self._weights.known_synonym if known else self._weights.synonym
            here = {other: counts for other in synonyms(word) if other in self._postings}
            if not known and self._cores.keys().isdisjoint(here):
                here = {one: self._weights.association for one in associations(word) if one in self._postings} | here
            if word in self._postings:
                here[word] = 1.0
                here = self._learned(word) | here
            elif not here:
                here = self._misspelt(word)
            for other, factor in here.items():
                found[other] = max(found.get(other, 0.0), factor)
        return found

    def _learned(self, word: str) -> dict[str, float]:
        """Return the subjects of a word that no name or path contains.

        A subject is in the name or path of most tools that contain the word, and of few other tools.
        """
        having = self._postings[word]
        if word in self._cores or not 2 <= len(having) <= _COMMON * len(self._traits):
            return {}
        together = Counter(other for number in having for other in self._traits[number].core)
        return {
            other: self._weights.learned * support
            for other, count in together.items()
            if (support := count / len(having)) >= _SUPPORT
            and support * len(self._traits) >= _LIFT * self._cores[other]
            and other not in VERBS
        }

    def _misspelt(self, word: str) -> dict[str, float]:
        if not (_SHORTEST <= len(word) <= _LONGEST and word.isascii()):
            return {}
        most = 1 if len(word) < _LONG else 2
        return {
            other: self._weights.misspelt
            for other in self._postings
            if other[0] == word[0] and abs(len(other) - len(word)) <= most and _is_near(word, other, most)
        }

    # -- weights ----------------------------------------------------------------------------------------------------

    def _matches(self, words: Mapping[str, float], pronoun: bool) -> dict[int, tuple[float, float, str]]:
        found: dict[int, tuple[float, float, str]] = {}
        for word, factor in words.items():
            rarity = factor * self._rarities[word]
            for number, weight in self._postings[word].items():
                score = rarity * weight / (self._weights.saturation + weight)
                if (number not in found or score > found[number][0]) and (
                    not pronoun or word in self._traits[number].core
                ):
                    found[number] = (score, factor, word)
        return found

    def _worth(self, word: str) -> float:
        """Return the mean of a word's rarity in all fields and of the rarity in names, titles and last resources."""
        anywhere = self._rarity_of(len(self._postings[word]))
        heads = self._heads[word]
        return (anywhere + self._rarity_of(heads)) / 2 if heads else anywhere

    def _rarity_of(self, having: int) -> float:
        return math.log(1 + (len(self._traits) - having + 0.5) / (having + 0.5))

    def _factor(self, number: int, coverage: float, asked: SearchQuestion, words: Mapping[str, float]) -> float:
        traits, weights = self._traits[number], self._weights
        factor = (1 - weights.coverage + weights.coverage * coverage) * (
            1 - weights.fit + weights.fit * self._fit(number, words)
        )
        if asked.methods:
            factor *= weights.method if traits.methods & asked.methods else weights.other_method
        if "GET" in traits.methods and (not asked.methods or "GET" in asked.methods) and asked.many == traits.lists:
            factor *= weights.amount
        if traits.leaf and words.keys() >= traits.leaf:
            factor *= weights.leaf
        if traits.deprecated:
            factor *= weights.deprecated
        return factor

    def _fit(self, number: int, words: Mapping[str, float]) -> float:
        whole = self._core_worths[number]
        met = words.keys() & self._traits[number].core
        return sum(self._rarities[word] * words[word] for word in met) / whole if whole else 0.0


class _Hits:
    def __init__(self, again: float) -> None:
        self.scores: dict[int, float] = {}
        self.whole = 0.0
        self._again = again
        self._shares: dict[int, float] = {}
        self._used: dict[tuple[int, str], tuple[float, float]] = {}

    def add(self, number: int, word: str, score: float, share: float) -> None:
        """Add a match. A word of the tool that has already matched another term counts less."""
        before = self._used.get((number, word), (0.0, 0.0))
        again = self._again if before != (0.0, 0.0) else 1.0
        self._used[number, word] = (max(score, before[0]), max(share, before[1]))
        self.scores[number] = self.scores.get(number, 0.0) + _gain(score, before[0], again)
        self._shares[number] = self._shares.get(number, 0.0) + _gain(share, before[1], again)

    def coverage(self, number: int) -> float:
        return self._shares[number] / self.whole if self.whole else 0.0


def _gain(value: float, before: float, again: float) -> float:
    """Return the increase over an earlier match, plus the rest of the value times `again`."""
    return max(value - before, 0.0) * (1 - again) + value * again


def _without_method(words: list[str]) -> list[str]:
    """Remove an HTTP method before the verb of a name, as in `post_terminate_instances`."""
    return words[1:] if len(words) > 1 and words[0] in _METHODS and words[1] in VERBS else words


def _methods(entry: IndexedTool, name: Sequence[str]) -> frozenset[str]:
    reads = entry.reads if entry.reads is not None else entry.method in _SAFE
    if reads:
        return _READING
    if entry.method not in {"POST", "GET", ""}:
        return frozenset([entry.method])
    verb = next((methods for word in name if (methods := suggested_http_methods(word))), frozenset())
    return verb - _READING or frozenset(["POST"])


def _lists(entry: IndexedTool, name: Sequence[str]) -> bool:
    if "list" in name:
        return True
    verb = next((word for word in name if word in VERBS), "")
    return not entry.path.rstrip("/").endswith("}") and verb not in _ONE


def _word_weights(
    entry: IndexedTool, name: Sequence[str], title: Sequence[str], path: Sequence[str]
) -> dict[str, float]:
    weights: dict[str, float] = {}
    for field, words in (
        ("name", name),
        ("title", title),
        ("path", path),
        ("group", _name_words(entry.group)),
        ("description", text_words(entry.description[:_DESCRIPTION])),
        ("arguments", [word for one in entry.arguments for word in _name_words(one)]),
        ("values", [word for one in entry.values for word in _name_words(one)]),
        ("details", [word for one in entry.details for word in _detail_words(one)]),
    ):
        weight, usual, discount = _FIELDS[field]
        each = weight / (1 - discount + discount * len(words) / usual)
        for word in words:
            weights[word] = weights.get(word, 0.0) + each
    return weights


@lru_cache(maxsize=4_096)
def _detail_words(detail: str) -> tuple[str, ...]:
    return tuple(text_words(detail))


@lru_cache(maxsize=4_096)
def _name_words(name: str) -> tuple[str, ...]:
    return tuple(identifier_words(name))


_SHORTEST: Final = 5  # letters; shorter words are not corrected
_LONGEST: Final = 24  # letters; longer words are not corrected
_LONG: Final = 8  # letters; a word of at least this length may contain two typing errors


def _is_near(one: str, other: str, most: int) -> bool:
    """Return True if the words differ by at most `most` omitted, inserted, changed or swapped letters."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, left in enumerate(one, 1):
        now = [row]
        for column, right in enumerate(other, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (left != right))
            if row > 1 and column > 1 and left == other[column - 2] and one[row - 2] == right:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        if min(now) > most:
            return False
        before, last = last, now
    return last[-1] <= most
