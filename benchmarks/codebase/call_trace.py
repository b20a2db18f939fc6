"""Which files of ours one operation of an API document passes on its way to Python, and one tool call over stdio.

Each is carried out in a process of its own, in which the calls of our modules are traced, so that another tree can be asked as
well: `trace(tree)` puts its sources onto PYTHONPATH. Entry points are named with the places that they had before.

    python benchmarks/codebase/call_trace.py [TREE]
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from types import FrameType
from typing import Any, Final

SOURCES: Final = ("factory/runtime/src", "factory/codegen/src", "pipeline/src", "factory/cli/src")
PACKAGES: Final = ("mcpfactory_runtime", "mcpfactory_codegen", "mcpfactory_pipeline", "mcpfactory")
SUBJECTS: Final = ("operation", "call")
_SECONDS: Final = 120

_READ_API: Final = (
    "mcpfactory_codegen.openapi:read_source",
    "mcpfactory_codegen.sources.reading:read_source",
    "mcpfactory_codegen.source:read_source",
    "mcpfactory_codegen.openapi:read_api",
)
_LOAD: Final = ("mcpfactory_codegen.read.document:load", "mcpfactory_codegen.document:load")
_SELECT: Final = ("mcpfactory_codegen.select:select",)
_SELECTION: Final = ("mcpfactory_codegen.curation:Selection", "mcpfactory_codegen.select:Selection")
_NAME_API: Final = ("mcpfactory_codegen.naming:name_api",)
_DESCRIBE: Final = ("mcpfactory_codegen.describe:make_api_tools", "mcpfactory_codegen.describe.tools:make_api_tools")
_EMIT: Final = ("mcpfactory_codegen.emit:emit",)
_OPTIONS: Final = ("mcpfactory_codegen.emit:Options",)

_DOCUMENT: Final = """\
openapi: 3.1.0
info: {title: TITLE, version: 1.0.0, description: The TITLE.}
servers: [{url: https://api.example.com/v1}]
security: [{apiKey: []}]
paths:
  /TITLEs/{TITLEId}:
    get:
      operationId: getTITLE
      tags: [TITLEs]
      summary: Return one TITLE.
      parameters:
        - {name: TITLEId, in: path, required: true, description: Which one., schema: {type: integer}}
        - {name: language, in: query, schema: {type: string, enum: [en, de]}}
      responses:
        "200":
          description: The TITLE.
          content: {application/json: {schema: {$ref: "#/components/schemas/TITLE"}}}
components:
  securitySchemes: {apiKey: {type: apiKey, in: header, name: X-Api-Key}}
  schemas:
    TITLE: {type: object, required: [id], properties: {id: {type: integer}, name: {type: string, description: A name.}}}
"""


_CLIENT: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "way", "version": "1"}}
_CALL: Final = {"name": "add", "arguments": {"a": 1, "b": 2}}
_MESSAGES: Final[tuple[dict[str, Any], ...]] = (
    {"id": 1, "method": "initialize", "params": _CLIENT},
    {"method": "notifications/initialized"},
    *({"id": number, "method": "tools/call", "params": _CALL} for number in (2, 3, 4)),
)


@dataclass(frozen=True, slots=True)
class CallTrace:
    """The files in the order in which they are first entered, and how often one calls another.

    `back` counts the calls into a file that was entered before the file that calls: most ask what all share (records, texts).
    `circles` are what is wrong: files whose calls lead back to themselves.
    """

    files: tuple[str, ...]
    calls: dict[tuple[str, str], int]

    @property
    def back(self) -> int:
        """Return how many calls go against the order of the files."""
        place = {name: index for index, name in enumerate(self.files)}
        return sum(count for (caller, callee), count in self.calls.items() if place[callee] < place[caller])

    @property
    def circles(self) -> list[tuple[str, ...]]:
        """Return the groups of files whose calls lead back to them: where the way is not one direction."""
        reached: dict[str, set[str]] = {
            name: {callee for caller, callee in self.calls if caller == name} for name in self.files
        }
        for middle in self.files:
            for name in self.files:
                if middle in reached[name]:
                    reached[name] |= reached[middle]
        groups = {
            tuple(other for other in self.files if other in reached[name] and name in reached[other])
            for name in self.files
            if name in reached[name]
        }
        return sorted(groups)


def trace(subject: str, tree: Path | None = None) -> CallTrace:
    """Return the way of one `operation` or one `call` in a tree of this repository; None is the one that this file stands in."""
    tree = tree or Path(__file__).resolve().parents[2]
    path = os.pathsep.join(str(tree / source) for source in SOURCES)
    command = [sys.executable, str(Path(__file__).resolve()), "--traced", subject]
    environ = {**os.environ, "PYTHONPATH": path}
    messages = _MESSAGES if subject == "call" else ()
    with tempfile.TemporaryFile("w+") as told:
        with subprocess.Popen(command, env=environ, stdin=PIPE, stdout=PIPE, stderr=told, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for message in messages:
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
                process.stdin.flush()
                if "id" in message:
                    process.stdout.readline()
            process.stdin.close()
            failed = process.wait(_SECONDS)
        told.seek(0)
        lines = told.read().splitlines()
    if failed:
        raise RuntimeError("\n".join([f"the way of one {subject} in {tree} could not be traced:", *lines]))
    found = json.loads(lines[-1])
    return CallTrace(tuple(found["files"]), {(caller, callee): count for caller, callee, count in found["calls"]})


class _Tracer:
    """Records which file of ours calls which; code of modules that are only now imported is left out."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []  # caller, callee, function
        roots = [Path(str(importlib.import_module(name).__path__[0])) for name in PACKAGES[:2]]
        self._roots = [f"{root}{os.sep}" for root in roots]
        self._names: dict[str, str] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take one event of `sys.setprofile`."""
        if event == "call" and (callee := self._file(frame)) and frame.f_code.co_name != "<module>":
            above = frame.f_back
            while above is not None and not self._file(above):
                above = above.f_back
            self.calls.append((self._file(above) if above is not None else "", callee, frame.f_code.co_name))

    def _file(self, frame: FrameType) -> str:
        name = frame.f_code.co_filename
        if name not in self._names:
            self._names[name] = next((name.split("/src/", 1)[1] for root in self._roots if name.startswith(root)), "")
        return self._names[name]


def _summed(calls: Iterable[tuple[str, str, str]]) -> str:
    files: dict[str, None] = {}
    between: dict[tuple[str, str], int] = {}
    for caller, callee, _ in calls:
        files.setdefault(callee)
        if caller and caller in files and caller != callee:
            between[caller, callee] = between.get((caller, callee), 0) + 1
    return json.dumps({"files": list(files), "calls": [[*pair, count] for pair, count in between.items()]})


def _named(places: tuple[str, ...]) -> Any:
    """Return what stands at the first of some places that exists."""
    for place in places:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
    raise LookupError(f"nothing of {', '.join(places)} is in this tree")


def _trace_operation() -> None:
    """One document with one GET operation, from bytes to text; another one before, so that everything is imported."""
    steps = [_named(one) for one in (_LOAD, _READ_API, _SELECT, _SELECTION, _NAME_API, _DESCRIBE, _EMIT, _OPTIONS)]
    with tempfile.TemporaryDirectory() as folder:
        documents = [Path(folder, f"{title}.yaml") for title in ("film", "book")]
        for document in documents:
            document.write_text(_DOCUMENT.replace("TITLE", document.stem), "utf-8")
        _generate(documents[0], steps)
        tracer = _Tracer()
        sys.setprofile(tracer)
        try:
            _generate(documents[1], steps)
        finally:
            sys.setprofile(None)
    sys.stderr.write(f"\n{_summed(tracer.calls)}\n")


def _generate(document: Path, steps: list[Any]) -> None:
    load, read_api, select, selection, name_api, make_api_tools, emit, options = steps
    api = select(read_api(load(document)), selection())
    names = name_api(api, server="books")
    code_only = {"tests": False} if "tests" in options.__dataclass_fields__ else {}  # `emit` once made the tests, too
    emit(api, names, make_api_tools(api, names).tools, options("books", "books_mcp", **code_only))


def _trace_call() -> None:
    """Two calls of a tool over stdio: what lies between its two runs is the end of the first call and the beginning of the second."""
    from mcpfactory_runtime import Server  # noqa: PLC0415 - of the tree that is asked

    server = Server("traced", version="1.0.0")
    tracer = _Tracer()
    runs: list[int] = []

    async def add(a: int, b: int) -> int:
        """Return the sum."""
        runs.append(len(tracer.calls))
        return a + b

    server.tool(add)
    sys.setprofile(tracer)
    try:
        server.run_stdio()
    finally:
        sys.setprofile(None)
    between = tracer.calls[runs[1] : runs[2]]
    start = next((index for index, (_, _, name) in enumerate(between) if name == "data_received"), 0)
    sys.stderr.write(f"\n{_summed(between[start:] + between[:start])}\n")


def _print(ways: dict[str, CallTrace], write: Callable[[str], Any]) -> None:
    for subject, way in ways.items():
        calls = sum(way.calls.values())
        write(f"one {subject}: {len(way.files)} files, {calls} calls between files, {way.back} against their order\n")
        for circle in way.circles:
            write(f"  in a circle: {', '.join(circle)}\n")
        for name in way.files:
            write(f"  {name}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--traced"]:
        {"operation": _trace_operation, "call": _trace_call}[sys.argv[2]]()
    else:
        asked = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else None
        _print({subject: trace(subject, asked) for subject in SUBJECTS}, sys.stdout.write)
