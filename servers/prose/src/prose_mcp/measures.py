"""What a text is made of. Pure functions: the server around them only passes values on."""

from __future__ import annotations

import re

from pydantic import BaseModel

_WORD = re.compile(r"\w+(?:['’-]\w+)*")
_SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)")
WORDS_A_MINUTE = 230


class Measures(BaseModel):
    """Figures of a text."""

    words: int
    sentences: int
    words_per_sentence: float
    longest_sentence: str
    reading_seconds: int


def measure(text: str) -> Measures:
    """Measure a text with at least one word; `reading_seconds` is for silent reading."""
    sentences = [part.strip() for part in _SENTENCE_END.split(text) if _WORD.search(part)]
    counts = [len(_WORD.findall(sentence)) for sentence in sentences]
    words = sum(counts)
    return Measures(
        words=words,
        sentences=len(sentences),
        words_per_sentence=round(words / max(len(sentences), 1), 1),
        longest_sentence=" ".join(sentences[counts.index(max(counts))].split()) if sentences else "",
        reading_seconds=round(words / WORDS_A_MINUTE * 60),
    )


class Comparison(BaseModel):
    """What an edit changed; negative figures mean less than before."""

    words: int
    words_percent: float
    words_per_sentence: float
    reading_seconds: int
    shorter_sentences: bool


def compare(before: str, after: str) -> Comparison:
    """Measure two states of a text, each with at least one word, and subtract."""
    old, new = measure(before), measure(after)
    return Comparison(
        words=new.words - old.words,
        words_percent=round((new.words - old.words) / max(old.words, 1) * 100, 1),
        words_per_sentence=round(new.words_per_sentence - old.words_per_sentence, 1),
        reading_seconds=new.reading_seconds - old.reading_seconds,
        shorter_sentences=new.words_per_sentence < old.words_per_sentence,
    )
