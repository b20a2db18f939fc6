"""Is it noticed when the runtime's request path, or a hook of a server's owner, is wrong?

  python -m benchmarks.mutations.runtime petstore-v31 train-travel extreme

For each document a server is made. Each kind of mutation is done to a copy of the runtime, and the server's generated tests
run on it; or it is a hook in the server's own module, and `validate` judges it, for generated tests run without hooks. The table says
what noticed each kind: `tests` (a test failed), `validate` (a gate is closed), `told` (a finding closes no gate), or `-`. A kind that
an API gives no place for (no list in its queries, say) is `no place`: the document tells, and not the tests. Kinds that were written before their result was known are marked and counted apart.
Exit code 1: fewer than 95 of 100 were refused.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import mcpfactory_runtime
from benchmarks.apis import path, select
from benchmarks.mutations.places import has_place
from mcpfactory_codegen.read.document import load
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_codegen.sources.reading import read_source
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
    "answers lose a member": ("response.py", "    whole, selected = value, False\n", "    value = {name: value[name] for name in list(value)[:-1]} if isinstance(value, dict) else value\n    text = compact(value)\n    whole, selected = value, False\n"),
    "names of queries in lower case": ("request.py", "*parts.query]", "*((name.lower(), value) for name, value in parts.query)]"),
    "a failure is a success": ("response.py", "    if status >= 400:\n", "    status = 200 if status >= 400 else status\n    if status >= 400:\n"),
    "what changes is repeated": ("client.py", '"OPTIONS", "PUT",', '"OPTIONS", "POST", "PATCH", "PUT",'),
    "accept is not sent": ("request.py", "if operation.accept else []", "if False else []"),
    "spaces are plus signs": ("encoding.py", "return quote(utf8(text), safe)", 'return quote(utf8(text), safe).replace("%20", "+")'),
    "integers are decimals": ("encoding.py", "    return compact_json(value)\n\n\ndef compact_json", "    return compact_json(value * 1.0 if type(value) is int else value)\n\n\ndef compact_json"),
    "lists of answers lose an item": ("response.py", "    whole, selected = value, False\n", "    value = value[:-1] if isinstance(value, list) else value\n    text = compact(value)\n    whole, selected = value, False\n"),
    "structured content is empty": ("response.py", "structured=shown if isinstance(shown, dict) else", "structured={} if isinstance(shown, dict) else"),
    "texts are in lower case": ("encoding.py", "return quote(utf8(text), safe)", "return quote(utf8(text).lower(), safe)"),
    "the next page is this page": ("paging.py", "following = {paging.argument: page + 1}", "following = {paging.argument: page}"),
    "offsets skip an item": ("paging.py", "following = {paging.argument: start + len(items)}", "following = {paging.argument: start + len(items) + 1}"),
    "cursors are not followed": ("paging.py", "    return Continuation({operation.paging.argument: found})", "    return None"),
    "failures lose their status": ("response.py", 'what}: {_reason(status)}"', 'what}"'),
    "members of objects in queries lose their names": ("encoding.py", '_deep(f"{name}[{key}]", item', '_deep(name, item'),
    "the last field of a form is lost": ("body.py", "for name, item in value.items() for pair in _form_pairs(", "for name, item in list(value.items())[:-1] for pair in _form_pairs("),
    "what passes is not tried again": ("client.py", "_RETRIES: Final = 2", "_RETRIES: Final = 0"),
    "the API's words are lost": ("response.py", '_headline("failed", status, _api_messages(content, headers), operation)', '_headline("failed", status, iter(()), operation)'),
    "lists are joined with semicolons": ("encoding.py", '"form": partial(_listed, ",")', '"form": partial(_listed, ";")'),
    "lists that repeat their name are joined": ("encoding.py", "    if explode:\n        members = value.items() if", "    if explode and isinstance(value, Mapping):\n        members = value.items() if"),
    "numbers of bodies are texts": ("body.py", "place[one.path[-1]] = given", "place[one.path[-1]] = str(given) if type(given) in (int, float) else given"),
    "false is not sent": ("request.py", "if value is not UNSET}", "if value is not UNSET and value is not False}"),
    "objects of bodies are texts": ("body.py", "place[one.path[-1]] = given", "place[one.path[-1]] = compact_json(given) if isinstance(given, Mapping | list) else given"),
}  # fmt: skip
APART: Final = frozenset(
    {
        "names of queries in lower case", "a failure is a success", "what changes is repeated", "accept is not sent",
        "spaces are plus signs", "integers are decimals", "lists of answers lose an item", "after: numbers are one more",
        "after: an error", "after: the first answer for all", "before: texts are reversed", "before: a number is changed",
        "texts are in lower case", "the next page is this page", "offsets skip an item", "cursors are not followed",
        "failures lose their status", "members of objects in queries lose their names", "the last field of a form is lost", "what passes is not tried again",
        "the API's words are lost", "lists are joined with semicolons", "lists that repeat their name are joined",
        "numbers of bodies are texts", "false is not sent", "objects of bodies are texts", "before: the last argument is lost",
        "before: booleans are turned", "after: structured content is another", "after: lists are turned",
    }
)  # fmt: skip
GOAL: Final = 0.95
Table = dict[str, dict[str, str]]
_LONGEST: Final = 600  # seconds for the generated tests of one server
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
    "before: the last argument is lost": "@server.before()\ndef _hook(call):\n    if call.arguments:\n        call.arguments.popitem()",
    "before: booleans are turned": "@server.before()\ndef _hook(call):\n    for name, value in call.arguments.items():\n        if isinstance(value, bool):\n            call.arguments[name] = not value",
    "after: structured content is another": '@server.after()\ndef _hook(call, result):\n    return ToolResult(result.content, structured={"result": 1})',
    "after: lists are turned": "@server.after()\ndef _hook(call, result):\n    import json\n    try:\n        value = json.loads(result.content[0].text)\n    except ValueError:\n        return result\n    turned = value[::-1] if isinstance(value, list) else {name: one[::-1] if isinstance(one, list) else one for name, one in value.items()} if isinstance(value, dict) else value\n    return ToolResult(json.dumps(turned))",
    "before: arguments are lost": "@server.before()\ndef _hook(call):\n    call.arguments.clear()",
}  # fmt: skip


def main() -> int:
    """Break each server in each way; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="of documents: python -m benchmarks.apis lists them")
    parser.add_argument("--kind", action="append", default=[], help="only this kind; repeatable")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="keep what was found here, and go on with what is there already; take another file for other code",
    )
    wish = parser.parse_args()
    kinds = [kind for kind in (*IN_RUNTIME, *IN_HOOKS) if kind in wish.kind or not wish.kind]
    if strange := set(wish.kind) - set(kinds):
        parser.error(f"there is no kind {', '.join(sorted(strange))}; there are: {', '.join((*IN_RUNTIME, *IN_HOOKS))}")
    table: Table = {}
    if wish.json and wish.json.exists():
        table = json.loads(wish.json.read_text("utf-8"))
    for one in select(wish.names):
        missing = [kind for kind in kinds if one.name not in table.get(kind, {})]
        if missing and not _judge(one.name, path(one), missing, table, wish.json):
            print(f"error: the server of {one.name} is refused as it is", file=sys.stderr)
            return 1
    return _told({kind: table[kind] for kind in kinds}, wish.names)


def _judge(name: str, document: Path, kinds: Sequence[str], table: Table, kept: Path | None) -> bool:
    """Fill in the column of one document; False where its server is refused without any mutation."""
    with tempfile.TemporaryDirectory() as folder:
        server = create_server(Path(folder), name="api", source=document).path
        if _failing_test(server, RUNTIME.parent) or _judged(server) == "validate":
            return False
        api = read_source(load(document))
        generated = "\n".join(file.read_text("utf-8") for file in (server / "src/api_mcp/_generated").rglob("*.py"))
        for kind in kinds:
            seen = "no place"
            if has_place(kind, api, generated):
                seen = _with_runtime(kind, server, Path(folder)) if kind in IN_RUNTIME else _with_hook(kind, server)
            table.setdefault(kind, {})[name] = seen
            print(f"{name}: {kind}: {seen}", flush=True)
            if kept is not None:
                kept.write_text(json.dumps(table, indent=1), "utf-8")
    return True


def _with_runtime(kind: str, server: Path, folder: Path) -> str:
    return "tests" if _failing_test(server, _broken_runtime(kind, folder)) else "-"


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


def _failing_test(server: Path, runtime: Path) -> str:
    """Return the first test that fails, or hangs; "" when none does. Whatever else goes wrong noticed nothing, and ends all."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "tests/_generated"]
    environ = {**os.environ, "PYTHONPATH": f"{server / 'src'}{os.pathsep}{runtime}"}
    try:
        done = subprocess.run(
            command, cwd=server, env=environ, capture_output=True, text=True, check=False, timeout=_LONGEST
        )
    except subprocess.TimeoutExpired:
        return "none ends"
    failed = re.search(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    if done.returncode == 1 and failed:
        return failed[1]
    if done.returncode:
        raise SystemExit(f"error: the tests of {server} did not run: {done.stdout[-500:]}{done.stderr[-500:]}")
    return ""


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


def _told(table: Table, names: Sequence[str]) -> int:
    print(f"\n{'kind':34}" + "".join(f"{name:>16}" for name in names))
    for kind, row in table.items():
        print(f"{kind + ' *' * (kind in APART):34}" + "".join(f"{row[name]:>16}" for name in names))
    enough = True
    for title, kinds in (("tuned", table.keys() - APART), ("apart *", table.keys() & APART)):
        cells = [table[kind][name] for kind in kinds for name in names if table[kind][name] != "no place"]
        refused = sum(cell in {"tests", "validate"} for cell in cells)
        enough &= refused >= GOAL * len(cells)
        without = len(kinds) * len(names) - len(cells)
        print(f"{title}: {len(kinds)} kinds, refused {refused} of {len(cells)}; no place: {without}")
    return int(not enough)


if __name__ == "__main__":
    sys.exit(main())
