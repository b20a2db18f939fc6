"""What one call costs, counted: what is exact is guarded here; what is time is measured by `make bench`."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from mcpfactory_runtime import Server
from mcpfactory_runtime.protocol.connection import META_CAPABILITIES, META_VERSION
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY
from mcpfactory_runtime.server.session import Session

pytestmark = pytest.mark.anyio
HELLO = {"protocolVersion": LATEST_LEGACY.name, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
MODERN = {"_meta": {META_VERSION: LATEST.name, META_CAPABILITIES: {}}}


class Counted:
    """A server on a message stream in this process; counts what each message makes it do."""

    def __init__(self, server: Server) -> None:
        self.sent: list[bytes] = []
        self.answered = asyncio.Event()
        self.session = Session(server, self._take)
        self.calls: Counter[str] = Counter()

    def say(self, method: str, params: dict[str, Any], number: int | None = 0) -> None:
        identity = {} if number is None else {"id": number}
        self.session.feed(json.dumps({"jsonrpc": "2.0", **identity, "method": method, "params": params}).encode())

    async def call(self, number: int, meta: dict[str, Any]) -> dict[str, Any]:
        """One call of `add`, as a client sends it; its cost is in `calls` afterwards."""
        self.sent.clear()
        self.answered.clear()
        self.calls.clear()
        sys.setprofile(self._count)
        try:
            self.say("tools/call", {"name": "add", "arguments": {"a": number, "b": 2}, **meta}, number)
            await self.answered.wait()
        finally:
            sys.setprofile(None)
        result: dict[str, Any] = json.loads(self.sent[0])["result"]
        assert not result.get("isError"), result
        return result

    def _take(self, data: bytes) -> None:
        self.sent.append(data)
        self.answered.set()

    def _count(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self.calls[argument.__name__] += 1
        elif event == "call" and "mcpfactory_runtime" in frame.f_code.co_filename:
            self.calls["ours"] += 1
            self.calls[Path(frame.f_code.co_filename).name] += 1


@pytest.fixture(params=["written", "generated"])
async def counted(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Counted]:
    """A server with the tool `add`: a function of a person, or one of a manifest."""
    server = Server("costs", version="1")
    if request.param == "written":

        @server.tool
        async def add(a: int, b: int) -> int:
            """Add."""
            return a + b

    else:
        monkeypatch.syspath_prepend(str(tmp_path))
        server.mount_manifest(generated(tmp_path))
    async with server.running():
        counted = Counted(server)
        counted.say("initialize", HELLO)
        counted.say("notifications/initialized", {}, None)
        yield counted
        await counted.session.close(0)
    for name in [name for name in sys.modules if name.startswith("costs_generated")]:
        del sys.modules[name]


def generated(folder: Path) -> Path:
    package = folder / "costs_generated"
    (package / "tools").mkdir(parents=True)
    for name in ("__init__.py", "tools/__init__.py"):
        (package / name).write_text("")
    (package / "api.py").write_text("def upstream():\n    return None\n")
    source = (
        'from mcpfactory_runtime import ToolResult\n\nasync def add(api, /, *, a, b):\n    return ToolResult("3")\n'
    )
    (package / "tools/sums.py").write_text(source)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    tool = {"name": "add", "description": "Add.", "inputSchema": schema, "handler": "sums:add"}
    (package / "manifest.json").write_text(json.dumps({"manifest": 1, "server": {"name": "x"}, "tools": [tool]}))
    return package


@pytest.mark.parametrize("meta", [{}, MODERN], ids=["legacy", "modern"])
async def test_a_call_is_decoded_once_and_its_answer_encoded_once(counted: Counted, meta: dict[str, Any]) -> None:
    await counted.call(1, meta)
    result = await counted.call(2, meta)
    texts = 1 if "structuredContent" in result else 0  # the text beside structured content is JSON of its own
    assert counted.calls["from_json"] == 1
    assert counted.calls["to_json"] == 1 + texts


@pytest.mark.parametrize("meta", [{}, MODERN], ids=["legacy", "modern"])
async def test_no_call_but_the_first_builds_a_validator_or_imports(counted: Counted, meta: dict[str, Any]) -> None:
    await counted.call(1, meta)
    await counted.call(2, meta)
    assert not {"pydantic_schemas.py", "__init__.py", "manifest.py"} & set(counted.calls)
    assert counted.calls["signature.py"] <= 1  # `bind` passes the arguments to the validator
    assert counted.calls["json_schema.py"] <= 3  # which counts its visits, and leaves out null
    assert counted.calls["exec"] == counted.calls["import_module"] == counted.calls["compile"] == 0


@pytest.mark.parametrize("meta", [{}, MODERN], ids=["legacy", "modern"])
async def test_a_call_runs_few_functions_of_ours_and_always_as_many(counted: Counted, meta: dict[str, Any]) -> None:
    costs = []
    for number in range(1, 6):
        await counted.call(number, meta)
        costs.append(counted.calls["ours"])
    assert len(set(costs[1:])) == 1, costs
    assert costs[-1] <= 44


async def test_calls_leave_nothing_behind(counted: Counted) -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            await counted.call(number, {})
        before = allocated()
        for number in range(250):
            await counted.call(number, {})
        grown = allocated() - before
    finally:
        tracemalloc.stop()
    assert grown < 5_000  # bytes; one empty dict kept for each call would be 16,000


def allocated() -> int:
    """Bytes that are alive and were allocated by the runtime or by the event loop for it."""
    gc.collect()
    ours = [tracemalloc.Filter(True, f"*{name}*") for name in ("mcpfactory_runtime", "asyncio", "json")]
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces(ours).traces)
