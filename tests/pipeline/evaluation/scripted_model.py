"""A model that follows a script, and selects from the given tool list the tool whose words match best.

For each question the script says what somebody who understands it thinks of, step by step, and with which arguments each tool would
be called. Which tool is called is decided by the names and descriptions in the request alone: with the descriptions of other tools
it goes wrong, and a tool that it takes for the right one by mistake gets arguments made from its schema. Pure.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])")
_SMALL = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "me",
        "of",
        "on",
        "or",
        "that",
        "the",
        "this",
        "to",
        "what",
        "which",
        "will",
        "with",
        "you",
    ]
)
_LEAST = 4.0  # minimum score of a tool if no tool may be needed
_NOISE = 0.05  # maximum random bonus, as a share of the best score


@dataclass(frozen=True)
class Step:
    """A thought of the model, and the arguments for each tool name."""

    thought: str
    arguments: Mapping[str, Mapping[str, Any]]


Script = Mapping[str, Sequence[Step]]
"""Question → steps. A question without steps is answered without a tool if no tool seems to match."""


def words_of(text: str) -> list[str]:
    found = [word.lower().rstrip("s") for word in _WORD.findall(text)]
    return [word for word in found if word not in _SMALL]


def understood(question: str, about: str, skill: float) -> str:
    """Return the question with so large a part of the words of what the right tool says of itself, the same part every time."""

    def kept(word: str) -> bool:
        return int(hashlib.sha256(f"{question}:{word}".encode()).hexdigest()[:4], 16) < skill * 0x10000

    return f"{question} {' '.join(word for word in words_of(about) if kept(word))}"


def choose(thought: str, tools: Sequence[tuple[str, str]], nonce: int, *, wanted: bool = True) -> str | None:
    """Return the name of the tool that matches a thought best; None if none matches.

    Args:
        thought: words to match.
        tools: names and descriptions, as in the request.
        nonce: number of the attempt; it selects among tools with nearly equal scores.
        wanted: True if a tool is needed; if False, a tool needs a high score.
    """
    lists = [Counter(words_of(f"{name} {text}")) for name, text in tools]
    spread = Counter(word for one in lists for word in one)
    sought = set(words_of(thought))
    raw = [sum(math.log(1 + len(tools) / spread[word]) for word in sought if word in one) for one in lists]
    if max(raw, default=0.0) <= (0.0 if wanted else _LEAST):
        return None
    scores = [score / (2 + math.sqrt(sum(one.values()))) for score, one in zip(raw, lists, strict=True)]
    noise = [int(hashlib.sha256(f"{nonce}:{name}".encode()).hexdigest()[:4], 16) / 0xFFFF for name, _ in tools]
    best = [score + _NOISE * max(scores) * one for score, one in zip(scores, noise, strict=True)]
    return tools[best.index(max(best))][0]


def given(step: Step, name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that the step has for a tool that takes such: by its name, else by the names of the arguments."""
    known = [step.arguments[name]] if name in step.arguments else []
    for one in (*known, *step.arguments.values()):
        if set(schema.get("required") or ()) <= set(one) <= set(schema.get("properties") or {}):
            return dict(one)
    return fill(schema)


def fill(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments that satisfy a schema, without further knowledge."""
    parts = schema.get("properties") or {}
    return {name: _value(parts.get(name) or {}) for name in schema.get("required") or ()}


def _value(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return fill(schema)
    if kind == "array":
        return [_value(schema.get("items") or {})]
    return {"integer": 1, "number": 1, "boolean": True}.get(str(kind), "unknown")
