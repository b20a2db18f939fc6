"""Names that are too long for a tool: which of their words can go, and what stays to tell them from their siblings.

A word tells the more, the fewer names of the API have it: `projects` and `locations` tell nothing where every
operation has them. In this order, as far as needed:

1. words that most operations of the API have
2. a phrase that is there twice stays once
3. an ending that restates what was said: `… for enterprise`
4. long words with a usual short form take it: `configuration` is `config`
5. articles and prepositions
6. words that are there twice
7. the commonest words that are left, but no verb, and not the last noun

What went is put back where room is left, the most telling first. What `kept` names goes last: the words that
tell an operation from those that would have the same name. Only what is too long even then is cut, and gets a digest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcpfactory_codegen.naming.verbs import VERBS
from mcpfactory_codegen.text import shorten, singular

__all__ = ["USUAL", "Commonness", "shortened"]


USUAL: Final = {
    "administration": "admin", "administrator": "admin", "application": "app", "attribute": "attr",
    "authentication": "auth", "certificate": "cert", "configuration": "config", "database": "db",
    "description": "desc", "development": "dev", "directory": "dir", "document": "doc",
    "documentation": "docs", "environment": "env", "identifier": "id", "identity": "id", "information": "info",
    "kubernetes": "k8s", "maximum": "max", "message": "msg", "minimum": "min", "network": "net",
    "organization": "org", "organisation": "org", "parameter": "param", "permission": "perm", "production": "prod",
    "reference": "ref", "relationship": "rel", "repository": "repo", "specification": "spec", "statistic": "stat",
    "subscription": "sub", "synchronization": "sync", "temporary": "temp", "transaction": "tx",
}  # fmt: skip
"""Long words and the short forms that everybody knows."""
_ARTICLES: Final = frozenset({"a", "an", "the", "of"})
_PREPOSITIONS: Final = frozenset({"for", "in", "to", "from", "with", "on", "at", "and", "by", "via"})
_RESTATING: Final = frozenset({"for", "in", "of", "by"})
_LONG: Final = 5  # characters of a word that is not cut
_STEM: Final = 3
_DIRECTIONS: Final = frozenset({"to", "from"})
_ABOUT: Final = 2  # words before the last, of which no direction goes: `get from term` and `get to term`
_ENOUGH: Final = 8
"""Operations from which on it says something that half of them have a word."""


@dataclass(frozen=True, slots=True)
class Commonness:
    """How many operations of an API have a word; `total` of them there are."""

    counts: Counter[str]
    total: int

    @classmethod
    def of(cls, names: Iterable[Sequence[str]]) -> Commonness:
        """Count each word once a name, in the singular."""
        every = list(names)
        return cls(Counter(word for name in every for word in {singular(word) for word in name}), len(every))

    def everywhere(self, word: str) -> bool:
        """Whether at least half of the operations have the word, and there are enough of them."""
        return self.total >= _ENOUGH and 2 * self.counts[singular(word)] >= self.total

    def rarity(self, word: str) -> int:
        """Return a number that is the larger, the fewer operations have the word."""
        return -self.counts[singular(word)]


def shortened(
    parts: Sequence[str],
    limit: int,
    key: str,
    common: Commonness,
    kept: Collection[str] = frozenset(),
    *,
    dense: bool = False,
) -> str:
    """Join words by `_` within `limit` characters; `key` is what the digest is of, where there is no other way.

    `dense` cuts long words, so that more of them have room: for names that cannot be told apart by their whole words.
    """
    whole = "_".join(parts)
    if len(whole) <= limit:
        return whole
    middle = limit // 2  # more words than characters: what is in between would go in any case
    words = [*parts[:middle], *parts[-middle:]] if len(parts) > limit else list(parts)
    work = _Cut(words, limit, common, frozenset(kept))
    for step in (
        *((work.stems,) if dense else ()),
        work.everywhere,
        work.phrases,
        work.restated,
        work.abbreviate,
        work.little,
        work.repeated,
        work.commonest,
    ):
        step()
        if work.fits():
            work.put_back()
            return work.name()
    return shorten(work.left(), limit, key)


def _usual(word: str) -> str:
    if word in USUAL:
        return USUAL[word]
    short = USUAL.get(singular(word), "")
    return short + "s" if short and not short.endswith("s") else short


def _stem(word: str) -> str:
    """Return the beginning of a long word, up to a consonant: `calendar` is `cal`, `properties` is `prop`."""
    short = _usual(word)
    if short or len(word) <= _LONG:
        return short or word
    stem = re.match(r"[^aeiouy]*[aeiouy]+[^aeiouy]+(?=[aeiouy]|\Z)", word)
    found = stem.group() if stem and len(stem.group()) >= _STEM else word[:_LONG]
    return found.rstrip("aeiouy") or word[:_LONG]


class _Cut:
    """The words of one name, and which of them are left out."""

    __slots__ = ("common", "kept", "limit", "out", "parts", "shown")

    def __init__(self, parts: list[str], limit: int, common: Commonness, kept: frozenset[str]) -> None:
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
        """Leave a phrase of two words or more out where it is there again; behind `by` and `for` it is the later that goes."""
        ones = [singular(word) for word in self.parts]
        for length in range(len(self.parts) // 2, 1, -1):
            for first in range(len(self.parts) - length):
                for again in range(first + length, len(self.parts) - length + 1):
                    if ones[first] == ones[again] and self._same(first, again, length) and not self.fits():
                        later = self.parts[again - 1] in _PREPOSITIONS
                        self._drop(range(again, again + length) if later else range(first, first + length))

    def everywhere(self) -> None:
        """Leave out what most operations have, from the front, as that is where their names begin alike."""
        service = [0] if not VERBS.isdisjoint(self.parts[1:]) and self.parts[0] not in self.kept else []
        every = dict.fromkeys([*service, *self._droppable()])
        self._drop_until_it_fits([index for index in every if self.common.everywhere(self.parts[index])])

    def abbreviate(self) -> None:
        """Give long words their usual short forms, in the plural, too; those first that save most."""
        self._show({word: short for word in self.left() if (short := _usual(word))})

    def stems(self) -> None:
        """Cut long words that are no verbs, those first that save most."""
        self._show({word: _stem(word) for word in self.parts if word not in VERBS})

    def _show(self, short: Mapping[str, str]) -> None:
        for word in sorted(short, key=lambda word: (len(short[word]) - len(word), word)):
            if self.fits():
                return
            self.shown = [short[word] if shown == word else shown for shown in self.shown]

    def restated(self) -> None:
        """Leave out an ending that only says again what was said: `… for enterprise` of `enterprise_admin_…`."""
        said = {singular(word) for word in self.parts[:-2]}
        if (
            len(self.parts) > 3
            and self.parts[-1] not in self.kept
            and self.parts[-2] in _RESTATING
            and singular(self.parts[-1]) in said
        ):
            self._drop([len(self.parts) - 2, len(self.parts) - 1])

    def little(self) -> None:
        """Leave out articles, then prepositions."""
        inner = range(1, len(self.parts) - 1)
        telling = [index for index in inner[-_ABOUT:] if self.parts[index] in _DIRECTIONS]
        for group in (_ARTICLES, _PREPOSITIONS):
            little = [index for index in inner if self.parts[index] in group - self.kept and index not in telling]
            self._drop_until_it_fits(little)

    def repeated(self) -> None:
        """Leave a word out that comes again."""
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
        """Leave out what most others have, too; kept words and verbs only when nothing else is left."""
        order = sorted(self._droppable(), key=lambda index: (self.common.rarity(self.parts[index]), index))
        self._drop_until_it_fits(order)
        if not self.fits():
            spared = [index for index in range(len(self.parts) - 1) if index not in self.out]
            spared.sort(
                key=lambda index: (self.parts[index] in self.kept, self.common.rarity(self.parts[index]), index)
            )
            self._drop_until_it_fits(spared[: max(0, len(spared) - 1)])

    def put_back(self) -> None:
        """Put words back that fit, the most telling first."""
        for index in sorted(self.out, key=lambda index: (-self.common.rarity(self.parts[index]), index)):
            word = self.parts[index]
            there = {singular(self.parts[other]) for other in range(len(self.parts)) if other not in self.out}
            if word in _ARTICLES | _PREPOSITIONS or singular(word) in there:
                continue
            if len(self.name()) + 1 + len(self.shown[index]) <= self.limit:
                self.out.remove(index)

    def _droppable(self) -> list[int]:
        """Return where words are that may go: no verbs, none that are kept, and not the two last, which say what it is about."""
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

    def _drop(self, indexes: Iterable[int]) -> None:
        self.out += [index for index in indexes if index not in self.out]

    def _same(self, first: int, again: int, length: int) -> bool:
        pairs = zip(range(first, first + length), range(again, again + length), strict=True)
        return all(
            not {one, two} & {*self.out}
            and self.parts[one] not in self.kept
            and singular(self.parts[one]) == singular(self.parts[two])
            for one, two in pairs
        )
