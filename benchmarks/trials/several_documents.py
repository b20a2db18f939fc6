"""Twilio's messaging, verify and lookups documents become one server: sent through the pipeline untouched, then called, each tool once.

Each document has a recording upstream of its own: a call at another one, or with the credentials of another document, is a fault.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.apis.documents import DocumentError, path, select
from benchmarks.exam.outcome import Outcome, judged, unavailable
from mcpfactory_runtime.client import connect_stdio

__all__ = ["run"]

Row = tuple[str, bool, str]  # what was to happen, whether it did, what was seen

DOCUMENTS = {"messaging": "twilio-messaging", "verify": "twilio-verify", "lookups": "twilio-lookups"}
SCHEME = "ACCOUNT_SID"
PATIENCE = 900  # seconds for one command


class RecordingUpstream:
    """An HTTP server that answers everything with an empty object, and keeps what it was asked: method, path and credentials."""

    def __init__(self, server: ThreadingHTTPServer, seen: list[tuple[str, str, str]]) -> None:
        self.url, self.seen = f"http://127.0.0.1:{server.server_port}", seen


def run(folder: Path, times: int, seed: int) -> Outcome:
    """A table of what was to happen; the figure counts it."""
    del times, seed  # nothing is left to chance, and once is enough
    try:
        files = {label: path(select([name])[0]) for label, name in DOCUMENTS.items()}
    except DocumentError as error:
        return unavailable(str(error))
    rows = []
    for row in _road(folder / "space", files):
        rows.append(row)
        print(f"{'ok' if row[1] else 'FAULT':6} {row[0]:64} {row[2]}", flush=True)
    good = sum(row[1] for row in rows)
    return judged(f"{good} of {len(rows)} steps as they should be", good=good == len(rows))


def _road(space: Path, files: dict[str, Path]) -> Iterator[Row]:
    _mcpfactory(space.parent, "init", str(space), "--no-git")
    given = [part for label, file in files.items() for part in ("--from-openapi", f"{label}={file}")]
    made = _mcpfactory(space, "new", "twilio", *given)
    yield "new makes one server of three documents", made.returncode == 0, _line(made.stdout, "made server")
    piped = _mcpfactory(space, "pipeline", "run", "twilio")
    yield (
        "the pipeline brings it to staging untouched",
        piped.returncode == 0,
        _line(piped.stdout + piped.stderr, "staging passed"),
    )
    folder = space / "servers/twilio"
    report = json.loads((folder / ".mcpfactory/report.json").read_bytes())
    of_tool = {tool["name"]: tool["operation"]["document"] for tool in report["tools"]}
    with ExitStack() as stack:
        upstreams = {label: stack.enter_context(_recording()) for label in DOCUMENTS}
        cases = json.loads((folder / "tests/_generated/cases.json").read_bytes())["cases"]
        failed = asyncio.run(_called(space, cases, upstreams))
        yield (
            f"each of {len(of_tool)} tools is called",
            len(cases) == len(of_tool),
            f"{len(cases)} calls, {failed} failed",
        )
        for label, upstream in upstreams.items():
            yield _judge(label, upstream, [case for case in cases if of_tool[case["tool"]] == label])
    alone = _mcpfactory(space, "run", "twilio", MCPF_TWILIO_BASE_URL="http://127.0.0.1:9")
    told = _line(alone.stderr, "does not move")
    yield "MCPF_TWILIO_BASE_URL alone moves no document, and that is said", "messaging.twilio.com" in told, told[:110]


def _line(text: str, words: str) -> str:
    """Return the line that has these words; "" when none has."""
    return next((line.strip() for line in text.splitlines() if words in line), "")


def _judge(label: str, upstream: RecordingUpstream, cases: list[dict[str, Any]]) -> Row:
    """Say whether exactly the calls of a document arrived, with its own credentials."""
    lead = f"/{label}"  # in the cases one stub stands for all hosts, each of which is a folder of it
    expected = sorted((case["request"]["method"], case["request"]["path"].removeprefix(lead)) for case in cases)
    arrived = sorted((method, where) for method, where, _ in upstream.seen)
    shown = {credentials for _, _, credentials in upstream.seen}
    good = arrived == expected and shown == {f"user-{label}:secret-{label}"}
    return (
        f"{label}: its calls, all of them, with its credentials",
        good,
        f"{len(arrived)} of {len(expected)}; {', '.join(shown)}",
    )


async def _called(space: Path, cases: list[dict[str, Any]], upstreams: dict[str, RecordingUpstream]) -> int:
    """Call each tool once as its case says; gives how many calls failed."""
    environ = {f"TWILIO_{label.upper()}_BASE_URL": one.url for label, one in upstreams.items()}
    for label in upstreams:
        environ |= _secrets(label)
    command = [sys.executable, "-m", "mcpfactory", "run", "twilio", "--workspace", str(space)]
    failed = 0
    async with connect_stdio(command, env=environ, timeout=PATIENCE) as client:
        for case in cases:
            result = await client.call_tool(case["tool"], case["arguments"])
            if result.get("isError"):
                failed += 1
                print(f"       {case['tool']}: {result['content'][0]['text'][:140]}", flush=True)
    return failed


def _secrets(label: str) -> dict[str, str]:
    lead = f"TWILIO_{label.upper()}_{SCHEME}"
    return {f"{lead}_USERNAME": f"user-{label}", f"{lead}_PASSWORD": f"secret-{label}"}


@contextmanager
def _recording() -> Iterator[RecordingUpstream]:
    seen: list[tuple[str, str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            shown = self.headers.get("Authorization", "").removeprefix("Basic ")
            seen.append((self.command, self.path.partition("?")[0], base64.b64decode(shown).decode()))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            pass

    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield RecordingUpstream(server, seen)
        finally:
            server.shutdown()
            thread.join()


def _mcpfactory(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "mcpfactory", *command]
    return subprocess.run(
        line, cwd=folder, env={**os.environ, **more}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip
