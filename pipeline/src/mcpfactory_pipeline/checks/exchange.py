"""Recorded exchanges with a server: requests and responses that a finding shows as evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_runtime.types import Json

TRIM: Final = 2_000  # characters of one message that a report shows; whole tool lists would make reports unreadable
MAX_DEPTH: Final = 200  # no message nested deeper becomes evidence, so that what reads evidence may recurse


@dataclass(frozen=True, slots=True)
class WireExchange:
    """One request and its answer.

    `sent` is a JSON-RPC message, or raw text for an intentionally invalid one. `received` is the complete JSON-RPC
    answer, or None with the reason in `problem` ("no answer within 5 s", "the server ended"). `status` is the HTTP
    status, 0 on stdio. `more` are further answers to the same text, as to a batch; `apart` is true if they came one
    by one.
    """

    sent: Json | str
    received: Json | None = None
    problem: str = ""
    status: int = 0
    milliseconds: int = 0
    more: tuple[Json, ...] = ()
    apart: bool = False

    @property
    def error(self) -> Json | None:
        """The JSON-RPC error object of the answer, or None."""
        error = (self.received or {}).get("error")
        return error if isinstance(error, dict) else None

    @property
    def code(self) -> int | None:
        """The JSON-RPC error code of the answer, or None."""
        code = (self.error or {}).get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def result(self) -> Json | None:
        """The JSON-RPC result of the answer when it is an object, or None."""
        result = (self.received or {}).get("result")
        return result if isinstance(result, dict) else None

    @property
    def failed(self) -> bool:
        """Return True if a tool call got an error as its result, or no result at all."""
        return self.result is None or self.result.get("isError") is True

    @property
    def id_echoed(self) -> bool:
        """Return True if the answer has the id of the request, with its type."""
        if self.received is None or isinstance(self.sent, str):
            return True
        sent, back = self.sent.get("id"), self.received.get("id")
        return type(sent) is type(back) and sent == back

    def to_json(self, secrets: Mapping[str, str]) -> Json:
        """Return the exchange as a report shows it: trimmed, with the values of `secrets` (name → value) masked."""
        shown: Json = {"request": trim(mask(self.sent, secrets))}
        if self.received is not None:
            shown["response"] = trim(mask([self.received, *self.more] if self.more else self.received, secrets))
        if self.status:
            shown["status"] = self.status
        if self.problem:
            shown["problem"] = mask(self.problem, secrets)
        return shown


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Return True if lists and objects in `value` are nested deeper than `levels`, without recursion."""
    level = [value]
    for _ in range(levels + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def mask(value: Any, secrets: Mapping[str, str]) -> Any:
    """`value` with every secret's value replaced by its name, in texts at any depth, keys included."""
    if isinstance(value, str):
        for name, secret in secrets.items():
            value = value.replace(secret, f"[{name}]")
        return value
    if isinstance(value, list):
        return [mask(item, secrets) for item in value]
    if isinstance(value, dict):
        return {mask(key, secrets): mask(item, secrets) for key, item in value.items()}
    return value


def trim(message: Any) -> Any:
    """Return a short `message` unchanged, else its beginning as text and the length of the rest."""
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    if len(text) <= TRIM:
        return message
    return f"{text[:TRIM]}… ({len(text) - TRIM} characters more)"
