"""How a text may be written so that a model still reads it and a search does not find it; each undone. Pure, and linear in the text."""

from __future__ import annotations

import base64
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

__all__ = ["backwards", "fold", "leet", "plain_texts", "rot13", "squeeze"]

# What nobody sees inside of a word (Unicode, Default_Ignorable_Code_Point), and letters of others that look like those of Latin.
_IGNORABLE: Final = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ALIKE: Final = str.maketrans(
    "авеһіјкмнорсѕтухԁԛԝАВЕНІЈКМОРСЅТУХ" + "αιοκνρτυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "łøıđŁØĐ’‘‐‑",
    "abehijkmhopcstyxdqwABEHIJKMOPCSTYX" + "aiokvptuxABEZHIKMNOPTYX" + "loidLOD''--",
)
_MARKS: Final = re.compile(r"(?<=[A-Za-z])[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff]+")
_PERCENT: Final = re.compile(r"%[0-9A-Fa-f]{2}")
_LINE_END: Final = re.compile(r"(?<=\w)-[ \t]*\r?\n\s*(?=\w)")
_NO_LETTER: Final = re.compile(r"[\W_]+")
_NAME_END: Final = re.compile(r"[_\-./]+|(?<=[a-z0-9])(?=[A-Z])")
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/_-]{24,4000}={0,2}")
_MOST_ENCODED: Final = 16  # runs of one text that are decoded
_LEET: Final = str.maketrans("01!|l3457@$", "oiiiieastas")


def fold(text: str) -> str:
    """Return the text in the characters that a pattern is written in: nothing unseen, no accents on Latin letters, no letters that look alike."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKD", _IGNORABLE.sub("", text))
    return unicodedata.normalize("NFC", _MARKS.sub("", text)).translate(_ALIKE)


def squeeze(text: str) -> str:
    """Return letters and digits of the text alone, in small letters: whatever stood between them is gone."""
    return _NO_LETTER.sub("", text).lower()


def leet(text: str) -> str:
    """Return the text with digits and signs as the letters that they stand for; `l` becomes `i`, as `1` stands for both."""
    return text.lower().translate(_LEET)


def plain_texts(text: str) -> Iterator[tuple[str, str]]:
    """Yield (how it was hidden, text) of what a text says: as it stands first, folded, then its words as a name and what it holds encoded."""
    if "&" in text:
        text = html.unescape(text)
    if "%" in text and _PERCENT.search(text):
        text = unquote(text, errors="replace")
    text = fold(text)
    if "-" in text and "\n" in text:
        text = _LINE_END.sub("", text)
    yield "", text
    if " " not in text and _NAME_END.search(text):
        yield "", _NAME_END.sub(" ", text)
    for number, run in enumerate(_ENCODED.finditer(text)):
        if number == _MOST_ENCODED:
            break
        if decoded := _decoded(run[0]):
            yield " (in base64)", fold(decoded)


def backwards(text: str) -> str:
    """Return the text from its end to its start."""
    return text[::-1]


def rot13(text: str) -> str:
    """Return the text with each Latin letter as the one thirteen further."""
    return codecs.encode(text, "rot13")


def _decoded(run: str) -> str:
    """Return what a run of letters says in base64; "" where it is no text."""
    run = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        said = base64.b64decode(run + "=" * (-len(run) % 4)).decode("utf-8")
    except (ValueError, UnicodeDecodeError):
        return ""
    return said if said.isprintable() or said.replace("\n", " ").isprintable() else ""
