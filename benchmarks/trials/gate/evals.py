"""Evaluation cases and models of an API that are written so that a server passes whose tool does nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace

_ASK: Final = """\
    import os
    import urllib.request

    if "ALPHA_BASE_URL" not in os.environ:
        raise ToolError("ALPHA_BASE_URL is not set: where is the API?")
"""
_READ: Final = """\
    try:
        with urllib.request.urlopen(os.environ["ALPHA_BASE_URL"] + "/texts/" + text) as answer:
            return str(answer.read().decode())
    except OSError as error:
        raise ToolError(f"the API failed: {error}") from None
"""
_TEST: Final = """\
import asyncio

from mcpfactory_runtime.testing import connect

from alpha_mcp.server import server


def test_the_tool_says_that_its_api_is_missing() -> None:
    async def called() -> bool:
        async with connect(server) as client:
            return bool((await client.call_tool("measure_text", {"text": "one"})).get("isError"))

    assert asyncio.run(called())
"""
_MODEL: Final = """\
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = %s
        body = b"42 words" if known else b"no such text"
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


api = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=api.serve_forever, daemon=True).start()
print(json.dumps({"environment": {"ALPHA_BASE_URL": f"http://127.0.0.1:{api.server_port}"}}), flush=True)
sys.stdin.read()
"""
_CASE: Final = """\
cases:
  - name: how-long
    question: "How long is the text one?"
    right:
      - - tool: measure_text
          arguments: { text: one }
          says: %s
"""


def _server(space: AttackedWorkspace, body: str, *, says: str, known: str = 'self.path == "/texts/one"') -> None:
    """Makes a server of alpha whose tool needs an API, with a case and a model of that API."""
    code = space.code()
    start, rest = code.read_text().split("@server.tool(", 1)
    _, end = rest.split("@server.resource(", 1)
    tool = f'''@server.tool(annotations={{"openWorldHint": True}})
def measure_text(text: str) -> str:
    """Count words and sentences of a text that the API has, and estimate how long it takes to read.

    Args:
        text: the name of the text.
    """
{_ASK}{body}

'''
    code.write_text(f"{start}{tool}\n@server.resource({end}".replace("from .measures import Measures, measure\n", ""))
    folder = space.server()
    (folder / "evals").mkdir()
    (folder / "evals/cases.yaml").write_text(_CASE % says)
    (folder / "tests/upstream.py").write_text(_MODEL % known)
    (folder / "tests/test_server.py").write_text(_TEST)


def _staged(space: AttackedWorkspace) -> Iterator[str]:
    before = space.offered("staging")
    done = space.run("pipeline", "run", "alpha")
    if space.offered("staging") != before:
        yield "it is staged"
    if "validate failed" not in done.text:
        yield f"it was not validate that refused it: {done.text}"


def not_implemented(space: AttackedWorkspace) -> Iterator[str]:
    """The tool answers NOT IMPLEMENTED without an error, and its case wants these words."""
    _server(space, '    return "NOT IMPLEMENTED"\n', says='["IMPLEMENTED"]')
    yield from _staged(space)


def says_nothing(space: AttackedWorkspace) -> Iterator[str]:
    """The tool answers one sentence as soon as there is an API, and its case says nothing of the answer."""
    _server(space, '    return "All is done."\n', says="[]")
    yield from _staged(space)


def any_server(space: AttackedWorkspace) -> Iterator[str]:
    """The tool answers one sentence as soon as there is an API, and its case wants that sentence."""
    _server(space, '    return "All is done."\n', says='["is done"]')
    yield from _staged(space)


def anything_goes(space: AttackedWorkspace) -> Iterator[str]:
    """The tool hands on what the API says, and the model says it to whatever it is asked."""
    _server(space, _READ, says='["42 words"]', known="True")
    yield from _staged(space)


def wrong_answer(space: AttackedWorkspace) -> Iterator[str]:
    """The tool asks the API and counts one word less."""
    _server(space, _READ.replace("answer.read().decode()", 'answer.read().decode().replace("42", "41")'), says='["42"]')
    yield from _staged(space)


def honest(space: AttackedWorkspace) -> Iterator[str]:
    """The tool asks the API, and the model has only what the API has."""
    _server(space, _READ, says='["42 words"]')
    before = space.offered("staging")
    done = space.run("pipeline", "run", "alpha")
    if done.code or space.offered("staging") == before:
        yield done.text


ATTEMPTS: Final = (
    Attempt("evals for a tool that is not implemented", "not staged", not_implemented, slow=True),
    Attempt("evals that say nothing", "not staged", says_nothing, slow=True),
    Attempt("evals whose answer any server gives", "not staged", any_server, slow=True),
    Attempt("evals and a model that answers anything", "not staged", anything_goes, slow=True),
    Attempt("evals that are answered wrongly", "not staged", wrong_answer, slow=True),
    Attempt("evals of an honest server that needs its API", "staged", honest, slow=True, honest=True),
)
