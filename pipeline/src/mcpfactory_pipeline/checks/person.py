"""Whom a server asks while one of its tools is called: answers as it was told, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from mcpfactory_pipeline.checks.exchange import Json
from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.checks.samples import sample

__all__ = ["Person", "agreeing"]

_DECLINES: Final = {"action": "decline"}


class Person:
    """The `elicitation` of a client.

    Attributes:
        answer: the members of the form as a case gives them, "agrees" (to whatever the form is), or "declines".
        asked: the questions so far.
        faults: answers that do not fit the form that was shown.
    """

    def __init__(self, answer: Mapping[str, Any] | Literal["agrees", "declines"] = "declines") -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.faults: list[str] = []

    def __call__(self, params: Json) -> Json:
        """Return the result of `elicitation/create`."""
        self.asked.append(str(params.get("message", "")))
        schema = params.get("requestedSchema")
        if self.answer == "declines" or not isinstance(
            schema, dict
        ):  # a page to open is nothing that anybody sees here
            return dict(_DECLINES)
        content = dict(agreeing(schema) if self.answer == "agrees" else self.answer)
        if error := instance_error(content, schema):
            self.faults.append(f"the answer of the person does not fit the form: {error}")
            return dict(_DECLINES)
        return {"action": "accept", "content": content}


def agreeing(schema: Mapping[str, Any]) -> Json:
    """Return the members of a form as somebody fills them in who agrees: yes to what can be answered so, and what is required."""
    properties, required = schema.get("properties"), schema.get("required")
    declared = properties if isinstance(properties, dict) else {}
    needed = required if isinstance(required, list) else []
    return {
        name: True if _is_boolean(part) else sample(part, schema)
        for name, part in declared.items()
        if name in needed or _is_boolean(part)
    }


def _is_boolean(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "boolean"
