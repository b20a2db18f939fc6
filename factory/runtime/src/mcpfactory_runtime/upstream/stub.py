"""Stub API on loopback that checks requests and answers from cases.

Generated servers' tests and the stage `validate` use the stub. The stub also runs from the shell:

    python -m mcpfactory_runtime.upstream.stub cases.json --port 8099

The stub shares no code with `request`, to detect mistakes in `request`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from email import message_from_bytes, policy
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import h11

from mcpfactory_runtime.upstream.encoding import is_json

_SHOWN: Final = 200  # maximum characters of a value in messages
# Kind of credential → prefix of the header's value.
_PREFIXES: Final = {"apiKey": "", "basic": "Basic ", "bearer": "Bearer ", "awsSigV4": "AWS4-HMAC-SHA256 "}


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A received request, with encoded `path` and `query`, and header names in lower case."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first header with this name, or None."""
        return next((value for key, value in self.headers if key == name.lower()), None)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the decoded query."""
        return parse_qsl(self.query, keep_blank_values=True)

    @property
    def cookies(self) -> list[tuple[str, str]]:
        """Return the decoded cookies."""
        parts = (self.header("cookie") or "").split(";")
        return [(unquote(name.strip()), unquote(value)) for name, _, value in (part.partition("=") for part in parts)]

    def json(self) -> Any:
        """Return the body as JSON, or raise ValueError."""
        return json.loads(self.body)


def request_differences(wanted: Mapping[str, Any], request: RecordedRequest) -> list[str]:
    """Return the differences between a request and the `request` of a case. Credentials are not compared.

    Missing fields of `wanted` are not checked. With `"strict": true`, the query must not have additional pairs.
    """
    path = unquote(request.path)
    found = []
    if wanted["method"].upper() != request.method:
        found.append(f"method is {request.method}, not {wanted['method']}")
    if "path" in wanted and unquote(wanted["path"]) != path:
        found.append(f"path is {_short(path)}, not {_short(unquote(wanted['path']))}")
    if (count := wanted.get("segments")) is not None and count != request.path.count("/"):
        found.append(
            f"path {_short(request.path)} has {request.path.count('/')} segments, not {count}: is a slash encoded?"
        )
    if "query" in wanted:
        known = {one["name"] for one in wanted.get("credentials", ()) if one.get("in") == "query"}
        given = [pair for pair in request.pairs if pair[0] not in known]
        found += _pair_faults("query", wanted["query"], given, exact=wanted.get("strict") is True)
    for name, value in wanted.get("headers", {}).items():
        text = request.header(name)
        if text != value:
            found.append(f"header {name} is {'missing' if text is None else repr(text)}, not {value!r}")
    if "cookies" in wanted:
        found += _pair_faults("cookies", wanted["cookies"], request.cookies, exact=False)
    return [*found, *_body_faults(wanted, request)]


def _pair_faults(what: str, wanted: Sequence[Any], given: Sequence[tuple[str, str]], *, exact: bool) -> Iterator[str]:
    expected = Counter((str(name), str(value)) for name, value in wanted)
    have = Counter(given)
    for (name, value), count in expected.items():
        if have[(name, value)] < count:
            yield f"{what} lacks {name}={_short(value)}"
    if exact:
        yield from (f"{what} also has {name}={_short(value)}" for name, value in (have - expected))


# --- bodies ---


def _body_faults(wanted: Mapping[str, Any], request: RecordedRequest) -> Iterator[str]:
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if "content_type" in wanted and kind != wanted["content_type"]:
        yield f"content type is {kind or 'missing'}, not {wanted['content_type']}"
    if wanted.get("empty") is True and request.body:
        yield f"there is a body of {len(request.body)} bytes"
    if "text" in wanted and request.body.decode("utf-8", "replace") != wanted["text"]:
        yield f"body is {_short(request.body.decode('utf-8', 'replace'))}, not {_short(wanted['text'])}"
    if "json" in wanted:
        try:
            given = request.json()
        except ValueError:
            yield "body is not JSON"
        else:
            if not _same(given, wanted["json"]):
                yield f"body is {_short(given)}, not {_short(wanted['json'])}"
    if "form" in wanted:
        pairs = parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)
        yield from _field_faults("form", wanted["form"], pairs)
    if "parts" in wanted:
        yield from _field_faults("body", wanted["parts"], _parts(request))


def _field_faults(what: str, wanted: Sequence[Any], given: list[tuple[str, str]]) -> Iterator[str]:
    """Yield missing and unexpected pairs, comparing a wanted value `{"json": …}` as JSON."""
    left = list(given)
    for name, value in wanted:
        match = next((pair for pair in left if pair[0] == name and _equal(pair[1], value)), None)
        if match is None:
            yield f"{what} lacks {name}={_short(value)}"
        else:
            left.remove(match)
    yield from (f"{what} also has {name}={_short(value)}" for name, value in left)


def _equal(text: str, value: Any) -> bool:
    if not isinstance(value, Mapping):
        return text == str(value)
    try:
        return _same(json.loads(text), value.get("json"))
    except ValueError:
        return False


def _same(one: Any, other: Any) -> bool:
    """Return True if two JSON values are equal, where `1` and `true` are different."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _parts(request: RecordedRequest) -> list[tuple[str, str]]:
    head = f"Content-Type: {request.header('content-type')}\r\n\r\n".encode()
    message = message_from_bytes(head + request.body, policy=policy.HTTP)
    parts = message.iter_parts() if message.is_multipart() else ()
    found = []
    for part in parts:
        name = part.get_param("name", "", header="content-disposition")
        payload = part.get_payload(decode=True)
        found.append((str(name), payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""))
    return found


# --- credentials ---


def credential_faults(
    wanted: Mapping[str, Any], request: RecordedRequest, environ: Mapping[str, str] | None
) -> list[str]:
    """Return the problems with the credentials of a request. All of `wanted["credentials"]` are required.

    The value of a credential must equal the variables in `environ`. If `environ` is None, any value is accepted.
    """
    found = []
    for one in wanted.get("credentials", ()):
        place, name = one.get("in") or "header", one.get("name") or "Authorization"
        given = _given(request, place, name)
        where = f"{place} {name}"
        lead = _PREFIXES.get(one["kind"])
        if lead is None:
            found.append(f"{where} is of the unknown kind {one['kind']!r}; one of {', '.join(_PREFIXES)}")
        elif not given:
            found.append(f"{where} is missing: the operation requires credentials")
        elif not any(value.startswith(lead) and value[len(lead) :].strip() for value in given):
            found.append(f"{where} does not begin with {lead!r}")
        elif environ is not None:
            expected = _expected(one, environ)
            if expected is not None and lead + expected not in given:
                found.append(f"{where} is not the value of {' and '.join(one['variables'])}")
    return found


def _given(request: RecordedRequest, place: str, name: str) -> list[str]:
    if place == "query":
        return [value for key, value in request.pairs if key == name]
    if place == "cookie":
        jar = SimpleCookie(request.header("cookie") or "")
        return [unquote(jar[name].value)] if name in jar else []
    return [value for key, value in request.headers if key == name.lower()]


def _expected(one: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    values = [environ.get(variable) for variable in one["variables"]]
    known = [value for value in values if value is not None]
    if not values or len(known) != len(values) or one["kind"] == "awsSigV4":
        return None
    return b64encode(":".join(known).encode()).decode() if one["kind"] == "basic" else known[0]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_MAX_HEAD: Final = 256 * 1024  # maximum bytes of a request's head, because tests send long queries
_NO_BODY: Final = frozenset({204, 205, 304})
_ALONE: Final = -1  # number of the case that `expect` received


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class StubUpstream:
    """An HTTP/1.1 server on a free loopback port.

    >>> async with StubUpstream(cases) as stub:
    ...     async with Upstream(stub.base_url, environ={"MCPFACTORY_BASE_URL": stub.base_url}) as api:
    ...         await api.send(GET_BOOK, {"book_id": 1})

    A case is an object with `tool`, `arguments`, `request` and `response`. The members of `request` include `method`,
    `path`, `query`, `headers` and `json` (docs/reference/upstream.md). The members of `response` are `status`,
    `content_type`, `body` and `headers`. Only the members of a case are compared, and paths are decoded first. A case
    without `path` applies if no other case has the path. If several cases match, the case with the most query pairs
    answers.

    A request gets the status 404 if no case has its method and path, 400 if it differs from its cases, and 401 if its
    credentials are wrong. `unanswered` records the requests without a case, and `mismatches` the requests with status
    400 or 401. `response` may be a list with one response for each request, of which the last is repeated. A body
    `{"base64": …}` is decoded unless the content type is JSON.

    Code without an event loop uses `with` instead of `async with`.

    Args:
        cases: expected requests and their responses.
        port: port to listen on; 0 means any free port.
        environ: environment with the values of credentials. None accepts any value.
        base_path: path prefix of the API, such as `/v1`. A request to another path gets the status 404, and is recorded
            in `mismatches`. Paths in `requests` do not contain the prefix.
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
        self.unanswered: list[str] = []
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
        """Return `http://127.0.0.1:<port><base path>` of the running stub."""
        if self._server is None:
            raise RuntimeError("the stub is not running\nhint: use async with StubUpstream(cases) as stub: …")
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{self._base_path}"

    def expect(self, case: Mapping[str, Any] | None) -> None:
        """Compare later requests only with this case, or with all cases after None."""
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
        """Start the server in a separate thread, for code without an event loop."""
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

    # --- connections ---

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
        """Read and answer one request, and return False if the connection must end."""
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

    # --- responses ---

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
            self.unanswered.append(asked)
            return _problem(404, "Not Found", f"No case for {asked}.")
        wrong = [(request_differences(case["request"], request), number, case) for number, case in there]
        wrong.sort(key=lambda one: len(one[0]))  # a stable sort, so that the first of equally similar cases answers
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
        """Return the cases for a request, those with the most query pairs first."""
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
        content = case_response_body(kind, response["body"]) if "body" in response else b""
        headers = [("Content-Type", kind)] if kind and content else []
        headers += [(str(name), str(value)) for name, value in response.get("headers", {}).items()]
        return _Answer(int(response.get("status", 200)), tuple(headers), content)


def case_response_body(kind: str, body: Any) -> bytes:
    """Return the bytes of a case's response body, which is JSON, `{"base64": …}`, or text."""
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
    """Read cases from a JSON file with a list, or with an object that has the list as `cases`."""
    data = json.loads(path.read_text("utf-8"))
    cases: list[dict[str, Any]] = data["cases"] if isinstance(data, dict) else data
    return cases


async def _run(cases: list[dict[str, Any]], port: int) -> None:
    async with StubUpstream(cases, port=port) as stub:
        sys.stdout.write(f"{stub.base_url}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def main() -> None:
    """Serve a file of cases until interrupted, and print the URL as the only line on stdout."""
    parser = argparse.ArgumentParser(description="Simulate an API from a file of cases.")
    parser.add_argument("cases", type=Path)
    parser.add_argument("--port", type=int, default=0, help="port to listen on [default: any free port]")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(load_cases(options.cases), options.port))


if __name__ == "__main__":
    main()
