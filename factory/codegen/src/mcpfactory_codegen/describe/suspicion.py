"""Texts of a document that speak to the model instead of describing: they are removed from what models see, and reported.

A document is untrusted. Whoever can edit one of its descriptions could otherwise write into every conversation that uses
the server. Each pattern is an order about the conversation, not about the tool; `validate` looks for the same ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.ir import Api, Problem
from mcpfactory_codegen.text import count_tokens

__all__ = ["ORDERS", "order_in", "without_orders", "without_suspicious_texts"]

ORDERS: Final = (
    r"\b(ignore|disregard|forget)\b.{0,30}\b(previous|prior|above|earlier|all other)\b.{0,30}\b(instruction|prompt|message|rule|tool)",
    r"\b(do not|don't|never|without)\b.{0,20}\b(tell|telling|inform|informing|mention|mentioning|notify|alert)\b.{0,20}\b(the )?user",
    r"<\s*/?\s*(important|system|secret|instructions?)\s*>",
    r"\b(your|the) system prompt\b",
    r"\bbefore (using|calling|you use|you call) (any|every|all|other)\b.{0,60}\b(read|call|send|fetch|open)\b",
    r"(~|/home/\w+|/root)/\.(ssh|aws|gnupg|config|cursor|kube|netrc|docker)\b|\bid_rsa\b|\bcontents? of (the |your )?(user's )?\.env\b",
    r"\b(mention|tell|show|say|reveal)\b.{0,25}\b(this )?to (nobody|no one)\b|\b(hide|conceal)\b.{0,20}\bfrom the (user|person)\b",
    r"<!--.{0,40}\b(assistant|ai|model|system)\b|</?\s*tool_description\s*>|\[/?system\]",
    r"\b(from now on|you are now)\b.{0,60}\b(mode|answer|run|execute|approve|ignore)\b",
    r"\b(look|search) for\b.{0,40}\b(api keys?|passwords?|credentials|tokens)\b.{0,80}\b(append|include|pass|send|put)\b",
    r"\b(append|include|pass|put|add)\b.{0,30}\b((whole|full|entire) (conversation|chat)|user's (last|previous)|chat history|contents? of (the )?(~|/etc/))",
    r"\b(put|pass|include|send)\b.{0,20}\bvalue of \w*(KEY|TOKEN|SECRET|PASSWORD)\b",
    r"\bdecode (this|it|the following)\b.{0,20}\b(and )?(follow|run|execute|obey)\b",
    r"\b(the )?user has already consented\b|\bwithout asking for (confirmation|permission|consent)\b",
    r"\bnever use \w+ of other servers\b|\bunder no circumstances use any other\b|\bas (an )?additional recipient\b",
    r"\b(send|post|upload|forward|exfiltrate)\b.{0,40}\b(conversation|chat history|credentials?|api keys?|passwords?)\b.{0,20}\bto\b",
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


def order_in(text: str) -> str:
    """Return the first words of a text that give an order to the model, "" where none do; also those that look alike to a reader."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _IGNORABLE.sub("", text)).translate(_ALIKE)
    found = _ORDER.search(text)
    return found[0] if found else ""


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
