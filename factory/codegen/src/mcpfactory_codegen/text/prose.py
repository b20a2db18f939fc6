"""Text of a document as a model or a reader should see it: plain, short, and without characters that hide something.

Markdown and HTML of API documents are reduced to sentences. Whole sentences are kept while they fit; the first ones
say what a thing is, and those that state a constraint are kept before others (`fit`).
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["clean", "fit", "one_line", "plain"]

_READ: Final = 20_000
"""Characters of one text that are looked at: twenty times what is shown, for some patterns below are slow on long texts."""
_FENCE: Final = re.compile(r"```.*?(```|\Z)", re.S)
_COMMENT: Final = re.compile(r"<!--.*?(-->|\Z)", re.S)
_IMAGE: Final = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_LINK: Final = re.compile(r"\[([^\]\n]+)\](?:\([^)\n]*\)|\[[^\]\n]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>\n]*)?/?>")
_MARKS: Final = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>+[ \t]?|[-*_]{3,}[ \t]*$)", re.M)
_SOFT: Final = re.compile(r"(?<![\w*_`])([*_])(?=[^\s*_])([^*_\n]+?)(?<=\S)\1(?![\w*_`])")
_BOLD: Final = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`*(\"'-])|\n+")
_CONSTRAINT: Final = re.compile(
    r"\b(must|required?|requires|only|cannot|can't|may not|not allowed|at least|at most|maximum|minimum|max|min|"
    r"default|defaults|up to|between|limit|valid|format|deprecated|comma|one of|iso.?8601|utc|permission|scope)\b",
    re.I,
)
_ELSEWHERE: Final = re.compile(
    r"(for (more|further) (details|information)|to learn more|learn more|read more|see (also )?\W)", re.I
)
_ENTITIES: Final = {"&nbsp;": " ", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&"}


def clean(text: str) -> str:
    """Return the text without control, format (bidirectional, zero-width) and surrogate characters; newlines and tabs stay."""
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():  # most texts: nothing of the kind is in them
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _HIDDEN)


_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def plain(text: str) -> str:
    """Markdown and HTML to plain text; paragraphs stay apart by one newline."""
    text = clean(text[:_READ])
    if "<" in text or "[" in text or "`" in text or "*" in text or "_" in text or "&" in text:
        for pattern, by in (
            (_FENCE, " "),
            (_COMMENT, " "),
            (_IMAGE, ""),
            (_LINK, r"\1"),
            (_TAG, " "),
            (_BOLD, r"\2"),
            (_SOFT, r"\2"),
        ):
            text = pattern.sub(by, text)
        for entity, character in _ENTITIES.items():
            text = text.replace(entity, character)
    text = _MARKS.sub("", text)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def fit(text: str, limit: int) -> str:
    """Plain text of at most `limit` characters: first sentences, and later ones as far as they state a constraint."""
    text = plain(text)
    if len(text) <= limit:
        return text
    sentences = [part for part in _SENTENCE.split(text) if part]
    chosen: set[int] = set()
    used = 0
    by_worth = sorted(range(len(sentences)), key=lambda i: (i > 0, _worth(sentences[i]), i))
    for i in by_worth:
        if used + len(sentences[i]) + 1 <= limit - 2:
            chosen.add(i)
            used += len(sentences[i]) + 1
    if not chosen:
        return text[: limit - 1].rsplit(" ", 1)[0][: limit - 1].rstrip(" ,;:") + "…"
    return " ".join(sentences[i] for i in sorted(chosen)) + " …"


def _worth(sentence: str) -> int:
    """0 for a constraint, 2 for what only points elsewhere, 1 for the rest."""
    if _ELSEWHERE.match(sentence):
        return 2
    return 0 if _CONSTRAINT.search(sentence) else 1


def one_line(text: str, limit: int) -> str:
    """`fit` on a single line."""
    return " ".join(fit(text, limit).split())
