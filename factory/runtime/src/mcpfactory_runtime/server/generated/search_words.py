"""Processing of words in tools and questions: tokens, stems, synonyms.

The tables are in `search_words.txt`. Add only rows that help with many APIs, because the index learns the words of a
single API from the API's descriptions. A row of `[relations]` has one of these forms:

- `a b c`: each word may mean any other word of the row.
- `a b > c d`: a or b in a question may mean the API terms c or d, but c does not mean a.
- `a b >> c d`: like `>` for more distant terms, with a lower weight.

English words lose their endings. Words of other languages stay unchanged. Text in a script without spaces is split into
pairs of characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final


def _sections() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for row in Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines():
        if row.startswith("["):
            sections[row.strip("[]")] = rows = []
        elif row and not row.startswith("#"):
            rows.append(row)
    return sections


_SECTIONS: Final = _sections()


def _rows(table: str, sign: str) -> Iterator[tuple[str, str, str]]:
    return (row.partition(sign) for row in _SECTIONS[table])


STOP_WORDS: Final = frozenset(" ".join(_SECTIONS["stop-words"]).split())
METHODS: Final[dict[str, frozenset[str]]] = {
    word: frozenset(methods.split()) for methods, _, words in _rows("methods", ":") for word in words.split()
}
"""Maps a word of a question to the HTTP methods that the word suggests."""
PHRASES: Final[dict[str, str]] = {
    phrase.strip(): meant.strip() for phrases, _, meant in _rows("phrases", ">") for phrase in phrases.split("|")
}
"""Maps a phrase to words with the meaning of the phrase."""

SELF: Final = "me"
"""Word that represents "my", "I" and similar pronouns of a question."""

_IDENTIFIER: Final = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_TEXT: Final = re.compile(r"[^\W\d_]+|\d+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST: Final = 40  # letters; a longer string is not a word

_IRREGULAR: Final = {form: word for word, _, forms in _rows("irregular", ":") for form in forms.split()}
_WHOLE: Final = frozenset(" ".join(_SECTIONS["whole"]).split())

_ENDINGS: Final = [(ending.strip(), instead.strip()) for ending, _, instead in _rows("endings", ">")]
_VOWEL: Final = re.compile(r"[aeiouy]")


def tokenize(text: str) -> list[str]:
    """Return the words of a text in lower case."""
    return _TEXT.findall(text.lower())


def identifier_words(text: str) -> list[str]:
    """Return the words of a name or path, such as `listUserRepos` or `/users/{user_id}`."""
    return [form for word in _IDENTIFIER.findall(text) for form in forms(word.lower())]


def text_words(text: str) -> list[str]:
    """Return the search forms of the words of a text, without stop words."""
    return [form for word in tokenize(text) if word not in STOP_WORDS for form in forms(word)]


@lru_cache(maxsize=16_384)
def forms(word: str) -> tuple[str, ...]:
    """Return a word's stem, or pairs of characters for a script without spaces."""
    if word.isascii() or not _UNSPACED.search(word):
        return (stem(word),)
    return tuple(word[at : at + 2] for at in range(max(1, min(len(word), _LONGEST) - 1)))


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return the stem of an English word: `merge`, `merged`, `merging` and `merges` give `merg`."""
    word = _IRREGULAR.get(word[:_LONGEST], word[:_LONGEST])
    if len(word) < 4 or word in _WHOLE or word.endswith(("ss", "us", "is")) or not word.isascii():
        return word
    if word.endswith("es") and word[:-2] in _WHOLE:
        return word[:-2]
    if word.endswith("s") and word[:-1] in _WHOLE:
        return word[:-1]
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            root = word[: -len(ending)]
            if len(root) < (4 if ending == "ment" and root != "pay" else 3) or not _VOWEL.search(root):
                continue
            word = root + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and (word[-1] not in "ls" or (word[-1] == "l" and len(word) > 5)):
        word = word[:-1]  # "runn" (from "running") becomes "run"; "call", "bill" and "pass" stay unchanged
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_MINE: Final = re.compile(r"\b(?:my|mine|myself|i am|i have|i get|am i)\b")
_PHRASE: Final = re.compile(r"\b(?:" + "|".join(sorted(map(re.escape, PHRASES), key=len, reverse=True)) + r")\b")
_OPTION: Final = "\1"  # prefix of each word that a phrase may mean
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
"""Pattern of statements such as `the server key was leaked`.

The verb of a statement does not name the wanted action.
"""

_CLAUSE: Final = re.compile(r"[,;:.!?]\s+")

_PARTED: Final = [
    (re.compile(rf"\b{pattern.strip()}\b"), instead.strip()) for pattern, _, instead in _rows("parted", ">")
]

_ASIDES: Final = {
    word: distance
    for distance, words in (
        (1, "of in on from to with by at into"),
        (2, "for so before after until because that which who but without when if than instead"),
    )
    for word in words.split()
}
"""`Term.distance` of a part of a question, by the part's first word."""

_ASKER: Final = 3  # `Term.distance` of "user" and "member", which are added to a question with "who"
_ASKERS: Final = frozenset({"who", "whose", "whom"})
_FIRST_WORDS: Final = 3  # maximum position of the verb in a question


@dataclass(frozen=True, slots=True)
class Term:
    """One subject of a question.

    Attributes:
        options: stems that the term may mean.
        distance: distance from the main clause: 0 in the clause, 1 after a preposition, 2 in a reason or condition, 3
            for words that "who" implies.
        leads: True for a verb at the beginning of the question.
    """

    options: tuple[str, ...]
    distance: int
    leads: bool


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A parsed search question.

    Attributes:
        terms: the question's subjects.
        methods: HTTP methods that the question's verb suggests, or an empty set.
        many: True if the question asks for several things.
    """

    terms: tuple[Term, ...]
    methods: frozenset[str]
    many: bool


def parse_search_question(text: str) -> SearchQuestion:
    """Parse a search question."""
    normalized = " ".join(tokenize(text))
    verbs = _verbs(text, normalized)
    terms = _terms(_join_separable_verbs(normalized), mine=_MINE.search(normalized) is not None)
    stems = {option for term in terms for option in term.options}
    many = " all " in f" {normalized} " or any(_is_plural(word) and stem(word) in stems for word in normalized.split())
    if any(word in _ASKERS for word in normalized.split()[:2]):
        terms = (*terms, Term((stem("user"), stem("member")), _ASKER, leads=False))
    reads = normalized.partition(" ")[0] in _ASKERS
    return SearchQuestion(terms, METHODS["list"] if reads else _methods(verbs), many)


def suggested_http_methods(word: str) -> frozenset[str]:
    """Return the HTTP methods that a verb's stem suggests, or an empty set."""
    return _VERB_METHODS.get(word, frozenset())


def synonyms(word: str) -> frozenset[str]:
    """Return the stems of closely related words."""
    return _tables()[0].get(word, frozenset())


def associations(word: str) -> frozenset[str]:
    """Return the stems of words that are only distantly related."""
    return _tables()[1].get(word, frozenset())


def _join_separable_verbs(normalized: str) -> str:
    for pattern, instead in _PARTED:
        normalized = pattern.sub(instead, normalized)
    return normalized


def _options(normalized: str) -> str:
    """Replace each phrase of a question with a token that lists the phrase's meanings."""
    return _PHRASE.sub(lambda found: _OPTION + PHRASES[found[0]].replace(" ", _OPTION), normalized)


def _terms(normalized: str, *, mine: bool) -> tuple[Term, ...]:
    distances: dict[tuple[str, ...], int] = {}
    distance = 0
    for word in _options(normalized).split(" "):
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
    for word in words[:_FIRST_WORDS]:
        options = [METHODS[option] for option in word.strip(_OPTION).split(_OPTION) if option in METHODS]
        if options:
            return frozenset().union(*options)
        if _is_plural(word):
            return METHODS["list"]
    return frozenset()


def _verbs(text: str, normalized: str) -> list[str]:
    """Return the words of the clause that names the wanted action.

    After a statement, use the last clause, as in "my card was stolen, block it".
    """
    request = normalized
    if _STATEMENT.match(normalized):
        request = " ".join(tokenize(_CLAUSE.split(text.strip())[-1]))
        if request == normalized or _STATEMENT.match(request):
            return []
    return _options(_join_separable_verbs(_LEAD.sub("", request + " "))).split()


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


# If several words have the same stem, `reversed` makes the first word win.
_VERB_METHODS: Final = {stem(word): methods for word, methods in reversed(METHODS.items())}
VERBS: Final = frozenset(_VERB_METHODS)


@lru_cache(maxsize=1)
def _tables() -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    tables: tuple[dict[str, set[str]], dict[str, set[str]]] = ({}, {})
    for words, arrow, meant in _rows("relations", ">"):
        stems = [stem(word) for word in words.split()]
        others = [stem(word) for word in meant.lstrip(">").split()] if arrow else stems
        for word in stems:
            tables[meant.startswith(">")].setdefault(word, set()).update(other for other in others if other != word)
    near, far_off = ({word: frozenset(others) for word, others in table.items()} for table in tables)
    return near, far_off
