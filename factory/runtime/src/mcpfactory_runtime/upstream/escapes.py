"""Texts with the escapes of URLs, HTML, JSON, Python, C and mail undone, layer by layer, and where each byte of a layer came from."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from html import unescape
from typing import Final

__all__ = ["Layer", "layers", "needless"]

_MOST: Final = 8  # layers: JSON within JSON three deep, in HTML that was escaped twice, in a URL, has seven

_ESCAPE: Final = re.compile(
    rb"%(?P<percent>[0-9A-Fa-f]{2})"
    rb"|\\(?:x(?P<byte>[0-9A-Fa-f]{2})|(?P<octal>[0-3][0-7]{2})"
    rb"|u(?P<pair>[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2})|u(?P<unit>[0-9A-Fa-f]{4})|u\{(?P<point>[0-9A-Fa-f]{1,6})\}"
    rb"|(?P<sign>[\"'\\/bfnrt]))"
    rb"|(?P<entity>&(?:\#[0-9]{1,7}|\#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
)
_MAIL: Final = re.compile(rb"=(?:(?P<mail>[0-9A-Fa-f]{2})|(?P<soft>\r?\n))")  # quoted-printable (RFC 2045 §6.7)
_SIGNS: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}

_OF_WORDS: Final = "(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|00)"  # ASCII letters, digits and zeros, in hexadecimal
_NEEDLESS: Final = {  # the sign that each begins with, which is found much faster, and the escapes
    "%": (re.compile(f"%(?:25){{0,8}}(?:{_OF_WORDS}|5[Cc][ux01]|26(?:amp)?%|3[Dd]%(?:25){{0,8}}0[ADad])"),),
    "=": (
        re.compile(r"=(?:\r?\n|(?:\\{1,15}r)?\\{1,15}n)"),
    ),  # a soft line break, which may stand within a word; also as in JSON
    "\\": (
        re.compile(rf"\\u(?:00|\{{0{{0,4}}){_OF_WORDS}"),
        re.compile(rf"\\x{_OF_WORDS}"),
        re.compile(r"\\0(?:6[0-7]|7[01]|00)"),
        re.compile(r"\\1[0-7]{2}"),
    ),
    "#": (
        re.compile(r"\#0{0,4}(?:4[89]|5[0-7]|6[5-9]|[78][0-9]|9[0789]|1[01][0-9]|12[0-2]);"),
        re.compile(rf"\#[xX]0{{0,4}}{_OF_WORDS};"),
    ),
}


def needless(text: str) -> bool:
    """Whether letters, digits or zeros are escaped in a text, which hardly any writer does, or lines broken as in mail: that hides the words of it."""
    return any(sign in text and any(one.search(text) for one in patterns) for sign, patterns in _NEEDLESS.items())


class Layer:
    """A text without one layer of escapes.

    Attributes:
        data: the text, in UTF-8.
    """

    __slots__ = ("_below", "_here", "_outer", "data")

    def __init__(self, data: bytes, outer: Layer | None = None, pattern: re.Pattern[bytes] | None = None) -> None:
        self._outer = outer
        self._here, self._below = [0], [0]  # where pieces begin: in this layer, and in the one around it
        self.data = data if pattern is None else self._undo(data, pattern)

    def _undo(self, data: bytes, pattern: re.Pattern[bytes]) -> bytes:
        pieces: list[bytes] = []
        size = end = 0
        for match in pattern.finditer(data):
            begin = match.start()
            if begin > end:
                pieces.append(data[end:begin])
                size += begin - end
                self._here.append(size)
                self._below.append(begin)
            end = match.end()
            pieces.append(_meaning(match))
            size += len(pieces[-1])
            self._here.append(size)
            self._below.append(end)
        return b"".join((*pieces, data[end:])) if pieces else data

    @property
    def changed(self) -> bool:
        """Whether there was something to undo."""
        return len(self._here) > 1

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """Return where some bytes of this layer stand in the outermost one."""
        if self._outer is None:
            return begin, end
        first, last = bisect_right(self._here, begin) - 1, bisect_left(self._here, end) - 1
        begin = self._below[first] + (begin - self._here[first] if self._literal(first) else 0)
        end = self._below[last] + end - self._here[last] if self._literal(last) else self._below[last + 1]
        return self._outer.place(begin, end)

    def _literal(self, piece: int) -> bool:
        """Whether a piece is no escape. (One that is as long as what it means may be cut: nothing is lost by that.)."""
        if piece + 1 == len(self._here):
            return True
        return self._here[piece + 1] - self._here[piece] == self._below[piece + 1] - self._below[piece]


def layers(data: bytes) -> Iterator[Layer]:
    """Yield a text, and what it says without its escapes, again and again until there are none; at each step also without those of mail.

    What a step costs is linear in the length of the text, and there are few.
    """
    layer = Layer(data)
    for _ in range(_MOST):
        yield layer
        if b"=" in layer.data and (mail := Layer(layer.data, layer, _MAIL)).changed:
            yield mail
        layer = Layer(layer.data, layer, _ESCAPE)
        if not layer.changed:
            return
    yield layer


def _meaning(match: re.Match[bytes]) -> bytes:
    """Return what an escape stands for, in UTF-8 or as a part of it."""
    kind = match.lastgroup
    assert kind is not None
    said = match[kind]
    if kind in {"percent", "byte", "mail"}:
        return bytes((int(said, 16),))
    if kind == "sign":
        return _SIGNS.get(said, said)
    if kind == "octal":
        return bytes((int(said, 8),))
    if kind == "soft":
        return b""
    if kind == "entity":
        return unescape(said.decode()).encode(errors="replace")
    if kind == "pair":
        high, low = int(said[:4], 16), int(said[6:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00).encode()
    code = int(said, 16)
    return chr(code).encode(errors="surrogatepass") if code < 0x110000 else match[0]
