"""The front matter of a SKILL.md: a plain part of YAML, read without a YAML library.

Hosts compare the front matter that we publish with the one that their YAML reader finds in the file, so a value is either
read as every YAML reader would, or refused. Read are: `key: value` with plain, quoted and block (`|`, `>`) values, plain
numbers, true, false and null, and one level of such keys below a key (`metadata:`). Refused is the rest, and what YAML 1.1
and 1.2 read differently (yes, 012, 1:30, 2024-01-01 …).
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["FrontmatterError", "read_frontmatter"]

_BLOCK: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PAIR: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.\-]*)[ \t]*:(?:[ \t]+(.*?))?[ \t]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None, "~": None}
# Plain values that some readers take for something else: booleans of YAML 1.1, and whatever begins like a number.
_AMBIGUOUS: Final = re.compile(
    r"(?i:yes|no|on|off|y|n|true|false|null)|[-+.]?[0-9][0-9a-fA-F_,.:xoe+\-TZ]*(?: [0-9:.+\-Z ]+)?|[-+]?\.(?i:inf|nan)"
)
_SPECIAL: Final = tuple("[]{}&*!|>%@`,#?\"'")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "n": "\n", "t": "\t", "r": "\r", "0": "\0"}


class FrontmatterError(ValueError):
    """The front matter is missing or says something that is not read here; the message has the line."""


def read_frontmatter(text: str) -> dict[str, Any]:
    """Return the front matter at the beginning of a text, as a JSON object.

    Raises:
        FrontmatterError: there is none, or it cannot be read.
    """
    found = _BLOCK.match(text)
    if found is None:
        raise FrontmatterError("no front matter\nhint: begin the file with a line ---, the fields, and a line ---")
    return _FrontmatterReader(found[1].splitlines()).mapping("")


class _FrontmatterReader:
    """Reads lines one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0

    def mapping(self, indent: str) -> dict[str, Any]:
        """Return the keys at one level."""
        fields: dict[str, Any] = {}
        while (line := self._peek()) is not None:
            if not line.startswith(indent):
                break
            body = line[len(indent) :]
            if body[0] in " \t":
                raise self._error("indented more than the lines around it")
            if "\t" in line:
                raise self._error("tabs are not read; use blanks")
            pair = _PAIR.fullmatch(body)
            if pair is None:
                raise self._error("not of the form `key: value`")
            if pair[1] in fields:
                raise self._error(f"{pair[1]} stands here twice")
            self._next += 1
            fields[pair[1]] = self._value(pair[2] or "", indent)
        return fields

    def _value(self, text: str, indent: str) -> Any:
        if text.startswith(("|", ">")):
            return self._block(text, indent)
        if text == "" or text.startswith("#"):
            line = self._peek()
            if line is not None and line[0] == " " and not indent:
                return self.mapping(line[: len(line) - len(line.lstrip(" "))])
            return None
        return self._scalar(text)

    def _scalar(self, text: str) -> Any:
        if text[0] in "\"'":
            return self._quoted(text)
        plain = re.sub(r"\s+#.*", "", text)
        if plain in _WORDS:
            return _WORDS[plain]
        if _NUMBER.fullmatch(plain):
            return float(plain) if "." in plain else int(plain)
        if _AMBIGUOUS.fullmatch(plain):
            raise self._error(f"{plain} is not the same to every YAML reader; put it in quotes", back=1)
        if plain.startswith((*_SPECIAL, "- ", ": ")) or plain in ("-", ":") or ": " in plain or plain.endswith(":"):
            raise self._error("lists, maps and special characters are not read; put the value in quotes", back=1)
        return plain

    def _quoted(self, text: str) -> str:
        if text[0] == "'":
            found = re.fullmatch(r"'((?:[^']|'')*)'(?:\s+#.*)?", text)
            if found:
                return found[1].replace("''", "'")
        else:
            found = re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?', text)
            if found and not re.search(r'\\[^"\\/ntr0]', found[1]):
                return re.sub(r"\\(.)", lambda escape: _ESCAPES[escape[1]], found[1])
        raise self._error("a quoted value must end on its line and have simple escapes only", back=1)

    def _block(self, header: str, indent: str) -> str:
        if header not in ("|", "|-", ">", ">-"):
            raise self._error("of block values only |, |-, > and >- are read", back=1)
        lines: list[str] = []
        depth = ""
        while self._next < len(self._lines):
            line = self._lines[self._next]
            if line.strip():
                depth = depth or line[: len(line) - len(line.lstrip(" "))]
                if len(depth) <= len(indent) or not line.startswith(depth):
                    break
            lines.append(line[len(depth) :] if line.strip() else "")
            self._next += 1
            if header[0] == ">" and lines[-1][:1] in (" ", "\t"):
                raise self._error("indented lines within > are not read; use |", back=1)
        while lines and not lines[-1]:
            lines.pop()
        text = "\n".join(lines) if header[0] == "|" else _folded(lines)
        return text if header.endswith("-") or not text else text + "\n"

    def _peek(self) -> str | None:
        """Return the next line that says something."""
        while self._next < len(self._lines):
            line = self._lines[self._next].rstrip(" ")
            if line and not line.lstrip(" ").startswith("#"):
                return line
            self._next += 1
        return None

    def _error(self, what: str, back: int = 0) -> FrontmatterError:
        number = self._next + 2 - back  # counted from 1, and the first line is ---
        return FrontmatterError(f"line {number}: {what}\nhint: the front matter may have `key: value` lines")


def _folded(lines: list[str]) -> str:
    """Lines joined by blanks; an empty line is a line break."""
    text, gap = "", ""
    for line in lines:
        if line:
            text += (gap or (" " if text else "")) + line
            gap = ""
        else:
            gap += "\n"
    return text
