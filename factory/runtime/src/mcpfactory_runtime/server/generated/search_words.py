"""How text is cut into words, and which forms are one word: for names of tools, for descriptions and for questions.

English words lose their endings; words of other languages stay as they are, and a script that is written without spaces is cut into
pairs of signs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from mcpfactory_runtime.server.generated.search_thesaurus import STOP_WORDS

__all__ = ["SELF", "cut", "forms", "identifier_words", "stem", "text_words"]

SELF: Final = "me"
"""Stands for the pronouns of the first person: "my repositories" are found under `/me` and `/user`."""

_IDENTIFIER: Final = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|\d+")
_TEXT: Final = re.compile(r"[^\W\d_]+|\d+")
_UNSPACED: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_LONGEST: Final = 40  # letters of a word; what is longer is none

_IRREGULAR: Final = {
    form: word
    for line in """
    index: indices indexes
    person: people persons
    child: children
    man: men
    woman: women
    run: ran
    send: sent
    pay: paid
    sell: sold
    buy: bought
    make: made
    get: got gotten
    write: wrote written
    tell: told
    say: said
    give: gave given
    take: took taken
    see: saw seen
    hold: held
    keep: kept
    spend: spent
    build: built
    go: went gone
    come: came
    steal: stole stolen
    choose: chose chosen
    lose: lost
    find: found
    leave: left
    begin: began begun
    hear: heard
    speak: spoke spoken
    throw: threw thrown
    freeze: froze frozen
    forget: forgot forgotten
    hide: hid hidden
    choice: choices
    analysis: analyses
    datum: data
    medium: media
    hang: hung
    bring: brought
    delete: deletion deletions
    describe: description
    receive: reception
    subscribe: subscription subscriptions
    """.strip().splitlines()
    for word, _, forms in [line.strip().partition(": ")]
    for form in forms.split()
}
_WHOLE: Final = frozenset(
    re.findall(
        "[a-z]+",
        """alias atlas bias canvas gas lens news series species listing booking setting rating tracking recording always https kubernetes redis ios speed feed seed need
    region version station union million opinion comment moment segment element king thing string spring pants texas""",
    )
)
"""Words whose last letters are no ending."""

_ENDINGS: Final = (
    ("ational", "ate"),
    ("ization", "ize"),
    ("isation", "ize"),
    ("ations", "ate"),
    ("ation", "ate"),
    ("ments", ""),
    ("ment", ""),
    ("ities", "ity"),
    ("ings", ""),
    ("ing", ""),
    ("ions", ""),
    ("ion", ""),
    ("ied", "y"),
    ("ies", "y"),
    ("sses", "ss"),
    ("ed", ""),
    ("es", ""),
    ("s", ""),
    ("e", ""),
)
_VOWEL: Final = re.compile(r"[aeiouy]")


def cut(text: str) -> list[str]:
    """Return the words of a text as they stand, in small letters."""
    return _TEXT.findall(text.lower())


def identifier_words(text: str) -> list[str]:
    """Return the words of a name or path in any spelling: `listUserRepos`, `/users/{user_id}`."""
    return [form for word in _IDENTIFIER.findall(text) for form in forms(word.lower())]


def text_words(text: str) -> list[str]:
    """Return the words of a sentence; those that say nothing are gone."""
    return [form for word in cut(text) if word not in STOP_WORDS for form in forms(word)]


@lru_cache(maxsize=16_384)
def forms(word: str) -> tuple[str, ...]:
    """Return what a word is found by: its stem, or pairs of signs where a script has no spaces."""
    if word.isascii() or not _UNSPACED.search(word):
        return (stem(word),)
    return tuple(word[at : at + 2] for at in range(max(1, min(len(word), _LONGEST) - 1)))


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """Return what forms of one English word have in common: `merge`, `merged`, `merging` and `merges` give `merg`."""
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
        word = word[:-1]  # running, cancelled; but call, bill, pass
    return word[:-1] if word.endswith("e") and len(word) > 3 else word
