"""What a question asks for: its words with what a phrase means in their place, whether it reads or writes, whether it wants one or many.

Everything here is about questions in general; which tools there are is not known yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from mcpfactory_runtime.server.generated.search_thesaurus import METHODS, PHRASES, STOP_WORDS, relations
from mcpfactory_runtime.server.generated.search_words import SELF, cut, forms, stem

__all__ = ["VERBS", "SearchQuestion", "Term", "methods_of", "read_question", "synonyms"]

_MINE: Final = re.compile(r"\b(?:my|mine|myself|i am|i have|i get|am i)\b")
_PHRASE: Final = re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, PHRASES), key=len, reverse=True)) + r")\b")
_OPTION: Final = "\1"  # stands between the words that a phrase may mean, and before the first
_LEAD: Final = re.compile(
    r"^(?:(?:how (?:can|do|to|could|should|would)(?: i)?|how i can|i (?:want|need|would like|have|like|wish)(?: to)?|please|can you|could you"
    r"|help me|let me|to|that|must) )+"
)
_STATEMENT: Final = re.compile(
    r"(?:an?|the|i|my|our|we|he|she|they|it|this|that|some(?:body|one|thing)|nobody|people|two|one|some) "
    r"(?!want to |need to |would like to |wish to |have to )"
    r"(?:(?!(?:that|which|who|whose|where|when) )\w+ ){0,5}?(?:is|isn|are|aren|was|wasn|were|has|hasn|have|had|does|doesn|don|did|didn|can|cannot|must|should|could|may|will|won|keeps?|needs?"
    r"|says?|went|left|lost|stopped|broke|wants?)\b"
)
"""Something is the case, and no verb at its beginning says what is wanted: `the server key was leaked`."""

_CLAUSE: Final = re.compile(r"[,;:.!?]\s+")

_PARTED: Final = tuple(
    (re.compile(rf"\b{pattern}\b"), instead)
    for pattern, instead in (
        (r"(?:take|throw|get|put) ((?:\w+ ){1,3})(?:out of|off of|off|out)", r"remove \1from"),
        (r"kick ((?:\w+ ){1,3})(?:out of|off of|off|out)", r"kick \1from"),
        (r"bring ((?:\w+ ){1,4})into", r"add \1to"),
        (r"(?:turn|switch|power|shut) ((?:\w+ ){1,4})(?:off|down)", r"disable \1"),
        (r"(?:turn|switch|power) ((?:\w+ ){1,4})on", r"enable \1"),
        (r"(?:bring|get|put|go) ((?:\w+ ){1,4})back", r"restore \1"),
        (r"give ((?:\w+ ){1,4})back", r"refund \1"),
        (r"take ((?:\w+ ){1,3})back", r"revert \1"),
        (r"roll ((?:\w+ ){1,3})back", r"rollback \1"),
        (r"hand ((?:\w+ ){1,3})over", r"assign \1"),
        (r"write ((?:\w+ ){1,3})down", r"create \1"),
        (r"look ((?:\w+ ){1,3})up", r"get \1"),
        (
            r"(?:tell|inform|notify|warn|alert|message|let) (?:\w+ ){1,4}(?:know )?(?:when|whenever|if|as soon as)",
            "create alert notification webhook",
        ),
        (r"(?:have|get) (?:\w+ ){1,4}called (?:when|whenever|if|as soon as)", "create alert notification webhook"),
        (r"(?:be|get) (?:told|informed|notified|warned|alerted|called)", "create alert notification webhook"),
    )
)
"""Verbs whose parts stand apart: `take songs out of a playlist` is about removing."""

_ASIDES: Final = {
    word: distance
    for distance, words in (
        (1, "of in on from to with by at into"),
        (2, "for so before after until because that which who but without when if than instead"),
    )
    for word in words.split()
}
"""Words that a part of the question follows which is less of its point: 1 for what belongs to it, 2 for reasons and conditions."""

_ASKER: Final = 3
_ASKERS: Final = frozenset({"who", "whose", "whom"})
_FIRST_WORDS: Final = 3  # the verb is one of them, or there is none


@dataclass(frozen=True, slots=True)
class Term:
    """One thing that a question is about.

    Attributes:
        options: stems, each of which may be what is meant; the first is the word itself where no phrase stands for it.
        distance: how far it is from the point: 0 in the main clause, 1 after a preposition, 2 in a reason or condition, 3 for a "who".
        leads: it is the first, and a verb.
    """

    options: tuple[str, ...]
    distance: int
    leads: bool


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """What is asked.

    Attributes:
        terms: what it is about.
        methods: of the operations that it suggests; none when no verb tells.
        many: it asks for several things rather than for one.
    """

    terms: tuple[Term, ...]
    methods: frozenset[str]
    many: bool


def read_question(text: str) -> SearchQuestion:
    """Return what a question asks for."""
    said = " ".join(cut(text))
    verbs = _verbs(text, said)
    terms = _terms(_joined(said), mine=_MINE.search(said) is not None)
    stems = {option for term in terms for option in term.options}
    many = " all " in f" {said} " or any(_is_plural(word) and stem(word) in stems for word in said.split())
    if any(word in _ASKERS for word in said.split()[:2]):
        terms = (*terms, Term((stem("user"), stem("member")), _ASKER, leads=False))
    reads = said.partition(" ")[0] in _ASKERS
    return SearchQuestion(terms, METHODS["list"] if reads else _methods(verbs), many)


def methods_of(word: str) -> frozenset[str]:
    """Return the methods that a stem suggests where it is a verb."""
    return _VERB_METHODS.get(word, frozenset())


def synonyms(word: str) -> frozenset[str]:
    """Return the stems that may be meant by this one."""
    return _tables()[0].get(word, frozenset())


def associations(word: str) -> frozenset[str]:
    """Return the stems of what may be spoken of by this one, though they do not mean the same."""
    return _tables()[1].get(word, frozenset())


def _joined(said: str) -> str:
    for pattern, instead in _PARTED:
        said = pattern.sub(instead, said)
    return said


def _options(said: str) -> str:
    """Return what was said with the words that a phrase may mean as one word."""
    return _PHRASE.sub(lambda found: _OPTION + PHRASES[found[0]].replace(" ", _OPTION), said)


def _terms(said: str, *, mine: bool) -> tuple[Term, ...]:
    distances: dict[tuple[str, ...], int] = {}
    distance = 0
    for word in _options(said).split(" "):
        distance = max(distance, _ASIDES.get(word, 0))
        if word.startswith(_OPTION):
            distances.setdefault(tuple(stem(option) for option in word[1:].split(_OPTION)), distance)
        elif word not in STOP_WORDS:
            for form in forms(word):
                distances.setdefault((form,), distance)
    if mine:
        distances.setdefault((SELF,), 0)
    return tuple(
        Term(options, far, leads=not number and options[0] in VERBS)
        for number, (options, far) in enumerate(distances.items())
        if options != ("",)
    )


def _methods(words: list[str]) -> frozenset[str]:
    """Return the methods that the first telling word suggests; a question that begins with several things asks what they are."""
    for word in words[:_FIRST_WORDS]:
        options = [METHODS[option] for option in word.strip(_OPTION).split(_OPTION) if option in METHODS]
        if options:
            return frozenset().union(*options)
        if _is_plural(word):
            return METHODS["list"]
    return frozenset()


def _verbs(text: str, said: str) -> list[str]:
    """Return the words whose verb says what is wanted: of a statement ("my card was stolen, block it") those of what follows it."""
    wish = said
    if _STATEMENT.match(said):
        wish = " ".join(cut(_CLAUSE.split(text.strip())[-1]))
        if wish == said or _STATEMENT.match(wish):
            return []
    return _options(_joined(_LEAD.sub("", wish + " "))).split()


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


def _verb_methods() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for word, methods in METHODS.items():
        table.setdefault(stem(word), methods)
    return table


_VERB_METHODS: Final = _verb_methods()
VERBS: Final = frozenset(_VERB_METHODS)


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """Return what is near to each stem, and what is far."""
    tables: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    for word, other, far in relations(stem):
        tables[far].setdefault(word, set()).add(other)
    near, far_off = ({word: frozenset(others) for word, others in table.items()} for table in tables)
    return near, far_off
