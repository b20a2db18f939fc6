"""A small index over tools: which fit a question best. Pure Python and no model; a thousand tools are indexed in tens of milliseconds.

BM25F (Robertson and Zaragoza, 2009, section 3.4): a word counts more in a name than in a description, and less the more tools
have it. What is added for APIs: words that mean alike count for each other at a discount; tools that have more of the
question's words win over those that have one of them often; so do tools whose name and path have nothing beside them
(`list_invoices` over `list_invoice_lines`); and the method that the question's verb suggests is preferred.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_runtime.server.generated.search_words import (
    SELF,
    VERB_METHODS,
    VERBS,
    identifier_words,
    question_words,
    synonyms,
    text_words,
)

__all__ = ["IndexedTool", "SearchIndex"]

Json = dict[str, Any]

# field → (weight, usual number of words, how much longer fields are discounted)
_FIELDS: Final[dict[str, tuple[float, float, float]]] = {
    "name": (2.0, 4, 0.4),
    "title": (2.0, 6, 0.5),
    "path": (0.8, 4, 0.4),
    "group": (1.0, 1, 0.0),
    "description": (1.3, 40, 0.6),
    "arguments": (0.3, 8, 0.7),
}
_SATURATION: Final = 2.0  # k1 of BM25
_SYNONYM: Final = 0.8  # what a word counts that only means alike
_METHOD_MATCH: Final = 1.5  # factor for the method that the question suggests
_COVERAGE: Final = 0.7  # how much it matters which part of the question's words a tool has
_VERB: Final = 0.6  # how much verbs count that many tools share, beside nouns
_SELF: Final = 0.4  # how much "my" counts
_FIT: Final = 0.8  # how much it matters which part of a tool's name and path the question has
_DESCRIPTION: Final = 500  # characters that are indexed: what follows is detail
_VARIABLE: Final = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class IndexedTool:
    """What is indexed of one tool."""

    name: str
    title: str = ""
    description: str = ""
    operation: str = ""
    group: str = ""
    arguments: tuple[str, ...] = ()

    @property
    def method(self) -> str:
        """The operation's method, "" when it is not known."""
        return self.operation.partition(" ")[0]


class SearchIndex:
    """Finds entries by their number."""

    def __init__(self, entries: Iterable[IndexedTool]) -> None:
        self._methods: list[str] = []
        self._cores: list[frozenset[str]] = []
        self._postings: dict[str, dict[int, float]] = {}
        for number, entry in enumerate(entries):
            self._methods.append(entry.method)
            path = identifier_words(_VARIABLE.sub("", entry.operation.partition(" ")[2]))
            name = identifier_words(entry.name)
            self._cores.append(frozenset([*name, *path]))
            for word, weight in _weights(entry, name, path).items():
                self._postings.setdefault(word, {})[number] = weight

    def search(self, question: str, limit: int, within: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return the best entries with their scores, best first; `within` narrows which may be found."""
        words = dict.fromkeys(question_words(question))
        total: dict[int, float] = {}
        matched: dict[int, float] = {}
        whole = 0.0
        term_weights: dict[str, float] = {}
        for word in words:
            for other in synonyms(word):
                term_weights.setdefault(other, _SYNONYM)
            emphasis = _VERB if word in VERBS else _SELF if word == SELF else 1.0
            found, term_worth = self._scores(word)
            whole += term_worth * emphasis
            for number, (score, share) in found.items():
                total[number] = total.get(number, 0.0) + score * emphasis
                matched[number] = matched.get(number, 0.0) + share * term_worth * emphasis
        term_weights.update(dict.fromkeys(words, 1.0))
        methods = _methods(question)
        for number in total:
            covered = matched[number] / whole if whole else 0.0
            total[number] *= (1 - _COVERAGE + _COVERAGE * covered) * (1 - _FIT + _FIT * self._fit(number, term_weights))
            if self._methods[number] in methods:
                total[number] *= _METHOD_MATCH
        chosen = total if within is None else {number: total[number] for number in within if number in total}
        return sorted(chosen.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]

    def _fit(self, number: int, term_weights: dict[str, float]) -> float:
        """Return what part of a tool's name and path the question has, rare words counting more."""
        has = all_ = 0.0
        for word in self._cores[number]:
            rarity = self._rarity(word)
            all_ += rarity
            has += rarity * term_weights.get(word, 0.0)
        return has / all_ if all_ else 0.0

    def _rarity(self, word: str) -> float:
        having = len(self._postings[word])
        return math.log(1 + (len(self._methods) - having + 0.5) / (having + 0.5))

    def _scores(self, word: str) -> tuple[dict[int, tuple[float, float]], float]:
        """Each entry's score for one word of the question and what part of it was met; and what the word is worth."""
        found: dict[int, tuple[float, float]] = {}
        term_worth = 0.0
        for other, factor in [(word, 1.0), *((one, _SYNONYM) for one in synonyms(word))]:
            postings = self._postings.get(other)
            if not postings:
                continue
            rarity = self._rarity(other)
            term_worth = max(term_worth, rarity * factor)
            for number, weight in postings.items():
                score = factor * rarity * weight / (_SATURATION + weight)
                if number not in found or score > found[number][0]:
                    found[number] = (score, factor)
        return found, term_worth


def _methods(question: str) -> frozenset[str]:
    """Return the methods that the first telling word of a question suggests."""
    for word in question.lower().split()[:3]:
        if (methods := VERB_METHODS.get(word.strip("?.,!'\""))) is not None:
            return methods
    return frozenset()


def _weights(entry: IndexedTool, name: list[str], path: list[str]) -> dict[str, float]:
    """How much each word counts in an entry, all fields together."""
    weights: dict[str, float] = {}
    for field, words in (
        ("name", name),
        ("title", text_words(entry.title)),
        ("path", path),
        ("group", identifier_words(entry.group)),
        ("description", text_words(entry.description[:_DESCRIPTION])),
        ("arguments", [word for name in entry.arguments for word in identifier_words(name)]),
    ):
        weight, usual, discount = _FIELDS[field]
        each = weight / (1 - discount + discount * len(words) / usual)
        for word in words:
            weights[word] = weights.get(word, 0.0) + each
    return weights
