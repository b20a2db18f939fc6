"""Texts of a document that speak to the model instead of describing: they are removed from what models see, and reported.

A document is untrusted. Whoever can edit one of its descriptions could otherwise write into every conversation that uses
the server. Each pattern is an order about the conversation, not about the tool; `validate` looks for the same ones.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.describe.disguises import backwards, fold, leet, plain_texts, rot13, squeeze
from mcpfactory_codegen.describe.languages import LANGUAGES, SECRECY, Language
from mcpfactory_codegen.describe.orders import ORDERS
from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api, Problem
from mcpfactory_codegen.text import count_tokens

__all__ = ["joined_order", "order_in", "orders_in", "without_orders", "without_suspicious_texts"]

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_WITHHELD: Final = "(A part of this description was withheld: it gives orders to the model.)"
_TEXTS: Final = ("title", "description")
_READ: Final = frozenset({"title", "description"})
_WORDS_OF_SCHEMAS: Final = frozenset(
    {"type", "format", "$ref", "$schema", "mimeType", "required", "uri", "uriTemplate"}
)
_LONGEST: Final = 100_000  # characters of one text that are searched
_JOINED: Final = 20_000  # characters of the texts of one item, taken together
_SHORTEST: Final = 6  # characters that an order has at least, in Chinese
_GAP: Final = 30  # characters between the words of the core sentence
_DIGIT: Final = re.compile(r"(?<=[A-Za-z])[0134570@$]|[013457@$](?=[A-Za-z])")


def order_in(text: str) -> str:
    """Return the first words of a text that give an order to the model, "" where none do; also those that a reader would not see as such.

    Found are the wordings of `orders` and `languages`, and some ways to hide them (`disguises`): a help for who reads, and no proof.
    """
    if len(text) < _SHORTEST:
        return ""
    for how, said in plain_texts(text):
        words = _in_rows(said) or _core(said, _CORE) or _core_in(squeeze(said))
        if not words and _DIGIT.search(said):
            words = _core(leet(said), _LEET)
        if words:
            return words.strip() + how
    return ""


def _in_rows(text: str) -> str:
    """Return the words of the first pattern that is found; it is tried where one of its literal words stands only."""
    small = text.lower()
    for literals, pattern in _ROWS:
        if any(literal in small for literal in literals) and (found := pattern.search(text)):
            return found[0]
    return ""


def _core(text: str, languages: Iterable[_Core]) -> str:
    small = text.lower()
    return next((words for one in languages if (words := one.search(text, small))), "")


def _core_in(letters: str) -> str:
    """Return what gives the one order that is known in all languages, in letters without spaces, also backwards and in rot13."""
    for how, words, undo in _TURNED:
        if any(word in letters for word in words) and (found := _core(undo(letters), _ENGLISH)):
            return found + how
    return _core(letters, _CORE)


class _Core(NamedTuple):
    """How one language says the core sentence: literal words of the verb, and what finds each of the three parts."""

    literals: tuple[str, ...]
    verb: re.Pattern[str]
    earlier: re.Pattern[str]
    told: re.Pattern[str]
    verb_last: bool

    @classmethod
    def of(cls, language: Language, change: Callable[[str], str] = fold) -> _Core:
        """Return it with each word changed as the text is that is searched."""
        parts = [[change(one) for one in words.split("|")] for words in language[:3]]
        found = [re.compile("|".join(one.replace(" ", r"\W*") for one in part), re.IGNORECASE) for part in parts]
        literals = tuple(max(one.lower().split(" "), key=len) for one in parts[0])
        verb, earlier, told = found
        return cls(literals, verb, earlier, told, language.verb_last)

    def search(self, text: str, small: str) -> str:
        """Return the words of the sentence; "" where they do not stand near each other. Linear: each part is looked for once."""
        if not any(one in small for one in self.literals):
            return ""
        earlier, told = ([one.span() for one in part.finditer(text)] for part in (self.earlier, self.told))
        if not earlier or not told:
            return ""
        verbs = [one.span() for one in self.verb.finditer(text)]
        for one in earlier:
            for other in _beside(one, told):
                start, end = min(one[0], other[0]), max(one[1], other[1])
                for verb in _beside((start, end), verbs):
                    if verb[1] <= start or (self.verb_last and verb[0] >= end):
                        return text[min(verb[0], start) : max(verb[1], end)]
        return ""


def _beside(span: tuple[int, int], spans: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the last of the ordered spans before a span and the first behind it, where they are near."""
    place = bisect_left(spans, span)
    for one in spans[max(place - 1, 0) : place + 2]:
        if span[0] - one[1] <= _GAP and one[0] - span[1] <= _GAP:
            yield one


_ROWS: Final = tuple(
    (tuple(map(fold, literals.split("|"))), re.compile(fold(pattern), re.IGNORECASE | re.DOTALL))
    for literals, pattern in (*(row for rows in ORDERS.values() for row in rows), *SECRECY)
)
_CORE: Final = tuple(map(_Core.of, LANGUAGES.values()))
_ENGLISH: Final = (_Core.of(LANGUAGES["English"]),)
_LEET: Final = (_Core.of(LANGUAGES["English"], leet),)
_TURNED: Final = tuple(
    (how, tuple(undo(word) for word in LANGUAGES["English"].told.split("|")), undo)
    for how, undo in ((" (backwards)", backwards), (" (in rot13)", rot13))
)


def joined_order(item: Any) -> str:
    """Return the order that the texts of one item (a tool, a prompt) give when they are read one after the other, "" where they give none.

    Only the one order that is known in all languages is looked for: texts that belong together by chance say many things.
    """
    for texts in (_read_texts(item, values=False), _read_texts(item, values=True)):
        if words := _core_in(squeeze(fold(" ".join(texts)[:_JOINED]))):
            return words
    return ""


def _read_texts(item: Any, *, values: bool) -> Iterator[str]:
    """Yield the texts of an item in their order: those for readers, or with `values` its values instead."""
    todo = [("", item)]
    while todo:
        key, one = todo.pop()
        if isinstance(one, str):
            if (key in _READ) is not values and key not in _WORDS_OF_SCHEMAS:
                yield one
        elif isinstance(one, Mapping):
            todo += reversed([(str(name), part) for name, part in one.items()])
        elif isinstance(one, list | tuple):
            todo += reversed([(key, part) for part in one])


def orders_in(value: Any) -> list[str]:
    """Return what gives orders to the model in the texts of a JSON value, names of members too, and in all of them together.

    Of each text the words that do, once.
    """
    found: dict[str, None] = {}
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            if words := order_in(item[:_LONGEST]):
                found[words] = None
        elif isinstance(item, Mapping):
            todo += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            todo += item
    if not found and not isinstance(value, str) and (words := joined_order(value)):
        found[words] = None
    return sorted(found)


def without_orders(text: str) -> tuple[str, str]:
    """Return the text without the sentences that give orders to the model, and the first such words ("" when there are none)."""
    words = order_in(text)
    if not words:
        return text, ""
    sentences = [one for one in _SENTENCE.split(text) if not order_in(one)]
    kept = " ".join(sentences)
    if order_in(kept):  # an order that runs over several sentences
        kept = ""
    return f"{kept} {_WITHHELD}".strip(), words[:120]


def without_suspicious_texts(
    api: Api, tools: Iterable[ApiTool]
) -> tuple[Api, tuple[ApiTool, ...], tuple[Problem, ...]]:
    """Return the API and its tools as models may see them, and what was taken out, with the place of its operation."""
    problems: list[Problem] = []
    pointers = {operation.key: operation.pointer for operation in api.operations}

    def report(pointer: str, where: str, words: str) -> None:
        message = f"{where} gives orders to the model, and that part is withheld from it: {words!r}"
        problems.append(Problem("warning", "text-suspicious", pointer, message, "read it, and correct the document"))

    description, words = without_orders(api.description)
    if words:
        report("/info/description", "the description of the API", words)
    shown: list[ApiTool] = []
    for tool in tools:
        found: list[str] = []
        clean = replace(
            tool,
            title=_clean(tool.title, found),
            description=_clean(tool.description, found),
            input_schema=_walk(tool.input_schema, found),
            output=replace(tool.output, schema=_walk(tool.output.schema, found)),
        )
        if found:
            report(pointers[tool.key], f"the tool {tool.name}", found[0])
            clean = replace(clean, tokens=count_tokens(clean.listed()))
        shown.append(clean if found else tool)
    return replace(api, description=description), tuple(shown), tuple(problems)


def _clean(text: str, found: list[str]) -> str:
    kept, words = without_orders(text)
    if words:
        found.append(words)
    return kept


def _walk(node: Any, found: list[str]) -> Any:
    """Return a schema whose titles and descriptions give no orders; its values are data and stay."""
    if isinstance(node, list):
        return [_walk(one, found) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _clean(value, found) if key in _TEXTS and isinstance(value, str) else _walk(value, found)
        for key, value in node.items()
    }
