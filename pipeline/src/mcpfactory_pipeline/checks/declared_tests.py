"""Declared tests in YAML next to a server: each states a tool, arguments and the expected result.

The tests of a file share one server process and one API: a stub, a recording proxy, or the real API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from mcpfactory_codegen.ir import ProblemCollector
from mcpfactory_codegen.read.overlay import JsonPathError, find_by_json_path
from mcpfactory_codegen.read.parse import ParseError, parse
from mcpfactory_codegen.text import describe_unknown_key, dump_json
from mcpfactory_pipeline.base.errors import ConfigError, ServerError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.checks.call_plan import ApiVariables
from mcpfactory_pipeline.checks.exchange import mask_secrets, result_text
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_pipeline.checks.recorder import RequestRecorder, recording_path
from mcpfactory_pipeline.launch.start_command import convert_client_error, parse_start_script_error
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError, connect_stdio
from mcpfactory_runtime.upstream.stub import StubUpstream, load_cases

# Field → type and example.
_FIELDS: Final[Mapping[str, tuple[type, str]]] = {
    "arguments": (dict, "arguments: {q: tea}"),
    "contains": (str, 'contains: "some words"'),
    "expect": (list, "expect:\n  - path: $.total\n    equals: 2"),
    "upstream": (list, "upstream: a list of {request, response}"),
    "snapshot": (bool, "snapshot: true"),
}
CHECKS: Final = ("equals", "exists", "count", "matches", "schema")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "exists": (bool,),
    "count": (int,),
    "matches": (str,),
    "schema": (dict, bool),
}


@dataclass(frozen=True, slots=True)
class DeclaredTest:
    """Declared test. `upstream` has stub cases for this test only.

    `expect` has objects with a `path` (JSONPath into the result's data) and at least one of `CHECKS`.
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


def read_declared_tests(folder: Path) -> tuple[DeclaredTest, ...]:
    """Return the tests in `tests/*.yaml` of the server in `folder`.

    Raises:
        ConfigError: a file or a test is invalid.
    """
    found: list[DeclaredTest] = []
    for file in sorted([*(folder / "tests").glob("*.yaml"), *(folder / "tests").glob("*.yml")]):
        found += _read(file)
    seen: set[tuple[Path, str]] = set()
    for one in found:
        if (one.file, one.name) in seen:
            raise ConfigError(f"{one.file}: two tests have the name {one.name!r}", hint="rename one of the two tests")
        seen.add((one.file, one.name))
    return tuple(found)


def _read(file: Path) -> list[DeclaredTest]:
    problems = ProblemCollector()
    try:
        data, _ = parse(file.read_bytes(), problems)
    except (OSError, ParseError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint=getattr(error, "hint", "")) from error
    # Otherwise, for example, a second key `tests:` would silently replace the first.
    if found := problems.all():
        raise ConfigError(
            f"{file}: {found[0].pointer}: {found[0].message}", hint="write exactly one list of tests in each file"
        )
    tests = data.get("tests") if isinstance(data, dict) else None
    if not isinstance(tests, list) or set(data) - {"tests"}:
        raise ConfigError(f"{file} is not a list of tests", hint="write the tests as a list below the key tests")
    return [_test(file, number, one) for number, one in enumerate(tests, 1)]


def _test(file: Path, number: int, one: Any) -> DeclaredTest:
    where = f"{file}: test {number}"
    if not isinstance(one, dict):
        raise ConfigError(f"{where} is not an object", hint="write a list item such as - tool: list_books")
    name, tool = one.get("name"), one.get("tool")
    if not isinstance(tool, str) or not tool:
        raise ConfigError(f"{where} has no tool", hint="write a line such as tool: list_books")
    _refuse_unknown(where, one, ("name", "tool", "status", *_FIELDS))
    for key, (kind, example) in _FIELDS.items():
        if key in one and not isinstance(one[key], kind):
            raise ConfigError(f"{where}: {key} has the invalid value {one[key]!r}", hint=example)
    status = one.get("status", "ok")
    if status not in ("ok", "error"):
        raise ConfigError(
            f"{where}: status has the invalid value {status!r}", hint="write status: ok, or status: error"
        )
    for expected in one.get("expect", ()):
        _check(where, expected)
    for case in one.get("upstream", ()):
        if not isinstance(case, dict) or not isinstance(case.get("request"), dict) or "response" not in case:
            raise ConfigError(
                f"{where}: each entry of 'upstream' needs a request and a response",
                hint="read docs/how-to/declare-tests.md",
            )
    name = name if isinstance(name, str) and name else f"{tool} {number}"
    more: dict[str, Any] = {
        key: tuple(one[key]) if kind is list else one[key] for key, (kind, _) in _FIELDS.items() if key in one
    }
    return DeclaredTest(name, tool, file, status=status, **more)


def _check(where: str, expected: Any) -> None:
    if not isinstance(expected, dict) or not isinstance(expected.get("path"), str):
        raise ConfigError(
            f"{where}: an expectation has no path", hint="write a list item such as - {path: $.total, equals: 2}"
        )
    _refuse_unknown(where, expected, ("path", *CHECKS))
    if not set(expected) & set(CHECKS):
        raise ConfigError(f"{where}: {expected['path']} has no expected value", hint=f"use one of {', '.join(CHECKS)}")
    for key, kinds in _KINDS.items():
        value = expected.get(key)
        if key in expected and (not isinstance(value, kinds) or (kinds == (int,) and isinstance(value, bool))):
            raise ConfigError(
                f"{where}: {key} of {expected['path']} has the invalid value {value!r}",
                hint="read docs/how-to/declare-tests.md",
            )


def _refuse_unknown(where: str, one: Mapping[str, Any], fields: tuple[str, ...]) -> None:
    if found := describe_unknown_key(one, fields, where):
        raise ConfigError(*found)


_SHOWN: Final = 200  # maximum characters of a value in a message


def declared_test_faults(test: DeclaredTest, result: Mapping[str, Any], snapshot: str | None = None) -> list[str]:
    """Return the differences between a call's result and the test; empty if the test passes.

    `snapshot` is the stored text of an earlier answer (see `snapshot_text`), or None.
    """
    text, failed = result_text(result), result.get("isError") is True
    found = []
    if failed != (test.status == "error"):
        words = "returned an error" if failed else "succeeded, but an error was expected"
        found.append(f"the call {words}: {text[:_SHOWN]!r}")
    if test.contains and test.contains not in text:
        found.append(f"the answer does not contain {test.contains!r}: {text[:_SHOWN]!r}")
    data = _data(result, text)
    for expected in test.expect:
        found += [f"{expected['path']}: {words}" for words in _faults(expected, data)]
    if snapshot is not None and snapshot != snapshot_text(result):
        found.append("the answer differs from the snapshot; mcpfactory test NAME --update stores the new answer")
    return found


def snapshot_text(result: Mapping[str, Any]) -> str:
    """Return an answer as the text of a snapshot."""
    text = result_text(result)
    kept = {"isError": result.get("isError") is True, "data": _data(result, text)}
    return json.dumps(kept, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _data(result: Mapping[str, Any], text: str) -> Any:
    """Return the data that JSONPaths apply to: structured content, else text parsed as JSON, else plain text."""
    if "structuredContent" in result:
        return result["structuredContent"]
    try:
        return json.loads(text)
    except ValueError:
        return text


def _faults(expected: Mapping[str, Any], data: Any) -> Iterator[str]:
    try:
        values = [value for _, value in find_by_json_path(data, expected["path"])]
    except JsonPathError as error:
        yield f"{error}; {error.hint}"
        return
    if "exists" in expected and bool(values) != expected["exists"]:
        yield "the value exists" if values else "the value is missing"
    if "count" in expected and len(values) != expected["count"]:
        yield f"found {len(values)}, not {expected['count']}"
    rest = [check for check in ("equals", "matches", "schema") if check in expected]
    if rest and not values:
        yield "the value is missing"
    for value in values if rest else ():
        yield from _value_faults(expected, value)


def _value_faults(expected: Mapping[str, Any], value: Any) -> Iterator[str]:
    shown = dump_json(value)[:_SHOWN]
    if "equals" in expected and dump_json(value) != dump_json(expected["equals"]):
        yield f"is {shown}, not {dump_json(expected['equals'])[:_SHOWN]}"
    if "matches" in expected:
        try:
            if not isinstance(value, str) or not re.search(expected["matches"], value):
                yield f"is {shown}, which does not match {expected['matches']!r}"
        except re.error as error:
            yield f"{expected['matches']!r} is not a regular expression: {error}"
    if "schema" in expected:
        problem = schema_error(expected["schema"]) or instance_error(value, expected["schema"])
        if problem:
            yield f"is {shown}: {problem}"


Mode = Literal["replay", "record", "live"]


@dataclass(frozen=True, slots=True)
class DeclaredTestSetup:
    """Settings for the servers that run declared tests.

    `secrets` (variable → value) must not appear in recordings or snapshots. `api` has the environment variables for the
    API's address.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    api: ApiVariables = field(default_factory=ApiVariables)
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class DeclaredTestOutcome:
    """Result of one declared test.

    `faults` is empty if the test passed. `skipped` is the reason if the test was not run.
    """

    test: DeclaredTest
    faults: tuple[str, ...] = ()
    skipped: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        about = {"name": self.test.name, "tool": self.test.tool, "file": self.test.file.name}
        return {
            **about,
            "passed": not (self.faults or self.skipped),
            "faults": list(self.faults),
            "skipped": self.skipped,
        }


async def run_declared_tests(
    tests: Sequence[DeclaredTest],
    setup: DeclaredTestSetup,
    *,
    mode: Mode = "replay",
    upstream: str = "",
    update: bool = False,
) -> list[DeclaredTestOutcome]:
    """Run the tests, with one server process per test file, and return the outcomes in the order of the tests.

    `replay`: a stub API gives the answers in the recording next to the file, and the answers in the test. `record`: a
    proxy calls `upstream` and writes recordings of the passed tests. `live`: the real API is called, but only through
    tools with `readOnlyHint`. `update`: the answers replace the stored snapshots.

    Raises:
        ServerError: the server does not start.
        ConfigError: a recording cannot be read.
    """
    found: list[DeclaredTestOutcome] = []
    for file in dict.fromkeys(test.file for test in tests):
        own = [test for test in tests if test.file == file]
        try:
            found += await _TestFile(file, setup, mode, update).run(own, upstream)
        except (ConnectionLostError, ProtocolError, OSError, TimeoutError) as error:
            if (told := parse_start_script_error(str(error))) is not None:
                raise told from error
            mistake = convert_client_error(error)
            raise ServerError(f"the server of {file.name} cannot be tested: {mistake}", hint=mistake.hint) from error
    return found


@dataclass(frozen=True, slots=True)
class _TestFile:
    file: Path
    setup: DeclaredTestSetup
    mode: Mode
    update: bool

    async def run(self, tests: Sequence[DeclaredTest], upstream: str) -> list[DeclaredTestOutcome]:
        async with AsyncExitStack() as stack:
            environ = dict(self.setup.environ)
            stub = recorder = None
            if self.mode == "replay":
                stub = await stack.enter_async_context(StubUpstream(self._cases(tests)))
                environ = self.setup.api.with_api(environ, stub.base_url)
            elif self.mode == "record":
                beside = self.setup.api.beside(upstream, environ)
                recorder = stack.enter_context(RequestRecorder(upstream, self.setup.secrets, beside))
                environ = self.setup.api.with_api(environ, recorder.additional_servers_url, recorder.base_url)
            client = await stack.enter_async_context(
                connect_stdio(
                    self.setup.command, env=environ, inherit=False, cwd=self.setup.cwd, timeout=self.setup.timeout
                )
            )
            tools = {tool["name"]: tool for tool in await client.list_tools()}
            found, kept = [], []
            for test in tests:
                before = len(recorder.cases) if recorder else 0
                outcome = await self._one(client, tools, test, stub)
                found.append(outcome)
                if recorder and not outcome.faults:
                    kept += [{"tool": test.tool, "title": test.name, **case} for case in recorder.cases[before:]]
            if recorder and kept:
                text = json.dumps({"cases": kept}, indent=2, ensure_ascii=False) + "\n"
                replace_file(recording_path(self.file), text.encode())
        return found

    def _cases(self, tests: Sequence[DeclaredTest]) -> list[dict[str, Any]]:
        recording = recording_path(self.file)
        try:
            cases = load_cases(recording) if recording.is_file() else []
            StubUpstream(cases)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{recording} is not a valid recording: {error}", hint="record the responses again"
            ) from error
        return [*(dict(case) for test in tests for case in test.upstream), *cases]

    async def _one(
        self, client: Client, tools: Mapping[str, Any], test: DeclaredTest, stub: StubUpstream | None
    ) -> DeclaredTestOutcome:
        tool = tools.get(test.tool)
        if tool is None:
            return DeclaredTestOutcome(test, (f"the server has no tool {test.tool}",))
        if self.mode == "live" and (tool.get("annotations") or {}).get("readOnlyHint") is not True:
            return DeclaredTestOutcome(test, skipped="it is not marked readOnlyHint, and live tests only read")
        seen, unanswered = (len(stub.mismatches), len(stub.unanswered)) if stub else (0, 0)
        try:
            result = await client.call_tool(test.tool, dict(test.arguments))
        except ProtocolError as error:
            return DeclaredTestOutcome(test, (f"the call was answered with a protocol error: {error}",))
        result = mask_secrets(result, self.setup.secrets)
        faults = declared_test_faults(test, result, self._snapshot(test, result))
        faults += [f"unexpected API request: {told}" for told in (stub.mismatches[seen:] if stub else ())]
        if faults and stub and (missing := stub.unanswered[unanswered:]):  # this cause explains all faults
            record = f"mcpfactory test {self.file.parent.parent.name} --record URL"
            faults = [f"no recording answers {missing[0]}; hint: {record}"]
        return DeclaredTestOutcome(test, tuple(faults))

    def _snapshot(self, test: DeclaredTest, result: Mapping[str, Any]) -> str | None:
        """Return the stored snapshot; if it is missing or must be updated, store the new answer first."""
        if not test.snapshot or self.mode == "live":
            return None
        place = test.file.with_name(f"{test.file.stem}.snapshots.json")
        try:
            known = json.loads(place.read_bytes()) if place.is_file() else {}
            text = known.get(test.name)
        except (OSError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"{place} is not a valid snapshot file: {error}",
                hint="delete the file, then write a new file with --update",
            ) from error
        if self.update or self.mode == "record":
            known[test.name] = text = json.loads(snapshot_text(result))
            replace_file(place, (json.dumps(known, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())
        if text is None:
            return "no answer was stored"
        return json.dumps(text, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
