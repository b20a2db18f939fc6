"""Declared tests: read them from `tests/*.yaml` and check their assertions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from mcpfactory_codegen.ir import Problems
from mcpfactory_codegen.read.overlay import PathError, find
from mcpfactory_codegen.read.parse import ParseError, parse
from mcpfactory_codegen.text import compact, unknown_field
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error

_FIELDS: Final = ("name", "tool", "arguments", "status", "contains", "expect", "snapshot", "upstream")
CHECKS: Final = ("equals", "exists", "count", "matches", "schema")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "exists": (bool,),
    "count": (int,),
    "matches": (str,),
    "schema": (dict, bool),
}


@dataclass(frozen=True, slots=True)
class DeclaredTest:
    """Declared test. `upstream` are stub cases for this test only; `file` is its file.

    `expect` are objects with a `path` (JSONPath into the result's data) and one or more of `CHECKS`.
    """

    name: str
    tool: str
    file: Path
    arguments: Mapping[str, Any] = field(default_factory=dict)
    status: Literal["ok", "error"] = "ok"
    contains: str = ""
    expect: tuple[Mapping[str, Any], ...] = ()
    snapshot: bool = False
    upstream: tuple[Mapping[str, Any], ...] = ()


def read_tests(folder: Path) -> tuple[DeclaredTest, ...]:
    """Return the tests in `tests/*.yaml` below the server's `folder`.

    Raises:
        ConfigError: for what cannot be read as meant.
    """
    found: list[DeclaredTest] = []
    for file in sorted([*(folder / "tests").glob("*.yaml"), *(folder / "tests").glob("*.yml")]):
        found += _read(file)
    seen: set[tuple[Path, str]] = set()
    for one in found:
        if (one.file, one.name) in seen:
            raise ConfigError(f"{one.file}: there are two tests {one.name!r}", hint="give one another name")
        seen.add((one.file, one.name))
    return tuple(found)


def _read(file: Path) -> list[DeclaredTest]:
    problems = Problems()
    try:
        data, _ = parse(file.read_bytes(), problems)
    except (OSError, ParseError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint=getattr(error, "hint", "")) from error
    if found := problems.all():  # such as a second `tests:`, which would silently take the place of the first
        raise ConfigError(f"{file}: {found[0].pointer}: {found[0].message}", hint="a file has one list of tests")
    tests = data.get("tests") if isinstance(data, dict) else None
    if not isinstance(tests, list) or set(data) - {"tests"}:
        raise ConfigError(f"{file} is no list of tests", hint="tests:\n  - name: …\n    tool: …")
    return [_test(file, number, one) for number, one in enumerate(tests, 1)]


def _test(file: Path, number: int, one: Any) -> DeclaredTest:
    where = f"{file}: test {number}"
    if not isinstance(one, dict):
        raise ConfigError(f"{where} is no object", hint="- name: …\n  tool: …")
    name, tool = one.get("name"), one.get("tool")
    if not isinstance(tool, str) or not tool:
        raise ConfigError(f"{where} names no tool", hint="tool: list_books")
    _refuse_unknown(where, one, _FIELDS)
    name = name if isinstance(name, str) and name else f"{tool} {number}"
    _check_type(where, one, "arguments", dict, "arguments: {q: tea}")
    _check_type(where, one, "contains", str, 'contains: "some words"')
    _check_type(where, one, "expect", list, "expect:\n  - path: $.total\n    equals: 2")
    _check_type(where, one, "upstream", list, "upstream: a list of {request, response}")
    _check_type(where, one, "snapshot", bool, "snapshot: true")
    status = one.get("status", "ok")
    if status not in ("ok", "error"):
        raise ConfigError(f"{where}: status is {status!r}", hint="status: ok, or status: error")
    for expected in one.get("expect", ()):
        _check(where, expected)
    for case in one.get("upstream", ()):
        if not isinstance(case, dict) or not isinstance(case.get("request"), dict) or "response" not in case:
            raise ConfigError(
                f"{where}: an entry of upstream has no request and response", hint="docs/how-to/declare-tests.md"
            )
    return DeclaredTest(
        name,
        tool,
        file,
        one.get("arguments", {}),
        status,
        one.get("contains", ""),
        tuple(one.get("expect", ())),
        one.get("snapshot", False),
        tuple(one.get("upstream", ())),
    )


def _check(where: str, expected: Any) -> None:
    if not isinstance(expected, dict) or not isinstance(expected.get("path"), str):
        raise ConfigError(f"{where}: an expectation has no path", hint="- path: $.total\n  equals: 2")
    _refuse_unknown(where, expected, ("path", *CHECKS))
    if not set(expected) & set(CHECKS):
        raise ConfigError(f"{where}: {expected['path']} expects nothing", hint=f"one of {', '.join(CHECKS)}")
    for key, kinds in _KINDS.items():
        value = expected.get(key)
        if key in expected and (not isinstance(value, kinds) or (kinds == (int,) and isinstance(value, bool))):
            raise ConfigError(f"{where}: {key} of {expected['path']} is {value!r}", hint="docs/how-to/declare-tests.md")


def _refuse_unknown(where: str, one: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    if found := unknown_field(one, fields, where):
        raise ConfigError(*found)


def _check_type(where: str, one: Mapping[str, Any], key: str, kind: type, hint: str) -> None:
    if key in one and not isinstance(one[key], kind):
        raise ConfigError(f"{where}: {key} is {one[key]!r}", hint=hint)


_SHOWN: Final = 200  # characters of one value


def check_result(test: DeclaredTest, result: Mapping[str, Any], snapshot: str | None = None) -> list[str]:
    """Return the differences between a call's result and the test; empty if the test passes.

    `snapshot` is the stored text of an earlier answer (see `snapshot_text`), if the test uses one and it exists.
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
    """Return the data that paths apply to: structured content, else the text as JSON, else the text."""
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
