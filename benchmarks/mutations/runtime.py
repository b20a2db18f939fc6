"""Is it noticed when the runtime's request path, or a hook of a server's owner, is wrong?

  python -m benchmarks.mutations.runtime petstore-v31 train-travel extreme

For each document a server is made. Each kind of mutation is done to a copy of the runtime, and the server's generated tests
run on it; or it is a hook in the server's own module, and `validate` judges it, for generated tests run without hooks. The table says
what noticed each kind: `tests` (a test failed), `validate` (a gate is closed), `told` (a finding closes no gate), or `-`. A kind that
an API gives no place for (no list in its queries, say) cannot be noticed there; "nowhere" counts the kinds that no document noticed.
Exit code 1: a kind was noticed nowhere.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

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
    "structured content is empty": ("response.py", "structured=shown if isinstance(shown, dict) else", "structured={} if isinstance(shown, dict) else"),
}  # fmt: skip
# What generated tests cannot see, with the reason; it is wrong to stand here once they do.
UNSEEN: Final = {
    "paths are not encoded": "the values that cases give path parameters have no characters that a path must encode",
    "the base's path is lost": "the stub upstream of the tests is at the root of its host",
}
HOOK: Final = """

from mcpfactory_runtime import ToolResult


{}
"""
IN_HOOKS: Final = {
    "after: not implemented": '@server.after()\ndef _hook(call, result):\n    return ToolResult("NOT IMPLEMENTED")',
    "after: one sentence": '@server.after()\ndef _hook(call, result):\n    return ToolResult("All is well.")',
    "after: nothing": '@server.after()\ndef _hook(call, result):\n    return ToolResult("")',
    "after: half of the text": "@server.after()\ndef _hook(call, result):\n    text = result.content[0].text\n    return ToolResult(text[: len(text) // 2])",
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
                table[kind][one.name] = "-" if _tests_pass(server, _broken_runtime(kind, Path(folder))) else "tests"
                print(f"{one.name}: {kind}: {table[kind][one.name]}", flush=True)
            for kind in IN_HOOKS:
                table[kind][one.name] = _with_hook(kind, server)
                print(f"{one.name}: {kind}: {table[kind][one.name]}", flush=True)
    return _told(table, names)


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


def _told(table: dict[str, dict[str, str]], names: Sequence[str]) -> int:
    print(f"\n{'kind':34}" + "".join(f"{name:>16}" for name in names))
    for kind, row in table.items():
        print(f"{kind:34}" + "".join(f"{row[name]:>16}" for name in names))
    cells = [cell for row in table.values() for cell in row.values()]
    nowhere = [kind for kind, row in table.items() if set(row.values()) <= {"-", "told"}]
    refused = sum(cell in {"tests", "validate"} for cell in cells)
    print(f"\nrefused {refused} of {len(cells)}; nowhere: {', '.join(nowhere) or 'none'}")
    for kind in UNSEEN:
        print(f"  {kind}: {UNSEEN[kind]}")
    return int(set(nowhere) != set(UNSEEN))


if __name__ == "__main__":
    sys.exit(main())
