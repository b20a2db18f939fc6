"""`python -m benchmarks libraries`: what prescribed and likely libraries would cost a server on stdio, beside what it does today.

For each: the time and the memory that its import adds to a server that is already loaded (a fresh process each, the median of
`--rounds`), and for validators of JSON Schema the time to compile a schema and to judge arguments, by the processor's clock.
They are installed into an environment of their own; the runtime there is the one of this checkout. The figures stand in
docs/explanation/libraries.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uv import find_uv_bin

__all__ = ["main"]

_ROOT: Final = Path(__file__).resolve().parents[1]
_INSTALLED: Final = ("jsonschema==4.26.0", "jsonschema-rs==0.61.0", "fastjsonschema==2.22.3", "anyio==4.16.0")

# What runs in the other environment: after a server's own modules, the import, and what it added.
_IMPORT: Final = """
import json, sys, time
from pathlib import Path
from mcpfactory_runtime import Server
import mcpfactory_runtime.transports.stdio, mcpfactory_runtime.server.schema.json_schema
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4 / 1024
before, begin = resident(), time.perf_counter()
exec(sys.argv[1])
print(json.dumps([(time.perf_counter() - begin) * 1000, resident() - before]))
"""

# Three input schemas: plain arguments, a search with enumerations and lists, and the keywords that combine schemas.
_VALIDATE: Final = """
import json, sys, time
SCHEMAS = {
    "plain": ({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}, {"a": 1, "b": 2}),
    "search": (
        {"type": "object", "required": ["query"], "additionalProperties": False, "properties": {
            "query": {"type": "string", "minLength": 1, "maxLength": 200},
            "sort": {"type": "string", "enum": ["best", "newest", "price"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
            "price": {"type": "object", "properties": {"from": {"type": "number"}, "to": {"type": "number"}}}}},
        {"query": "tea", "sort": "newest", "limit": 20, "tags": ["green", "loose"], "price": {"from": 1.5, "to": 9}},
    ),
    "combined": (
        {"type": "object", "properties": {
            "target": {"oneOf": [
                {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
                {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "not": {"required": ["id"]}}]},
            "labels": {"type": "object", "patternProperties": {"^x-": {"type": "string"}}}},
         "required": ["target"], "if": {"required": ["labels"]}, "then": {"minProperties": 2}},
        {"target": {"name": "a"}, "labels": {"x-colour": "red"}},
    ),
}
def ours(schema):
    from mcpfactory_runtime.server.schema.json_schema import compile_schema
    return compile_schema(schema).validate
def jsonschema(schema):
    from jsonschema import Draft202012Validator
    return Draft202012Validator(schema).validate
def jsonschema_rs(schema):
    import jsonschema_rs
    return jsonschema_rs.Draft202012Validator(schema).validate
def fastjsonschema(schema):
    import fastjsonschema
    return fastjsonschema.compile({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
found = {}
make = globals()[sys.argv[1]]
make(SCHEMAS["plain"][0])
for name, (schema, arguments) in SCHEMAS.items():
    begin = time.process_time()
    for _ in range(20):
        judge = make(schema)
    compiled = (time.process_time() - begin) / 20 * 1e6
    judge(arguments)
    begin = time.process_time()
    for _ in range(5000):
        judge(arguments)
    found[name] = [compiled, (time.process_time() - begin) / 5000 * 1e6]
print(json.dumps(found))
"""
_IMPORTS: Final = {
    "anyio with its asyncio backend": "import anyio, anyio._backends._asyncio",
    "jsonschema": "from jsonschema import Draft202012Validator",
    "jsonschema-rs": "import jsonschema_rs",
    "fastjsonschema": "import fastjsonschema",
}
_VALIDATORS: Final = {
    "ours": "ours",
    "jsonschema": "jsonschema",
    "jsonschema-rs": "jsonschema_rs",
    "fastjsonschema": "fastjsonschema",
}


def main(arguments: Sequence[str]) -> int:
    """Measures and prints two tables in Markdown; the exit code is 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks libraries", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args(arguments).rounds
    with tempfile.TemporaryDirectory(prefix="libraries-") as folder:
        python = _environment(Path(folder))
        print("| library | its import adds | and |\n|---|---|---|")
        for name, statement in _IMPORTS.items():
            added = [_json(python, _IMPORT, statement) for _ in range(rounds)]
            times, sizes = zip(*added, strict=True)
            print(f"| {name} | {statistics.median(times):.1f} ms | {statistics.median(sizes):.1f} MiB |")
        print("\n| validator | schema | compile | judge |\n|---|---|---|---|")
        for name, function in _VALIDATORS.items():
            found = [_json(python, _VALIDATE, function) for _ in range(max(rounds // 3, 1))]
            for schema in found[0]:
                compiled, judged = (statistics.median(one[schema][place] for one in found) for place in (0, 1))
                print(f"| {name} | {schema} | {compiled:.0f} µs | {judged:.1f} µs |")
    return 0


def _environment(folder: Path) -> Path:
    python = folder / "bin/python"
    subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    command = [
        find_uv_bin(),
        "pip",
        "install",
        "--quiet",
        "--python",
        str(python),
        str(_ROOT / "factory/runtime"),
        *_INSTALLED,
    ]
    subprocess.run(command, check=True)
    return python


def _json(python: Path, program: str, argument: str) -> dict[str, list[float]]:
    ran = subprocess.run([str(python), "-c", program, argument], check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(ran.stdout)
    return found
