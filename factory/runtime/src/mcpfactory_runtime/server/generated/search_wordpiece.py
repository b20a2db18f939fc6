"""Text as pieces of words, the way of the BERT family: words and signs first, then the longest pieces that the vocabulary has."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final

__all__ = ["WordPiece"]

_LONGEST: Final = 100  # letters of a word that is cut; a longer one is unknown
_CJK: Final = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))


class WordPiece:
    """Cuts text by one vocabulary."""

    def __init__(self, vocabulary: Mapping[str, int], *, lowercase: bool) -> None:
        self._vocabulary = vocabulary
        self._lowercase = lowercase
        self._unknown = vocabulary["[UNK]"]
        self._begin, self._end = vocabulary["[CLS]"], vocabulary["[SEP]"]

    def numbers(self, text: str, most: int) -> list[int]:
        """Return at most so many numbers of pieces, those of beginning and end among them."""
        found: list[int] = []
        for word in _words(self._normal(text)):
            found += self._pieces(word)
            if len(found) >= most - 2:
                break
        return [self._begin, *found[: most - 2], self._end]

    def _normal(self, text: str) -> str:
        if not self._lowercase:
            return text
        return "".join(
            sign for sign in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(sign) != "Mn"
        )

    def _pieces(self, word: str) -> list[int]:
        if len(word) > _LONGEST:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            lead = "##" if start else ""
            end = next((end for end in range(len(word), start, -1) if lead + word[start:end] in self._vocabulary), 0)
            if not end:
                return [self._unknown]
            found.append(self._vocabulary[lead + word[start:end]])
            start = end
        return found


def _words(text: str) -> Iterator[str]:
    """Yield words, and each sign that stands for itself."""
    word = ""
    for sign in text:
        alone = _stands_alone(sign)
        if not alone and not sign.isspace():
            word += "" if sign == "\ufffd" or unicodedata.category(sign).startswith("C") else sign
            continue
        if word:
            yield word
        word = ""
        if alone:
            yield sign
    if word:
        yield word


def _stands_alone(sign: str) -> bool:
    if sign.isascii():
        return sign.isprintable() and not sign.isalnum() and sign != " "
    code = ord(sign)
    return unicodedata.category(sign).startswith("P") or any(first <= code <= last for first, last in _CJK)
