"""Is it noticed when the runtime's request path, or a hook of a server's owner, is wrong?

  python -m benchmarks.mutations.runtime petstore-v31 train-travel extreme

For each document a server is made. Each kind of mutation is done to a copy of the runtime, and the server's generated tests
run on it; or it is a hook in the server's own module, and `validate` judges it, for generated tests run without hooks. The table says
what noticed each kind: `tests` (a test failed), `validate` (a gate is closed), `told` (a finding closes no gate), or `-`. A kind that
an API gives no place for (no list in its queries, say) is `no place`, as far as the generated cases show it: what they leave out of a
document counts as no place, too. Kinds that were written before their result was known are marked and counted apart.
Exit code 1: fewer than 95 of 100 were refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import mcpfactory_runtime
from benchmarks.apis import path, select
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.checks.examine import validate
from mcpfactory_pipeline.checks.target import ValidationTarget

RUNTIME: Final = Path(mcpfactory_runtime.__file__).parent
# kind → (file below upstream/, what stands there, what is put in its place)
IN_RUNTIME: Final = {
    "paths are not encoded": ("encoding.py", 'encoder("path", allow_reserved=allow_reserved))', "str)"),
    "everything is encoded twice": ("encoding.py", "return quote(utf8(text), safe)", "return quote(quote(utf8(text), safe))"),
    "queries are not sent": ("request.py", "_fill(query, parts.path), *parts.query]", "_fill(query, parts.path)]"),
    "the last query is lost": ("request.py", "*parts.query]", "*parts.query[:-1]]"),
    "cookies are not sent": ("request.py", "if parts.cookies:", "if False:"),
    "headers are not sent": ("request.py", "for name, value in parts.headers if", "for name, value in () if"),
    "credentials are not sent": ("request.py", "headers += credentials.headers", "headers += ()"),
    "the base's path is lost": ("request.py", 'base.path.rstrip("/"), path if', '"", path if'),
    "items of a list are lost": ("encoding.py", "[(name, item) for item in value]", "[(name, item) for item in value[:1]]"),
    "booleans as in Python": ("encoding.py", "    return compact_json(value)\n\n\ndef compact_json", "    return str(value)\n\n\ndef compact_json"),
    "a field of the body is lost": ("body.py", "place[one.path[-1]] = given", "place.setdefault(one.path[-1], None)"),
    "the content type is not sent": ("request.py", '[("Content-Type", content_type)] if content', '[] if content'),
    "the method is POST": ("request.py", "operation.method.upper(), url", '"POST", url'),
    "answers lose a member": ("response.py", "    shown, size = value, len(text)\n", "    shown, size = value, len(text)\n    text = text[:-1]\n"),
    "names of queries in lower case": ("request.py", "*parts.query]", "*((name.lower(), value) for name, value in parts.query)]"),
    "a failure is a success": ("response.py", "    if status >= 400:\n", "    if status >= 600:\n"),
    "what changes is repeated": ("client.py", '"OPTIONS", "PUT",', '"OPTIONS", "POST", "PATCH", "PUT",'),
    "accept is not sent": ("request.py", "if operation.accept else []", "if False else []"),
    "spaces are plus signs": ("encoding.py", "return quote(utf8(text), safe)", 'return quote(utf8(text), safe).replace("%20", "+")'),
    "integers are decimals": ("encoding.py", "    return compact_json(value)\n\n\ndef compact_json", "    return compact_json(value * 1.0 if type(value) is int else value)\n\n\ndef compact_json"),
    "lists of answers lose an item": ("response.py", "    whole, selected = value, False\n", "    value = value[:-1] if isinstance(value, list) else value\n    text = compact(value)\n    whole, selected = value, False\n"),
    "structured content is empty": ("response.py", "structured=shown if isinstance(shown, dict) else", "structured={} if isinstance(shown, dict) else"),
}  # fmt: skip
# What a document must have for a kind to have a place in it: in the requests of its cases, in their answers, or anywhere.
NEEDS: Final[dict[str, Callable[[Mapping[str, Any]], bool]]] = {
    "paths are not encoded": lambda case: "characters" in case["title"] and "%" in quote(case["request"]["path"], safe="/.-_~,;="),
    "cookies are not sent": lambda case: bool(case["request"].get("cookies")),
    "headers are not sent": lambda case: bool(case["request"].get("headers")),
    "credentials are not sent": lambda case: any(one["in"] == "header" for one in case["request"].get("credentials", ())),
    "queries are not sent": lambda case: bool(case["request"].get("query")),
    "the last query is lost": lambda case: bool(case["request"].get("query")),
    "names of queries in lower case": lambda case: any(name != name.lower() for name, _ in case["request"].get("query", ())),
    "items of a list are lost": lambda case: _repeats(case["request"].get("query", ())) or _repeats(case["request"].get("form", ())),
    "booleans as in Python": lambda case: any(text in {"true", "false"} for text in _written(case["request"])),
    "integers are decimals": lambda case: any(text.isdecimal() for text in _written(case["request"])),
    "spaces are plus signs": lambda case: " " in case["request"]["path"],
    "everything is encoded twice": lambda case: "characters" in case["title"],
    "a field of the body is lost": lambda case: isinstance(case["request"].get("json"), dict),
    "the content type is not sent": lambda case: "content_type" in case["request"],
    "the method is POST": lambda case: case["request"]["method"] != "POST",
    "what changes is repeated": lambda case: case["request"]["method"] in {"POST", "PATCH"} and any(one["status"] in {429, 502, 503, 504} for one in case["answers"]),
    "lists of answers lose an item": lambda case: isinstance(case["response"]["body"], list) and bool(case["response"]["body"]),
    "structured content is empty": lambda case: bool(case["response"]["body"]) and case["response"]["content_type"].endswith("json"),
    "after: one sentence": lambda case: bool(case["response"]["body"]),
    "after: nothing": lambda case: bool(case["response"]["body"]),
    "after: the first answer for all": lambda case: bool(case["response"]["body"]),
    "before: a number is changed": lambda case: any(type(one) is int for one in case["arguments"].values()),
    "answers lose a member": lambda case: case["response"]["content_type"].endswith("json"),
}  # fmt: skip
APART: Final = frozenset(
    {
        "names of queries in lower case", "a failure is a success", "what changes is repeated", "accept is not sent",
        "spaces are plus signs", "integers are decimals", "lists of answers lose an item", "after: numbers are one more",
        "after: an error", "after: the first answer for all", "before: texts are reversed", "before: a number is changed",
    }
)  # fmt: skip
GOAL: Final = 0.95
HOOK: Final = """

from mcpfactory_runtime import ToolResult


{}
"""
IN_HOOKS: Final = {
    "after: not implemented": '@server.after()\ndef _hook(call, result):\n    return ToolResult("NOT IMPLEMENTED")',
    "after: one sentence": '@server.after()\ndef _hook(call, result):\n    return ToolResult("All is well.")',
    "after: nothing": '@server.after()\ndef _hook(call, result):\n    return ToolResult("")',
    "after: half of the text": "@server.after()\ndef _hook(call, result):\n    text = result.content[0].text\n    return ToolResult(text[: len(text) // 2])",
    "after: numbers are one more": '@server.after()\ndef _hook(call, result):\n    import re\n    return ToolResult(re.sub(r"\\d+", lambda found: str(int(found[0]) + 1), result.content[0].text))',
    "after: an error": '@server.after()\ndef _hook(call, result):\n    return ToolResult(result.content[0].text, is_error=True)',
    "after: the first answer for all": '_kept = []\n\n\n@server.after()\ndef _hook(call, result):\n    _kept.append(result)\n    return _kept[0]',
    "before: texts are reversed": '@server.before()\ndef _hook(call):\n    for name, value in call.arguments.items():\n        if isinstance(value, str):\n            call.arguments[name] = value[::-1]',
    "before: a number is changed": '@server.before()\ndef _hook(call):\n    for name, value in call.arguments.items():\n        if type(value) is int:\n            call.arguments[name] = value + 1',
    "before: raises": '@server.before()\ndef _hook(call):\n    raise RuntimeError("oops")',
    "before: arguments are lost": "@server.before()\ndef _hook(call):\n    call.arguments.clear()",
}  # fmt: skip


def main() -> int:
    """Break each server in each way; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="of documents: python -m benchmarks.apis lists them")
    names: list[str] = parser.parse_args().names
    table: dict[str, dict[str, str]] = {kind: {} for kind in (*IN_RUNTIME, *IN_HOOKS)}
    for one in select(names):
        with tempfile.TemporaryDirectory() as folder:
            server = create_server(Path(folder), name="api", source=path(one)).path
            if not _tests_pass(server, RUNTIME.parent) or _judged(server) != "-":
                print(f"error: the server of {one.name} is refused as it is", file=sys.stderr)
                return 1
            for kind in IN_RUNTIME:
                table[kind][one.name] = _with_runtime(kind, server, Path(folder))
                print(f"{one.name}: {kind}: {table[kind][one.name]}", flush=True)
            for kind in IN_HOOKS:
                seen = _with_hook(kind, server)
                table[kind][one.name] = "no place" if seen == "-" and not _has_place(kind, server) else seen
                print(f"{one.name}: {kind}: {table[kind][one.name]}", flush=True)
    return _told(table, names)


def _with_runtime(kind: str, server: Path, folder: Path) -> str:
    if not _tests_pass(server, _broken_runtime(kind, folder)):
        return "tests"
    return "-" if _has_place(kind, server) else "no place"


def _broken_runtime(kind: str, folder: Path) -> Path:
    """Return a folder to import the runtime from, with one thing wrong."""
    file, old, new = IN_RUNTIME[kind]
    copy = folder / "runtime"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(RUNTIME, copy / RUNTIME.name, ignore=shutil.ignore_patterns("__pycache__"))
    broken = copy / RUNTIME.name / "upstream" / file
    text = broken.read_text("utf-8")
    if text.count(old) != 1:
        raise SystemExit(f"error: {file} has {old!r} {text.count(old)} times: correct the kind {kind!r}")
    broken.write_text(text.replace(old, new), "utf-8")
    return copy


def _tests_pass(server: Path, runtime: Path) -> bool:
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/_generated"]
    environ = {**os.environ, "PYTHONPATH": f"{server / 'src'}{os.pathsep}{runtime}"}
    return (
        subprocess.run(command, cwd=server, env=environ, capture_output=True, check=False, timeout=600).returncode == 0
    )


def _with_hook(kind: str, server: Path) -> str:
    module = server / "src" / "api_mcp" / "server.py"
    before = module.read_bytes()
    module.write_bytes(before + HOOK.format(IN_HOOKS[kind]).encode())
    try:
        return _judged(server)
    finally:
        module.write_bytes(before)


def _judged(server: Path) -> str:
    target = ValidationTarget(
        command=(sys.executable, "-B", "-m", "api_mcp"),
        cwd=server,
        environ={"PYTHONPATH": str(server / "src"), "MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard"},
        cases=server / "tests/_generated/cases.json",
    )
    report = asyncio.run(validate(target))
    if not report.passed:
        return "validate"
    return "told" if any(one.rule.startswith(("substance.", "behaviour.")) for one in report.findings) else "-"


def _repeats(pairs: Sequence[Sequence[Any]]) -> bool:
    names = [pair[0] for pair in pairs]
    return len(set(names)) < len(names)


def _written(request: Mapping[str, Any]) -> list[str]:
    """Return the plain texts that a request has in its path, query and form."""
    pairs = [*request.get("query", ()), *request.get("form", ())]
    return [*request.get("path", "").split("/"), *(str(value) for _, value in pairs)]


def _has_place(kind: str, server: Path) -> bool:
    cases = json.loads((server / "tests/_generated/cases.json").read_text("utf-8"))["cases"]
    calls = [{"title": "", **case, **call} for case in cases for call in ({}, *case["variants"])]
    return kind not in NEEDS or any(map(NEEDS[kind], calls))


def _told(table: dict[str, dict[str, str]], names: Sequence[str]) -> int:
    print(f"\n{'kind':34}" + "".join(f"{name:>16}" for name in names))
    for kind, row in table.items():
        print(f"{kind + ' *' * (kind in APART):34}" + "".join(f"{row[name]:>16}" for name in names))
    enough = True
    for title, kinds in (("tuned", table.keys() - APART), ("apart *", APART)):
        cells = [cell for kind in kinds for cell in table[kind].values() if cell != "no place"]
        refused = sum(cell in {"tests", "validate"} for cell in cells)
        enough &= refused >= GOAL * len(cells)
        without = sum(cell == "no place" for kind in kinds for cell in table[kind].values())
        print(f"{title}: {len(kinds)} kinds, refused {refused} of {len(cells)}; no place: {without}")
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
