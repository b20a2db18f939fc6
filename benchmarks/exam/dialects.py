"""Every tool of real documents in the dialects of clients with limits: what a client could not take, and what it costs.

`python -m benchmarks.exam dialects [--only stripe,slack]` prints a row for each document and dialect: tools, those that break one of
the dialect's limits, those whose sample arguments the dialect would refuse although the tool takes them, and tokens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema

from benchmarks.apis import DocumentError, path, select
from benchmarks.exam.outcome import Outcome, judged, unavailable
from mcpfactory_codegen.cases.cases import cases
from mcpfactory_codegen.describe.tools import describe_all
from mcpfactory_codegen.naming import name_api
from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.text import count_tokens
from mcpfactory_runtime.server.generated.dialects import DIALECTS, Limits, adapt_tool, shorten_names

__all__ = ["dialects"]

ALWAYS = "github,stripe"
COMBINING = frozenset({"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "dependentSchemas"})
DATA = frozenset({"const", "default", "enum", "example", "examples"})
NAMED = frozenset({"properties", "patternProperties"})


def dialects(only: str) -> Outcome:
    """Print the table, for the documents that `only` names or for two large ones."""
    try:
        files = {one.name: path(one) for one in select(only or ALWAYS)}
    except DocumentError as error:
        return unavailable(str(error))
    print(
        f"{'document':16} {'dialect':8} {'tools':>6} {'broken':>6} {'refusing':>8} {'tokens':>8} {'of':>8} {'seconds':>7}"
    )
    found = [one for name, file in files.items() for one in _document(name, file)]
    broken, refusing, tools = (sum(column) for column in zip(*found, strict=True))
    figure = f"{tools} tools in dialects: {broken} break a limit, {refusing} refuse sample arguments that they took"
    return judged(figure, good=not broken and not refusing)


def _document(name: str, file: Path) -> Iterator[tuple[int, int, int]]:
    api = read_api(load(str(file)))
    names = name_api(api, server=name)
    tools = describe_all(api, names).tools
    samples = {case["tool"]: case["arguments"] for case in cases(api, names, tools)}
    wires = [tool.listed() for tool in tools]
    for dialect, limits in DIALECTS.items():
        if limits is None:
            continue
        began = time.process_time()
        called = shorten_names((wire["name"] for wire in wires), limits.name)
        done = [{**adapt_tool(wire, limits), "name": called[wire["name"]]} for wire in wires]
        seconds = time.process_time() - began
        unique = len({wire["name"] for wire in done}) == len(done)
        broken = sum(_broken(wire, limits) for wire in done) + (not unique)
        refusing = sum(
            _takes(old, samples[old["name"]]) and not _takes(new, samples[old["name"]])
            for old, new in zip(wires, done, strict=True)
            if old["name"] in samples
        )
        tokens, before = (sum(map(count_tokens, listed)) for listed in (done, wires))
        cells = f"{len(done):6} {broken:6} {refusing:8} {tokens:8} {before:8} {seconds:7.2f}"
        print(f"{name:16} {dialect:8} {cells}", flush=True)
        yield broken, refusing, len(done)


def _takes(wire: Any, arguments: Any) -> bool:
    return jsonschema.Draft202012Validator(wire["inputSchema"]).is_valid(arguments)


def _broken(wire: Any, limits: Limits) -> bool:
    if len(wire["name"]) > limits.name:
        return True
    jsonschema.Draft202012Validator.check_schema(wire["inputSchema"])
    for at, schema in enumerate(_parts(wire["inputSchema"], named=False)):
        if schema.keys() & {"$ref", "$defs"} or (isinstance(schema.get("type"), list) and not limits.types):
            return True
        if schema.keys() & COMBINING and (at == 0 or limits.combinators == "nowhere"):
            return True
    return False


def _parts(schema: Any, *, named: bool) -> Iterator[Any]:
    if isinstance(schema, dict):
        if not named:
            yield schema
        for key, value in schema.items():
            if named or key not in DATA:
                yield from _parts(value, named=not named and key in NAMED)
    elif isinstance(schema, list):
        for one in schema:
            yield from _parts(one, named=False)
