"""A stand-in for an API on loopback: answers from cases, records what it was asked, and says what was asked wrongly.

Used by generated servers' tests, by the stage `validate`, and from the shell:

    python -m mcpfactory_runtime.upstream.stub cases.json --port 8099
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import h11

from mcpfactory_runtime.upstream.encoding import is_json
from mcpfactory_runtime.upstream.expectation import RecordedRequest, credential_faults, differences

__all__ = ["RecordedRequest", "StubUpstream", "case_content", "load_cases"]

_MAX_HEAD: Final = 256 * 1024  # bytes of a request's head; long queries are among the things to be tested
_NO_BODY: Final = frozenset({204, 205, 304})
_ALONE: Final = -1  # the number of the case that `expect` was given


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class StubUpstream:
    """A real HTTP/1.1 server on a free loopback port.

    >>> async with StubUpstream(cases) as stub:
    ...     async with Upstream(stub.base_url, environ={"MCPFACTORY_BASE_URL": stub.base_url}) as api:
    ...         await api.send(GET_BOOK, {"book_id": 1})

    A case is `{"tool", "arguments", "request": {"method", "path", "query": [[name, value]…], "headers": {…}, "json": any},
    "response": {"status", "content_type", "body", "headers": {…}}}`; docs/reference/upstream.md has the other members of
    `request`. Paths are compared decoded, and what a case does not say is free (a case without `path` answers where no
    other has the path). Of the cases with the method and the path of a request, the one with most query pairs answers of
    those that fit. A request that fits none of them is answered with 400 and noted in `mismatches`, one that lacks
    credentials with 401, and one without any case with 404. `response` may be a list: one for each request in turn, the
    last for the rest. A body `{"base64": …}` is sent as these bytes when the content type is not JSON. Without an event
    loop: `with` in place of `async with`.

    Args:
        cases: what is asked and answered.
        port: 0 takes a free one.
        environ: where the values of credentials are looked up; None lets any value pass.
        base_path: a folder that the API is in, as `/v1`; requests elsewhere are answered with 404 and noted in `mismatches`, and
            `requests` have paths below it.
    """

    def __init__(
        self,
        cases: Sequence[Mapping[str, Any]] = (),
        *,
        port: int = 0,
        environ: Mapping[str, str] | None = None,
        base_path: str = "",
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.mismatches: list[str] = []
        self._cases = list(cases)
        self._only: Mapping[str, Any] | None = None
        self._environ = environ
        self._served: Counter[int] = Counter()
        self._port = port
        self._base_path = base_path
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """`http://127.0.0.1:<port>`, once started, and the base path."""
        if self._server is None:
            raise RuntimeError("the stub is not running\nhint: async with StubUpstream(cases) as stub: …")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._base_path}"

    def expect(self, case: Mapping[str, Any] | None) -> None:
        """From now on every request is held against this case alone; None: against all of them, as in the beginning."""
        self._only = case
        self._served.pop(_ALONE, None)

    async def __aenter__(self) -> StubUpstream:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def __enter__(self) -> StubUpstream:
        """Return the same for code without an event loop: the server runs in a thread of its own."""
        started: Future[None] = Future()

        async def run() -> None:
            self._stop = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            try:
                await self.__aenter__()
            except OSError as error:
                started.set_exception(error)
                return
            started.set_result(None)
            await self._stop.wait()
            await self.__aexit__()

        self._thread = threading.Thread(target=asyncio.run, args=(run(),), name="stub upstream", daemon=True)
        self._thread.start()
        started.result()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._stop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    # --- the wire ---

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        try:
            with suppress(h11.RemoteProtocolError, ConnectionError, asyncio.CancelledError):
                while await self._one_request(connection, reader, writer):
                    connection.start_next_cycle()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _one_request(
        self, connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Read one request and answer it; False when the connection ends."""
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                if connection.they_are_waiting_for_100_continue:
                    writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                connection.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                break
            else:
                return False
        answer = self._answer(_recorded(head, bytes(body)))
        bare = answer.status in _NO_BODY
        headers = [*answer.headers, *([] if bare else [("Content-Length", str(len(answer.body)))])]
        writer.write(connection.send(h11.Response(status_code=answer.status, headers=headers)) or b"")
        if not bare and head.method != b"HEAD":
            writer.write(connection.send(h11.Data(data=answer.body)) or b"")
        writer.write(connection.send(h11.EndOfMessage()) or b"")
        await writer.drain()
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE

    # --- the answer ---

    def _answer(self, request: RecordedRequest) -> _Answer:
        below = request.path.removeprefix(self._base_path)
        if not request.path.startswith(self._base_path) or below[:1] not in {"", "/"}:
            self.mismatches.append(f"{request.method} {request.path} is not below {self._base_path}")
            return _problem(404, "Not Found", self.mismatches[-1])
        request = replace(request, path=below or "/")
        self.requests.append(request)
        asked = f"{request.method} {unquote(request.path)}"
        there = [(_ALONE, self._only)] if self._only is not None else self._candidates(request)
        if not there:
            return _problem(404, "Not Found", f"No case for {asked}.")
        wrong = [(differences(case["request"], request), number, case) for number, case in there]
        wrong.sort(key=lambda one: len(one[0]))  # stable: of those that fit, the first
        least, number, case = wrong[0]
        unknown = credential_faults(case["request"], request, self._environ)
        if not least and not unknown:
            return self._response(number, case["response"])
        message = f"{asked}: {'; '.join([*least, *unknown])}"
        self.mismatches.append(message)
        if least:
            return _problem(400, "The request differs from the case", message)
        return _problem(401, "Credentials are missing or wrong", message)

    def _candidates(self, request: RecordedRequest) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the cases with the method and the path of a request, those with most query pairs first."""
        path = unquote(request.path)
        ours = [one for one in enumerate(self._cases) if one[1]["request"]["method"].upper() == request.method]
        there = [one for one in ours if unquote(one[1]["request"].get("path", "")) == path]
        there = there or [one for one in ours if "path" not in one[1]["request"]]
        return sorted(there, key=lambda one: -len(one[1]["request"].get("query", ())))

    def _response(self, number: int, response: Any) -> _Answer:
        if isinstance(response, list):
            response = response[min(self._served[number], len(response) - 1)]
        self._served[number] += 1
        kind = response.get("content_type", "application/json")
        content = case_content(kind, response["body"]) if "body" in response else b""
        headers = [("Content-Type", kind)] if kind and content else []
        headers += [(str(name), str(value)) for name, value in response.get("headers", {}).items()]
        return _Answer(int(response.get("status", 200)), tuple(headers), content)


def case_content(kind: str, body: Any) -> bytes:
    """Return the bytes that stand for the body of a case's response: JSON by its media type, `{"base64": …}`, or text."""
    if is_json(kind):
        return json.dumps(body, ensure_ascii=False).encode()
    if isinstance(body, Mapping) and "base64" in body:
        return b64decode(body["base64"])
    return b"" if body is None else str(body).encode()


def _recorded(head: h11.Request, body: bytes) -> RecordedRequest:
    path, _, query = head.target.decode("latin-1").partition("?")
    headers = tuple((name.decode("latin-1").lower(), value.decode("utf-8", "replace")) for name, value in head.headers)
    return RecordedRequest(head.method.decode("ascii"), path, query, headers, body)


def _problem(status: int, title: str, detail: str) -> _Answer:
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return _Answer(status, (("Content-Type", "application/problem+json"),), json.dumps(body).encode())


def load_cases(path: Path) -> list[dict[str, Any]]:
    """Read cases from a JSON file: a list, or an object with the list as `cases`."""
    data = json.loads(path.read_text("utf-8"))
    cases: list[dict[str, Any]] = data["cases"] if isinstance(data, dict) else data
    return cases


async def _run(cases: list[dict[str, Any]], port: int) -> None:
    async with StubUpstream(cases, port=port) as stub:
        sys.stdout.write(f"{stub.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve a file of cases until interrupted; the address is the one line on stdout."""
    parser = argparse.ArgumentParser(description="Answer like an API, from a file of cases.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(load_cases(options.cases), options.port))


if __name__ == "__main__":
    main()
