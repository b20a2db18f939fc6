"""A revision is one record: a trial one that renames methods is added to a copy of the runtime by touching one file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.revisions.model import successor
from tests.patience import PATIENCE
from tests.trial_revision import trial

SPEAK = """
import asyncio, json, sys
from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.protocol.http import ModernCall, route
from mcpfactory_runtime.protocol.peer import META_CAPABILITIES, META_VERSION

server = Server("trial")


@server.tool
async def add(a: int, b: int, ctx: Context) -> int:
    ctx.report_progress(1, 2)
    return a + b


async def spoken(revision):
    heard = []
    async with Client.connect_stdio([sys.executable, __file__, "serve"], revision=revision) as client:
        result = await client.call_tool("add", {"a": 1, "b": 2}, progress=heard.append)
        methods = {entry.message.get("method") for entry in client.transcript}
        return {
            "revision": client.revision.name,
            "sum": result["structuredContent"]["result"],
            "methods": sorted(methods - {None}),
            "heard": len(heard),
        }


def routed(method):
    meta = {META_VERSION: "2027-01-01", META_CAPABILITIES: {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"name": "add", "arguments": {}, "_meta": meta}}
    headers = {"content-type": "application/json", "mcp-protocol-version": "2027-01-01", "mcp-method": method, "mcp-name": "add"}
    found = route("POST", headers, body, lambda _: None, lambda _: ())
    return found.call.method if isinstance(found, ModernCall) else found.message["error"]["code"]


async def main():
    print(json.dumps({
        "spoken": [await spoken(revision) for revision in ("2027-01-01", "2026-07-28", "2025-11-25", "")],
        "routed": [routed("tools/run"), routed("tools/call")],
    }))


if "serve" in sys.argv:
    server.run_stdio()
else:
    asyncio.run(main())
"""


def test_a_revision_that_renames_methods_is_one_record(tmp_path: Path) -> None:
    environ = trial(tmp_path)
    script = tmp_path / "speak.py"
    script.write_text(SPEAK, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    new, modern, handshake, newest = told["spoken"]
    assert [one["revision"] for one in told["spoken"]] == ["2027-01-01", "2026-07-28", "2025-11-25", "2027-01-01"]
    assert [one["sum"] for one in told["spoken"]] == [3, 3, 3, 3]
    assert [one["heard"] for one in told["spoken"]] == [1, 1, 1, 1]
    assert {"tools/run", "notifications/moved"} <= set(new["methods"])
    assert not {"tools/call", "notifications/progress"} & set(new["methods"])
    assert newest["methods"] == new["methods"]
    for one in (modern, handshake):
        assert {"tools/call", "notifications/progress"} <= set(one["methods"])
    assert told["routed"] == ["tools/call", METHOD_NOT_FOUND]


def test_a_record_that_names_an_unknown_method_is_refused_with_the_file_that_mends_it() -> None:
    with pytest.raises(ValueError, match=r"names tools/dance, .*\n?.*hint: add a row to protocol/methods.py"):
        successor(LATEST, "2027-01-01", add={"requests": {"tools/dance"}})
