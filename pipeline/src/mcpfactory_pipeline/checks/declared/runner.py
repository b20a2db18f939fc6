"""Running declared tests: a process of the server, an API to ask (stub, recorder or the real one), one call for each test."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mcpfactory_pipeline.base.errors import ConfigError, ServerError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.checks.call_plan import ApiVariables
from mcpfactory_pipeline.checks.declared.definition import DeclaredTest, check_result, snapshot_text
from mcpfactory_pipeline.checks.declared.recorder import RequestRecorder, recording_path
from mcpfactory_pipeline.checks.exchange import mask
from mcpfactory_pipeline.launch.diagnosis import client_failure, read_failure
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError, connect_stdio
from mcpfactory_runtime.upstream.stub import StubUpstream, load_cases

Mode = Literal["replay", "record", "live"]


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """Settings to start a server for its tests.

    `secrets` (variable → value) must not be in recordings or snapshots. `api` are the variables with its API's
    address.
    """

    command: Sequence[str]
    environ: Mapping[str, str]
    cwd: Path | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)
    api: ApiVariables = field(default_factory=ApiVariables)
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class DeclaredOutcome:
    """Result of one test: `faults` is empty if it passed; `skipped` is the reason if it was not run."""

    test: DeclaredTest
    faults: tuple[str, ...] = ()
    skipped: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        about = {"name": self.test.name, "tool": self.test.tool, "file": self.test.file.name}
        return {
            **about,
            "passed": not (self.faults or self.skipped),
            "faults": list(self.faults),
            "skipped": self.skipped,
        }


async def run_tests(
    tests: Sequence[DeclaredTest],
    bench: ServerSetup,
    *,
    mode: Mode = "replay",
    upstream: str = "",
    update: bool = False,
) -> list[DeclaredOutcome]:
    """Run the tests with one process per test file, and return the outcomes in the order of the tests.

    `replay` uses a stub that answers from the recording next to the file and from the test itself. `record` calls
    `upstream` and writes recordings of the calls that passed. `live` calls the real API, only with tools that have
    `readOnlyHint`. `update` stores the answers as new snapshots.

    Raises:
        ServerError: the server does not start.
        ConfigError: a recording cannot be read.
    """
    found: list[DeclaredOutcome] = []
    for file in dict.fromkeys(test.file for test in tests):
        own = [test for test in tests if test.file == file]
        try:
            found += await _TestFile(file, bench, mode, update).run(own, upstream)
        except (ConnectionLostError, ProtocolError, OSError, TimeoutError) as error:
            if (told := read_failure(str(error))) is not None:
                raise told from error
            mistake = client_failure(error)
            raise ServerError(f"the server of {file.name} cannot be tested: {mistake}", hint=mistake.hint) from error
    return found


@dataclass(frozen=True, slots=True)
class _TestFile:
    file: Path
    bench: ServerSetup
    mode: Mode
    update: bool

    async def run(self, tests: Sequence[DeclaredTest], upstream: str) -> list[DeclaredOutcome]:
        async with AsyncExitStack() as stack:
            environ = dict(self.bench.environ)
            stub = recorder = None
            if self.mode == "replay":
                stub = await stack.enter_async_context(StubUpstream(self._cases(tests)))
                environ = self.bench.api.with_api(environ, stub.base_url)
            elif self.mode == "record":
                beside = self.bench.api.beside(upstream, environ)
                recorder = stack.enter_context(RequestRecorder(upstream, self.bench.secrets, beside))
                environ = self.bench.api.with_api(environ, recorder.servers_url, recorder.base_url)
            client = await stack.enter_async_context(
                connect_stdio(
                    self.bench.command, env=environ, inherit=False, cwd=self.bench.cwd, timeout=self.bench.timeout
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
            raise ConfigError(f"{recording} is no recording: {error}", hint="record it again") from error
        return [*(dict(case) for test in tests for case in test.upstream), *cases]

    async def _one(
        self, client: Client, tools: Mapping[str, Any], test: DeclaredTest, stub: StubUpstream | None
    ) -> DeclaredOutcome:
        tool = tools.get(test.tool)
        if tool is None:
            return DeclaredOutcome(test, (f"the server has no tool {test.tool}",))
        if self.mode == "live" and (tool.get("annotations") or {}).get("readOnlyHint") is not True:
            return DeclaredOutcome(test, skipped="it is not marked readOnlyHint, and live tests only read")
        seen = len(stub.mismatches) if stub else 0
        try:
            result = await client.call_tool(test.tool, dict(test.arguments))
        except ProtocolError as error:
            return DeclaredOutcome(test, (f"the call was answered with a protocol error: {error}",))
        result = mask(result, self.bench.secrets)
        faults = check_result(test, result, self._snapshot(test, result))
        faults += [f"the API was asked otherwise: {told}" for told in (stub.mismatches[seen:] if stub else ())]
        return DeclaredOutcome(test, tuple(faults))

    def _snapshot(self, test: DeclaredTest, result: Mapping[str, Any]) -> str | None:
        """Return the stored answer; write it first if it is missing or must be updated."""
        if not test.snapshot or self.mode == "live":
            return None
        place = test.file.with_name(f"{test.file.stem}.snapshots.json")
        try:
            known = json.loads(place.read_bytes()) if place.is_file() else {}
            text = known.get(test.name)
        except (OSError, ValueError, AttributeError) as error:
            raise ConfigError(
                f"{place} is no file of snapshots: {error}", hint="delete it; --update writes it"
            ) from error
        if self.update or self.mode == "record":
            known[test.name] = text = json.loads(snapshot_text(result))
            replace_file(place, (json.dumps(known, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode())
        if text is None:
            return "nothing was kept"
        return json.dumps(text, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
