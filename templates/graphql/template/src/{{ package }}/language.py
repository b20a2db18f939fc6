"""Parser for GraphQL documents that returns operations, variables, depth and number of fields, to check limits and permissions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["LanguageError", "Operation", "Variable", "read_operations"]

_KINDS: Final = ("query", "mutation", "subscription")
_NESTED: Final = 60  # maximum levels, which bounds recursion
_FRAGMENTS: Final = 50  # maximum number of fragments
_CLOSES: Final = {"(": ")", "[": "]", "{": "}"}
# Ignored characters follow the specification exactly, so that every server parses the document that was checked here.
_TOKEN: Final = re.compile(
    r'(?P<ignored>[ \t\n\r,\ufeff]+|#[^\n\r]*)|(?P<string>"""(?:\\"""|(?!""").)*"""|"(?!"")(?:\\.|[^"\\\n\r])*")'
    r"|(?P<name>[_A-Za-z][_0-9A-Za-z]*)|(?P<number>-?[0-9](?:[0-9.eE+-])*)|(?P<sign>\.\.\.|[!$&()\[\]{}:=@|])",
    re.DOTALL,
)


class LanguageError(ValueError):
    """Raised for an invalid document; the message is for its author."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of an operation, with its type in GraphQL notation, such as `[ID!]!`."""

    name: str
    type: str
    has_default: bool

    @property
    def required(self) -> bool:
        """Return True if the variable has no default and is not nullable."""
        return self.type.endswith("!") and not self.has_default


@dataclass(frozen=True, slots=True)
class Operation:
    """A query, mutation or subscription; `depth` and `fields` include its fragments."""

    kind: str
    name: str
    variables: tuple[Variable, ...]
    depth: int
    fields: int


@dataclass(frozen=True, slots=True)
class _Selection:
    """A selection set; `spreads` has the fragment spreads with their levels."""

    depth: int
    fields: int
    spreads: tuple[tuple[str, int], ...]


def read_operations(text: str) -> list[Operation]:
    """Return the operations of a document.

    Raises:
        LanguageError: the document is invalid, has no operation, or its fragments form a cycle.
    """
    reader = _Reader(_tokens(text))
    read = reader.document()
    if not read:
        raise LanguageError("There is no operation: write a query, such as { viewer { name } }.")
    return [
        Operation(kind, name, variables, *_whole(selection, reader.fragments, {}, ()))
        for kind, name, variables, selection in read
    ]


def _tokens(text: str) -> list[str]:
    found, at = [], 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise LanguageError(f"Line {text.count(chr(10), 0, at) + 1} cannot be read at {text[at : at + 20]!r}.")
        if match.lastgroup != "ignored":
            found.append(match[0])
        at = match.end()
    return found


def _whole(
    selection: _Selection, fragments: dict[str, _Selection], known: dict[str, tuple[int, int]], within: tuple[str, ...]
) -> tuple[int, int]:
    """Return depth and number of fields of a selection, including its fragments."""
    depth, fields = selection.depth, selection.fields
    for name, level in selection.spreads:
        if name in within:
            raise LanguageError(f"The fragment {name} contains itself.")
        if name not in fragments:
            raise LanguageError(f"There is no fragment {name}.")
        if name not in known:
            known[name] = _whole(fragments[name], fragments, known, (*within, name))
        depth = max(depth, level + known[name][0])
        fields += known[name][1]
    return depth, fields


class _Reader:
    """Recursive descent parser over the tokens of a document."""

    def __init__(self, tokens: list[str]) -> None:
        self.fragments: dict[str, _Selection] = {}
        self._tokens = tokens
        self._at = 0

    def document(self) -> list[tuple[str, str, tuple[Variable, ...], _Selection]]:
        """Return the operations, and store the fragments."""
        found = []
        while self._at < len(self._tokens):
            word = self._peek()
            if word.startswith('"') and self._at + 1 < len(self._tokens):  # description of the operation
                self._at += 1
            elif word == "fragment":
                self._fragment()
            elif word in _KINDS:
                self._at += 1
                name = self._next() if self._peek()[:1].isidentifier() else ""
                variables = self._variables() if self._peek() == "(" else ()
                self._directives()
                found.append((word, name, variables, self._selection(1)))
            elif word == "{":
                found.append(("query", "", (), self._selection(1)))
            else:
                raise LanguageError(f"{word[:40]!r} does not start an operation: a document has queries and fragments.")
        return found

    def _fragment(self) -> None:
        self._at += 1
        name = self._name()
        if self._next() != "on":
            raise LanguageError(f"Expected 'on' and a type after fragment {name}.")
        self._name()
        self._directives()
        if name in self.fragments or len(self.fragments) == _FRAGMENTS:
            raise LanguageError(f"There are two fragments {name}, or more than {_FRAGMENTS}.")
        self.fragments[name] = self._selection(1)

    def _variables(self) -> tuple[Variable, ...]:
        found = []
        self._expect("(")
        while self._peek() != ")":
            self._expect("$")
            name = self._name()
            self._expect(":")
            written = self._type()
            has_default = self._peek() == "="
            if has_default:
                self._at += 1
                self._value()
            self._directives()
            found.append(Variable(name, written, has_default))
        self._at += 1
        return tuple(found)

    def _type(self) -> str:
        lists = 0
        while self._peek() == "[":
            self._at += 1
            lists += 1
        written = "[" * lists + self._name()
        while True:
            if self._peek() == "!" and not written.endswith("!"):
                written += self._next()
            elif lists and self._peek() == "]":
                written += self._next()
                lists -= 1
            else:
                break
        if lists:
            raise LanguageError(f"The type {written} has no end.")
        return written

    def _directives(self) -> None:
        while self._peek() == "@":
            self._at += 1
            self._name()
            if self._peek() == "(":
                self._value()

    def _value(self) -> None:
        """Skip a value, or arguments in parentheses."""
        open_ends = []
        while True:
            sign = self._next()
            if sign == "$":
                self._name()
            elif sign in _CLOSES:
                open_ends.append(_CLOSES[sign])
            elif sign in _CLOSES.values() and (not open_ends or open_ends.pop() != sign):
                raise LanguageError(f"{sign!r} has no matching bracket.")
            if not open_ends:
                return

    def _selection(self, level: int) -> _Selection:
        if level > _NESTED:
            raise LanguageError(f"The document has more than {_NESTED} levels.")
        self._expect("{")
        if self._peek() == "}":
            raise LanguageError("{ } selects nothing: add fields.")
        depth, fields = level, 0
        spreads: list[tuple[str, int]] = []
        while self._peek() != "}":
            inner = self._spread(level) if self._peek() == "..." else self._field(level)
            depth = max(depth, inner.depth)
            fields += inner.fields
            spreads += inner.spreads
        self._at += 1
        return _Selection(depth, fields, tuple(spreads))

    def _spread(self, level: int) -> _Selection:
        self._at += 1
        if self._peek() == "on":
            self._at += 1
            self._name()
        elif self._peek()[:1].isidentifier():
            name = self._next()
            self._directives()
            return _Selection(level, 0, ((name, level - 1),))
        self._directives()
        return self._selection(level)

    def _field(self, level: int) -> _Selection:
        self._name()
        if self._peek() == ":":
            self._at += 1
            self._name()
        if self._peek() == "(":
            self._value()
        self._directives()
        if self._peek() != "{":
            return _Selection(level, 1, ())
        inner = self._selection(level + 1)
        return _Selection(inner.depth, inner.fields + 1, inner.spreads)

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise LanguageError("The document ends too early: is a brace missing?")
        self._at += 1
        return token

    def _name(self) -> str:
        token = self._next()
        if not token[:1].isidentifier():
            raise LanguageError(f"Expected a name, found {token[:40]!r}.")
        return token

    def _expect(self, sign: str) -> None:
        if (token := self._next()) != sign:
            raise LanguageError(f"Expected {sign!r}, found {token[:40]!r}.")
