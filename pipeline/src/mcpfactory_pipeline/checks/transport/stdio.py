"""Stdio transport of the checks, and the causes of other text on stdout."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import json
import os
import re
import signal
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from mcpfactory_pipeline.checks.evidence import NotificationStream, Session
from mcpfactory_pipeline.checks.exchange import MAX_DEPTH, WireExchange, is_nested_deeper
from mcpfactory_pipeline.checks.transport.conversation import (
    MAX_MESSAGE,
    MessageLog,
    answer_server_request,
    canceled_ids,
    cancellation_message,
    decode,
    escape_surrogates,
    is_acknowledgement,
    is_jsonrpc_answer,
    progress_token,
    split_streams,
)
from mcpfactory_pipeline.isolation.processes import descendants, kill_known_processes
from mcpfactory_runtime.protocol.jsonrpc import LineReader
from mcpfactory_runtime.types import Json

OVERSIZE_LINE: Final = "a line of more than 16 MB"
# Control characters that ordinary output does not contain; tabs, line ends and ANSI escapes are allowed.
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MARK: Final = "a byte order mark before a message"
_TOO_DEEP: Final = "JSON that is nested too deeply to be read"
_CONSTANT: Final = "a message with NaN or Infinity, which JSON does not have"
_UTF8: Final = "write UTF-8 in every locale (Python: sys.stdout.reconfigure(encoding='utf-8'))"
_HINTS: Final[Mapping[str, str]] = {
    OVERSIZE_LINE: "send shorter answers, or pages: clients do not read a message of that size",
    "UTF-16": _UTF8,
    _MARK: "write UTF-8 without a byte order mark (Python: encoding='utf-8', not 'utf-8-sig')",
    "binary data": "put bytes into content as base64, and write nothing but messages to stdout",
    "text that is not UTF-8": _UTF8,
    "two messages on a line": "end each message with a line break, and let one thread write at a time",
    "headers as of the Language Server Protocol": "write a message as one line, without headers",
    _TOO_DEEP: "return less nested data",
    _CONSTANT: "return null or an error where a number is missing (Python: json.dumps(…, allow_nan=False))",
    "JSON that is not a JSON-RPC 2.0 message": 'every message has "jsonrpc": "2.0"',
    "a message over several lines": "write JSON without line breaks (no indentation)",
}


def pollution_hint(causes: Iterable[str]) -> str:
    """Return the hint for the first cause that is more specific than a stray print."""
    return next((_HINTS[cause] for cause in causes if cause in _HINTS), "")


def pollution_cause(line: bytes) -> str:
    """Describe an output line that is not a message, with a text from `_HINTS`."""
    if line.startswith((b"\xff\xfe", b"\xfe\xff")) or (b"{\x00" in line and line.count(b"\x00") * 3 > len(line)):
        return "UTF-16"
    if _CONTROL.search(line):
        return "binary data"
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        return "text that is not UTF-8"
    if text.lower().startswith("content-length:"):
        return "headers as of the Language Server Protocol"
    try:
        value, end = json.JSONDecoder().raw_decode(text)
    except RecursionError:
        return _TOO_DEEP
    except ValueError:
        value, end = None, 0
    rest = text[end:].lstrip()
    if end and not rest:
        if is_nested_deeper(value, MAX_DEPTH):
            return _TOO_DEEP
        return "JSON that is not a JSON-RPC 2.0 message" if decode(text.encode()) == value else _CONSTANT
    if isinstance(value, dict | list) and rest[:1] in ("{", "["):
        return "two messages on a line"
    return "a message over several lines" if text.startswith(("{", "}", '"jsonrpc"')) else "text"


_CHUNK: Final = 64 * 1024
_MAX_STDERR: Final = 1024 * 1024  # maximum bytes of stored stderr
_MAX_POLLUTION: Final = 20  # maximum number of stored stdout lines that are not messages
_MOST_ARRAYS: Final = 1_000  # maximum number of batches with stored ids
_MAX_NOTIFICATIONS: Final = 1_000  # maximum number of stored notifications
_MAX_WAITING: Final = 1_000  # maximum number of unread messages, so that no server can fill the memory
_RACE: Final = 0.1  # seconds; messages that follow sooner may have been written before the cancellation was read
_MOMENT: Final = 0.5  # seconds to wait for a late answer to an invalid message
_UNDER_WAY: Final = 0.1  # seconds to wait for messages that the server sent before it read a cancellation
END_PATIENCE: Final = 4.0  # seconds to wait for the exit of a process; the process is then killed
_DRAIN: Final = 5.0  # seconds to wait until the server reads a message
_KILLED: Final = 5.0  # seconds to wait for the exit of a killed process
_LOOK: Final = 0.02  # seconds between two checks for the exit of a process
# Factor: to exit, a process gets END_PATIENCE seconds, or this multiple of its start-up time, whichever is longer.
_SLOWER: Final = 5
_INHERITED: Final = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "USER",
    "APPDATA",
    "SYSTEMROOT",
    "TEMP",
)


class ServerProcess(NamedTuple):
    """Command, environment and working directory of a server's own process, without launchers such as `npx`."""

    command: list[str]
    environ: dict[str, str]
    cwd: Path


class StdioConversation:
    """A conversation over stdio. `StdioConversation.start` creates it; the caller must call `close`."""

    def __init__(self, process: asyncio.subprocess.Process, purpose: str) -> None:
        self.session = Session(purpose)
        self._log = MessageLog(self.session)
        self._process = process
        self._began = time.monotonic()
        self._stderr = bytearray()
        self._inbox: asyncio.Queue[Json | None] = asyncio.Queue()
        self._news = asyncio.Event()  # set after each line that is read
        # Ids of each received batch, newest batch last.
        self._arrays: deque[list[str]] = deque(maxlen=_MOST_ARRAYS)
        self._given_up: list[object] = []  # ids of requests that timed out; their late answers are ignored
        # Ids of canceled streams; some servers still answer the request when a stream ends.
        self._listened: list[object] = []
        self._readers = (asyncio.ensure_future(self._read_stdout()), asyncio.ensure_future(self._read_stderr()))

    @classmethod
    async def start(
        cls, command: tuple[str, ...], cwd: Path | None, environ: Mapping[str, str], purpose: str
    ) -> StdioConversation | Session:
        """Start the command; if the operating system refuses, return a `Session` with the problem."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=cwd,
                # Only variables that a process needs to start, so that the server cannot read the user's secrets.
                env={name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(environ),
                start_new_session=True,
            )
        except OSError as error:
            return Session(purpose, problem=f"{command[0]} could not be started: {error.strerror or error}")
        return cls(process, purpose)

    @property
    def pid(self) -> int:
        """Return the id of the process, which leads a separate process group."""
        return self._process.pid

    def serving_process(self) -> ServerProcess | None:
        """Return the process that reads the requests, or None if it is unknown.

        Launchers such as `npx` and `uvx` start this process, and the process inherits their stdin.
        """
        started = self._process.pid
        stdin = _open_files(started, "0")
        readers = [one for one in sorted(descendants(started)) if stdin & _open_files(one)]
        process = Path(f"/proc/{[started, *readers][-1]}")
        with contextlib.suppress(OSError):
            command, variables = (
                [os.fsdecode(part) for part in (process / name).read_bytes().split(b"\0")[:-1]]
                for name in ("cmdline", "environ")
            )
            environ = {name: value for name, _, value in (one.partition("=") for one in variables)}
            return ServerProcess(command, environ, (process / "cwd").readlink()) if command else None
        return None

    async def ask(self, message: Json | str, patience: float) -> WireExchange:
        """See `Conversation.ask`."""
        problem = await self._write(message)
        return await self._answer_to(message, patience, problem, strays=True)

    async def _answer_to(
        self, message: Json | str, patience: float, problem: str = "", *, strays: bool = False
    ) -> WireExchange:
        began = time.monotonic()
        received: Json | None = None
        if not problem:
            expected = message.get("id") if isinstance(message, dict) else None
            try:
                received = await asyncio.wait_for(self._answer(), patience)
                if strays and received is not None and expected is not None and received.get("id") is None:
                    received = await self._answer_after(received, expected)
                problem = "" if received is not None else await self._end_reason()
            except TimeoutError:
                problem = f"no answer within {patience:g} s"
                self._given_up.append(expected)
        taken = round(1000 * (time.monotonic() - began))
        exchange = WireExchange(message, received, problem, milliseconds=taken)
        self.session.exchanges.append(exchange)
        return exchange

    async def _answer_after(self, stray: Json, expected: object) -> Json:
        """Return the answer after an answer without id, which may concern an earlier notification."""
        try:
            answer = await asyncio.wait_for(self._answer(), _MOMENT)
        except TimeoutError:
            return stray
        return answer if answer is not None and answer.get("id") == expected else stray

    async def notify(self, message: Json) -> None:
        """See `Conversation.notify`."""
        await self._write(message)

    async def send_raw(
        self, text: str, message: Json, patience: float, *, wait: bool
    ) -> tuple[WireExchange, WireExchange]:
        """Send a raw text and a message; see `Conversation.send_raw`.

        Both are written together. The answer to `text` arrives before, or shortly after, the answer to `message`.
        """
        problem = await self._write(text)
        after = await self._answer_to(message, patience, await self._write(message))
        came: list[Json] = []
        while after.received is not None and str(after.received.get("id")) != str(message.get("id")):
            came.append(after.received)
            self.session.exchanges.remove(after)
            after = await self._answer_to(message, patience)
        if wait and not came and not problem and after.received is not None:
            with contextlib.suppress(TimeoutError):
                late = await asyncio.wait_for(self._answer(), _MOMENT)
                came += [late] if late is not None else []
        sent = decode(text.encode(errors="surrogateescape"))
        number = sent.get("id") if isinstance(sent, dict) else None
        # Answers without an id may belong to earlier notifications, so the last one counts.
        own = (one for one in came if number is not None and one.get("id") == number)
        answer = next(own, came[-1] if came else None)
        raw = WireExchange(
            escape_surrogates(text),
            answer,
            "" if came else problem or "no answer",
            more=tuple(one for one in came if one is not answer),
            separate=len(came) > 1 and [str(one.get("id")) for one in came] not in self._arrays,
        )
        self.session.exchanges.append(raw)
        return raw, after

    async def overlap(self, messages: Sequence[Json], patience: float, pause: float = 0.0) -> list[WireExchange]:
        """See `Conversation.overlap`."""
        canceled = canceled_ids(messages)
        self._listened += canceled
        sent: dict[str, tuple[Json, float]] = {}
        for number, message in enumerate(messages):
            await asyncio.sleep(pause if number else 0)
            if await self._write(message):
                break
            if "id" in message and message["id"] not in canceled:
                sent[str(message["id"])] = (message, time.monotonic())
        done: dict[str, WireExchange] = {}
        deadline, problem = time.monotonic() + patience, f"no answer within {patience:g} s"
        with contextlib.suppress(TimeoutError):
            while len(done) < len(sent):
                received = await asyncio.wait_for(self._answer(), max(deadline - time.monotonic(), 0))
                if received is None:
                    problem = await self._end_reason()
                    break
                if (key := str(received.get("id"))) not in sent:
                    continue  # the message answers no sent request; it may answer the cancellation
                request, began = sent[key]
                took = round(1000 * (time.monotonic() - began))
                done[key] = WireExchange(request, received, milliseconds=took)
        for key, (message, _) in sent.items():
            if key not in done:
                self._given_up.append(message["id"])
                done[key] = WireExchange(message, None, problem)
        exchanges = [done[key] for key in sent]
        self.session.exchanges += exchanges
        return exchanges

    async def cancel(
        self, request: Json, later: Json, seconds: float, patience: float
    ) -> tuple[WireExchange, tuple[Json, ...]]:
        """Send a request that takes `seconds`, cancel it soon, and send the request `later`. Never raises.

        Return the exchange of `later`, and the messages about the canceled request that arrive well after its answer.
        """
        token = progress_token(request)
        self._listened.append(request["id"])
        began = time.monotonic()
        await self._write(request)
        await asyncio.sleep(seconds / 4)
        await self._write(cancellation_message(request))
        exchange = await self.ask(later, patience)
        await asyncio.sleep(_RACE)
        heard = self._log.heard = []
        await asyncio.sleep(max(began + seconds + _MOMENT - time.monotonic(), 0))
        self._log.heard = None
        answered = exchange.result is not None
        late = (one for one in heard if one.get("id") == request["id"] or _progresses(one, token))
        return exchange, tuple(late) if answered else ()

    async def listen(
        self, requests: Sequence[Json], patience: float, calls: Sequence[Json] = ()
    ) -> tuple[NotificationStream, ...]:
        """See `Conversation.listen`."""
        heard = self._log.heard = []
        for number, request in enumerate((*requests, *calls)):
            await self._write(request)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._heard(number), patience)
        await asyncio.sleep(_MOMENT)  # notifications may follow an answer, and some servers send messages at intervals
        self._listened += [request["id"] for request in (*requests, *calls)]
        self._log.heard = []  # ignored: further notifications, and answers to the canceled requests, may be under way
        for request in requests:
            await self._write(cancellation_message(request))
        await asyncio.sleep(_UNDER_WAY)
        self._log.heard = None
        return split_streams(requests, heard)

    async def _heard(self, number: int) -> None:
        while not self._readers[0].done():
            heard = self._log.heard or []
            if sum(is_jsonrpc_answer(one) or is_acknowledgement(one) for one in heard) > number:
                return
            self._news.clear()
            await self._news.wait()

    async def close(self, *, terminate: bool = False) -> None:
        """Close stdin or terminate the process, wait, then kill the rest of the process group."""
        session, ended_early = self.session, self._process.returncode
        session.memory = peak_memory(self._process.pid)
        began = time.monotonic()
        session.terminated = terminate  # after SIGTERM, other output on stdout is allowed
        if terminate:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
        elif self._process.stdin is not None:
            self._process.stdin.close()
        # Search for child processes now, because the search needs their living parent.
        started = descendants(self._process.pid)
        if await self._ended(max(END_PATIENCE, _SLOWER * session.milliseconds / 1000)):
            session.ended_after = round(1000 * (time.monotonic() - began))
        started |= descendants(self._process.pid)
        kill_known_processes(started)  # kill the child processes first, because the search for them needs their parent
        self._kill()
        await self._ended(_KILLED)
        # A process that a child started may keep the pipes open.
        _, pending = await asyncio.wait(self._readers, timeout=1.0)
        for reader in pending:
            reader.cancel()
        self._process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio has no public way to release pipes
        if not session.answered:
            session.problem = f"ended with code {ended_early}" if ended_early is not None else "no answer came"
        session.stderr = self._stderr.decode(errors="replace")
        session.busy = any(request is not None for request in self._given_up)

    async def _write(self, message: Json | str) -> str:
        if isinstance(message, dict):
            self._log.sent(message)
        stdin = self._process.stdin
        if stdin is None or stdin.is_closing():
            return await self._end_reason()
        try:
            stdin.write(_encoded(message) + b"\n")
            await asyncio.wait_for(stdin.drain(), _DRAIN)
        except TimeoutError:
            return f"the server did not read its input within {_DRAIN:g} s"
        except (BrokenPipeError, ConnectionResetError):
            return await self._end_reason()
        return ""

    async def _answer(self) -> Json | None:
        while True:
            message = await self._inbox.get()
            if message is None:
                self._inbox.put_nowait(None)  # later calls of this method must also return at once
                return None
            if is_jsonrpc_answer(message):
                if message.get("id") in (*self._given_up, *self._listened) and message.get("id") is not None:
                    continue
                return message
            if "id" in message:
                await self._write(answer_server_request(message, self._log.declared))

    async def _ended(self, patience: float) -> bool:
        """Wait at most `patience` seconds for the end of the process; return True if it ended.

        `Process.wait` is not enough: in some Python versions, it also waits until the pipes close. A process in a
        separate session may keep the pipes open.
        """
        deadline = time.monotonic() + patience
        waiting = asyncio.ensure_future(self._process.wait())
        while self._process.returncode is None and (left := deadline - time.monotonic()) > 0:
            await asyncio.wait((waiting,), timeout=min(_LOOK, left))
        waiting.cancel()
        return self._process.returncode is not None

    async def _end_reason(self) -> str:
        await self._ended(1.0)
        code = self._process.returncode
        return "the server closed its output" if code is None else f"the server ended with code {code}"

    async def _read_stdout(self) -> None:
        lines = LineReader(MAX_MESSAGE)
        stream = self._process.stdout
        assert stream is not None  # not None, because the process has a pipe
        while data := await stream.read(_CHUNK):
            for line in lines.feed(data):
                if isinstance(line, bytes):
                    self._handle_line(line)
                else:
                    self._note_pollution(OVERSIZE_LINE, OVERSIZE_LINE)
        if rest := lines.rest():
            self._handle_line(rest)
        self._inbox.put_nowait(None)
        self._news.set()

    def _handle_line(self, line: bytes) -> None:
        self._news.set()
        if line.startswith(codecs.BOM_UTF8):
            self._note_pollution(line[:500].decode(errors="replace"), _MARK)
            line = line.removeprefix(codecs.BOM_UTF8)
        value = decode(line)
        # One of the revisions allows batches, which are lists of messages.
        messages = value if isinstance(value, list) and value else [value]
        if isinstance(value, list) and value:
            self._arrays.append([str(one.get("id")) for one in value if isinstance(one, dict)])
        for message in messages:
            if isinstance(message, dict) and message.get("jsonrpc") == "2.0":
                answer = is_jsonrpc_answer(message)
                self._log.received(message)
                if answer and not self.session.answered:
                    self.session.answered = True
                    self.session.milliseconds = round(1000 * (time.monotonic() - self._began))
                if not answer and "id" not in message:
                    if len(self.session.notifications) < _MAX_NOTIFICATIONS:
                        self.session.notifications.append(line.decode(errors="replace"))
                elif self._inbox.qsize() < _MAX_WAITING:
                    self._inbox.put_nowait(message)
            elif len(self.session.pollution) < _MAX_POLLUTION:
                self._note_pollution(line[:500].decode(errors="replace"), pollution_cause(line))

    def _note_pollution(self, shown: str, cause: str) -> None:
        if len(self.session.pollution) < _MAX_POLLUTION and not self.session.terminated:
            self.session.pollution.append(shown)
            self.session.pollution_causes[cause] = None

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None  # not None, because the process has a pipe
        while data := await stream.read(_CHUNK):
            self._stderr += data[: max(_MAX_STDERR - len(self._stderr), 0)]

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)


def _progresses(message: Json, token: object) -> bool:
    params = message.get("params")
    return isinstance(params, dict) and token is not None and params.get("progressToken") == token


def _open_files(pid: int, pattern: str = "*") -> set[int]:
    """Return the inodes of a process's open files; empty if the process has ended."""
    found = set()
    for file in Path(f"/proc/{pid}/fd").glob(pattern):
        with contextlib.suppress(OSError):
            found.add(file.stat().st_ino)
    return found


def _encoded(message: Json | str) -> bytes:
    if isinstance(message, str):
        return message.encode(errors="surrogateescape")
    try:
        return json.dumps(message, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # texts of the server may contain half of a surrogate pair
        return json.dumps(message).encode()


def peak_memory(pid: int) -> int | None:
    """Return the peak memory of a living process in kilobytes, or None if it is unknown (proc(5))."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")), None)
