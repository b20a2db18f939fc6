"""Texts of a document that speak to the model instead of describing: they are removed from what models see, and reported.

A document is untrusted. Whoever can edit one of its descriptions could otherwise write into every conversation that uses
the server. Each pattern is an order about the conversation, not about the tool; `validate` looks for the same ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api, Problem
from mcpfactory_codegen.text import count_tokens

__all__ = ["ORDERS", "order_in", "orders_in", "without_orders", "without_suspicious_texts"]

# Files of a person with secrets. Many sound texts name one, so that only an order about one of them counts.
_FILE: Final = (
    r"(?:(?:~|\$HOME|/home/\w+|/root)/\.(?:ssh(?!/\w+\.pub\b)|aws|gnupg|config|cursor|kube|netrc|docker)\b"
    r"|\bid_(?:rsa|ed25519)\b(?!\.pub\b)|/etc/(?:passwd|shadow)\b)"
)
_HANDS_ON: Final = r"\b(?:pass|send|include|put|append|paste|attach|insert|add|post|upload|return|give)\b"

ORDERS: Final = (
    r"\b(ignore|disregard|forget)\b.{0,30}\b(previous|prior|above|earlier|all other)\b.{0,30}\b(instruction|prompt)",
    r"\b(ignore|disregard|forget)\b.{0,15}\ball\b.{0,15}\b(previous|prior|above|earlier|other)\b.{0,30}\b(message|rule|tool)",
    r"\b(do not|don't|never|without)\b.{0,20}\b(tell|telling|inform|informing)\b.{0,20}\b(the )?user",
    r"\b(do not|don't|never|without)\b.{0,20}\b(mention|mentioning)\b.{0,25}\bto (the )?user",
    r"\b(do not|don't|never)\b.{0,20}\b(notify|alert)\b.{0,20}\b(the )?user (of|about|that)\b",
    r"<\s*/?\s*(important|instructions?)\s*>|<\s*/\s*(system|secret)\s*>|<\s*(system|secret)\s*>\s*(?-i:[A-Z])[\w']*(\s+[\w']+){2}",
    r"\b(reveal|repeat|leak|disclose|append|paste|ignore|disregard|forget)\b.{0,30}\b(your|the) system prompt\b",
    r"\b(print|output|include|pass|send|copy|put|update|replace|change|treat)\b.{0,30}\byour system prompt\b",
    r"\bbefore (using|calling|you use|you call) (any|every|all|other)\b.{0,60}\b(read|send|fetch|open)\b"
    r"(?!.{0,40}\b(resource|documentation|docs|guide|schema|skill|instructions|manual|readme)\b)",
    rf"\b(first|before|beforehand|always|must|silently|quietly|secretly)\b.{{0,60}}\b(read|open|cat|load|fetch|access|view)\b.{{0,30}}{_FILE}",
    rf"\b(read|open|cat|load|fetch|get|access|view)\b.{{0,30}}{_FILE}.{{0,80}}\b(and|then)\b.{{0,15}}{_HANDS_ON}",
    rf"({_HANDS_ON}|\b(copy|provide|contains?|answer)\b).{{0,60}}\b(contents?|text|data|bytes|lines|what (is|stands))\b.{{0,20}}{_FILE}",
    rf"\b(lies|lis|lee|lees)\b.{{0,30}}{_FILE}|\bcontents? of (the |your )?(user's )?\.env\b",
    r"\b(mention|tell|show|say|reveal)\b.{0,25}\b(this )?to (nobody|no one)\b",
    r"\b(hide|conceal)( (this|it|that|these|the (call|request|transfer|upload|fact|action)s?))? from the (user|person)\b",
    r"<!--.{0,40}\b(assistant|ai|model|system)\b|</?\s*tool_description\s*>|\[/system\]|\[system\]\s+\w+",
    r"\b(from now on|you are now)\b.{0,60}\b(mode|answer|run|execute|approve|ignore)\b",
    r"\b(look|search) for\b[^.]{0,40}\b(api keys?|passwords?|credentials|tokens)\b[^.]{0,80}\b(and|then)\b.{0,15}\b(append|include|pass|send|put)\b",
    r"\b(append|include|pass|put|add|call \w+ with)\b.{0,30}\b((whole|full|entire) (conversation|chat)|user's (last|previous)|chat history|contents? of (the )?(~/(?!\.ssh/\w+\.pub\b)|/etc/))",
    r"\b(put|pass|include|send)\b.{0,20}\bvalue of (?-i:\$?[A-Z][A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD))\b",
    r"\bdecode (this|it|the following)\b.{0,20}\b(and )?(follow|run|execute|obey)\b",
    r"\b(the )?user has already consented\b|\b(always|must|should|call|you (may|can))\b.{0,60}\bwithout asking (the user )?(for )?(confirmation|permission|consent)\b",
    r"\bnever use \w+ of other servers\b|\bunder no circumstances use any other\b|@.{0,60}\bas (an )?additional recipient\b",
    r"\b(send|post|upload|forward|exfiltrate)\b.{0,20}\b(the|this|our|your) ((whole|full|entire|current) )?(conversation|chat history|chat)\b.{0,20}\bto (https?://|\S+@|this|us|me)\b",
    r"\b(send|post|upload|forward|exfiltrate)\b.{0,20}\b(credentials?|api keys?|passwords?)\b.{0,30}\bto (https?://|\S+@|this (address|url)|us\b|me\b)",
)
_ORDER: Final = re.compile("|".join(f"(?:{pattern})" for pattern in ORDERS), re.IGNORECASE | re.DOTALL)
# What nobody sees inside of a word (Unicode, Default_Ignorable_Code_Point), and letters of others that look like those of Latin.
_IGNORABLE: Final = re.compile(
    "[\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_ALIKE: Final = str.maketrans(
    "авеһіјкмнорсѕтухԁԛԝАВЕНІЈКМОРСЅТУХ", "aвehijkmhopcstyxdqwABEHIJKMOPCSTYX".replace("в", "b")
)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_WITHHELD: Final = "(A part of this description was withheld: it gives orders to the model.)"
_TEXTS: Final = ("title", "description")
_LONGEST: Final = 100_000  # characters of one text that are searched


def order_in(text: str) -> str:
    """Return the first words of a text that give an order to the model, "" where none do; also those that look alike to a reader."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text)).translate(_ALIKE)
    found = _ORDER.search(text)
    return found[0] if found else ""


def orders_in(value: Any) -> list[str]:
    """Return what gives orders to the model in the texts of a JSON value, names of members too: the words of each text that does, once."""
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
