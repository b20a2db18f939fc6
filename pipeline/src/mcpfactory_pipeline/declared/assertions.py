"""Whether a tool's answer is what a declared test wants. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcpfactory_codegen.read.overlay import PathError, find
from mcpfactory_codegen.text import compact
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_pipeline.declared.definition import DeclaredTest

__all__ = ["check_result", "snapshot_text"]

_SHOWN: Final = 200  # characters of one value


def check_result(test: DeclaredTest, result: Mapping[str, Any], snapshot: str | None = None) -> list[str]:
    """Return what is wrong with the result of the call, in words; empty when it is as declared.

    `snapshot` is the kept text of an earlier answer (see `snapshot_text`), where the test wants one and there is one.
    """
    text, failed = _text(result), result.get("isError") is True
    found = []
    if failed != (test.status == "error"):
        words = "answered an error" if failed else "was answered, and an error was expected"
        found.append(f"the call {words}: {text[:_SHOWN]!r}")
    if test.contains and test.contains not in text:
        found.append(f"the answer does not contain {test.contains!r}: {text[:_SHOWN]!r}")
    data = _data(result, text)
    for expected in test.expect:
        found += [f"{expected['path']}: {words}" for words in _faults(expected, data)]
    if snapshot is not None and snapshot != snapshot_text(result):
        found.append("the answer is not the one that was kept; mcpfactory test NAME --update keeps the new one")
    return found


def snapshot_text(result: Mapping[str, Any]) -> str:
    """Return an answer as a snapshot keeps it."""
    text = _text(result)
    kept = {"isError": result.get("isError") is True, "data": _data(result, text)}
    return json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _text(result: Mapping[str, Any]) -> str:
    content = result.get("content")
    blocks = content if isinstance(content, list) else []
    return "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and "text" in block)


def _data(result: Mapping[str, Any], text: str) -> Any:
    """Return what paths look into: structured content, else the text as JSON, else the text."""
    if "structuredContent" in result:
        return result["structuredContent"]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _faults(expected: Mapping[str, Any], data: Any) -> Iterator[str]:
    try:
        values = [value for _, value in find(data, expected["path"])]
    except PathError as error:
        yield f"{error}; {error.hint}"
        return
    if "exists" in expected and bool(values) != expected["exists"]:
        yield "it is there" if values else "it is not there"
    if "count" in expected and len(values) != expected["count"]:
        yield f"found {len(values)}, not {expected['count']}"
    rest = [check for check in ("equals", "matches", "schema") if check in expected]
    if rest and not values:
        yield "it is not there"
    for value in values if rest else ():
        yield from _value_faults(expected, value)


def _value_faults(expected: Mapping[str, Any], value: Any) -> Iterator[str]:
    shown = compact(value)[:_SHOWN]
    if "equals" in expected and compact(value) != compact(expected["equals"]):
        yield f"is {shown}, not {compact(expected['equals'])[:_SHOWN]}"
    if "matches" in expected:
        try:
            if not isinstance(value, str) or not re.search(expected["matches"], value):
                yield f"is {shown}, which does not match {expected['matches']!r}"
        except re.error as error:
            yield f"{expected['matches']!r} is no regular expression: {error}"
    if "schema" in expected:
        problem = schema_error(expected["schema"]) or instance_error(value, expected["schema"])
        if problem:
            yield f"is {shown}: {problem}"
