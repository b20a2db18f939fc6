"""Argument completion: what the one completion handler is given and what it returns (server/utilities/completion)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, McpError

__all__ = ["Argument", "Completion", "CompletionContext", "Reference", "read_completion", "read_request"]

Json = dict[str, Any]

_MOST: Final = 100  # values in one answer (server/utilities/completion)


class Reference(NamedTuple):
    """What is being completed: `type` is `ref/prompt` (with `name`) or `ref/resource` (with `uri`, a template)."""

    type: str
    name: str
    uri: str


class Argument(NamedTuple):
    """The argument being typed: its name and what is there so far."""

    name: str
    value: str


class CompletionContext(NamedTuple):
    """Arguments that have their values already."""

    arguments: dict[str, str]


class Completion:
    """Suggestions; `total` and `has_more` where there are more than were given."""

    __slots__ = ("has_more", "total", "values")

    def __init__(self, values: Iterable[str], total: int | None = None, has_more: bool | None = None) -> None:
        self.values, self.total, self.has_more = [str(value) for value in values], total, has_more


def read_request(params: Json) -> tuple[Reference, Argument, CompletionContext]:
    """Return the parameters of completion/complete.

    Raises:
        McpError: INVALID_PARAMS when something is missing or has the wrong type.
    """
    reference, argument = params.get("ref"), params.get("argument")
    if not isinstance(reference, dict) or reference.get("type") not in ("ref/prompt", "ref/resource"):
        raise McpError(INVALID_PARAMS, "Invalid params: ref must be an object of type ref/prompt or ref/resource")
    wanted = "name" if reference["type"] == "ref/prompt" else "uri"
    if not isinstance(reference.get(wanted), str):
        raise McpError(INVALID_PARAMS, f"Invalid params: ref.{wanted} must be a string")
    if not isinstance(argument, dict) or not all(isinstance(argument.get(key), str) for key in ("name", "value")):
        raise McpError(INVALID_PARAMS, "Invalid params: argument must have name and value, both strings")
    context = params.get("context") or {}
    settled = context.get("arguments") if isinstance(context, dict) else None
    return (
        Reference(reference["type"], reference.get("name", ""), reference.get("uri", "")),
        Argument(argument["name"], argument["value"]),
        CompletionContext(settled if isinstance(settled, dict) else {}),
    )


def read_completion(value: Any) -> Json:
    """Return what the handler returned, as the result's `completion` member: a list of strings, a Completion, or None."""
    if value is None:
        value = Completion([])
    if not isinstance(value, Completion):
        value = Completion(value)
    completion: Json = {"values": value.values[:_MOST]}
    total = value.total if value.total is not None else len(value.values)
    completion["total"] = total
    completion["hasMore"] = value.has_more if value.has_more is not None else total > len(completion["values"])
    return completion
