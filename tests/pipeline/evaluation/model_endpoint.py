"""Endpoint on loopback with the APIs of two vendors and a scripted model.

`/v1/chat/completions` takes and gives what the chat completions of one vendor do, `/v1/messages` what the messages of another do; both
with tools, whole or as a stream. What the real ones refuse is refused: no key, names of tools that are too long, a schema
that is no object, an answer to a call that is missing. The name of the model says how it behaves: words of `HABITS`, joined by `+`.
"""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from tests.loopback_server import LoopbackHandler, running
from tests.pipeline.evaluation.scripted_model import Script, Step, choose, given
from tests.timeouts import TIMEOUT

KEY = "sk-local-0123456789abcdef"
HABITS = {
    "scripted": "answers as the script says",
    "parallel": "makes all calls of a question at once",
    "malformed": "writes arguments that are no JSON, and then the right ones",
    "rushed": "the first request of each turn is refused with 429 and Retry-After",
    "broken": "answers 500, always",
    "shaky": "answers 500, once for each turn",
    "slow": "takes longer than anybody waits",
    "refusing": "refuses to answer",
    "talking": "never calls a tool",
    "endless": "never stops calling tools",
    "telling": "writes the key that it was sent into what it says",
    "nonsense": "answers with a page of HTML",
    "streaming": "refuses what is no stream",
    "dripping": "sends a little now and then, and never ends",
    "garbled": "says that its answer is compressed, which it is not",
}
_PAUSE = 0.02  # seconds
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_FOUND = re.compile(r"^- ([A-Za-z0-9_-]+)(\(.*)$", re.MULTILINE)


class RequestRefusedError(Exception):
    """Error for a request that a real endpoint refuses; `args` are the status and a message."""


class ModelServer(ThreadingHTTPServer):
    """The endpoint. `requests` are the received bodies, in order; `script` can be changed at run time."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.requests: list[dict[str, Any]] = []
        self.started: dict[str, int] = {}
        self.lock = threading.Lock()
        self.ending = threading.Event()

    @property
    def root(self) -> str:
        """Return the base URL for the client of one vendor; the other client needs `/v1` appended."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def nonce(self, question: str) -> int:
        """Count a new conversation about a question; return the count."""
        with self.lock:
            self.started[question] = self.started.get(question, 0) + 1
            return self.started[question]


@contextmanager
def serve_model(script: Script) -> Iterator[ModelServer]:
    """Serve until the block ends."""
    server = ModelServer(script)
    with running(server):
        try:
            yield server
        finally:
            server.ending.set()


class _Handler(LoopbackHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def post(self) -> None:
        body = json.loads(self.body())
        self.server.requests.append(body)
        form = {"/v1/chat/completions": _Chat, "/v1/messages": _Messages}.get(self.path.partition("?")[0])
        if form is None:
            self._send(404, {"error": {"message": f"no {self.path} here"}})
            return
        try:
            self._answer(form(body, dict(self.headers.items())))
        except RequestRefusedError as error:
            self._send(
                error.args[0], {"type": "error", "error": {"type": "invalid_request_error", "message": error.args[1]}}
            )

    def _answer(self, asked: _Form) -> None:
        habits = set(str(asked.body.get("model", "")).split("+"))
        if unknown := habits - set(HABITS):
            raise RequestRefusedError(404, f"there is no model {'+'.join(unknown)}")
        asked.check()
        first = self.headers.get("x-stainless-retry-count", "0") == "0"
        if "broken" in habits or ("shaky" in habits and first):
            self._send(
                500,
                {"error": {"message": f"internal error for {asked.key}" if "telling" in habits else "internal error"}},
            )
            return
        if "rushed" in habits and first:
            self._send(429, {"error": {"message": "too many requests"}}, {"Retry-After": "0.05"})
            return
        if "slow" in habits:
            self.server.ending.wait(TIMEOUT)
        if "nonsense" in habits:
            self._write(200, b"<html>Welcome to the hotel</html>", {"Content-Type": "text/html"})
            return
        if "garbled" in habits:
            self._write(
                200, gzip.compress(b" " * 1000)[20:], {"Content-Type": "application/json", "Content-Encoding": "gzip"}
            )
            return
        if "streaming" in habits and not asked.body.get("stream"):
            raise RequestRefusedError(400, "this model only streams: stream must be true")
        said = self._said(asked, habits)
        if "dripping" in habits:
            self._go_on(asked, said)
        elif asked.body.get("stream"):
            self._stream(list(asked.pieces(said)))
        else:
            self._send(200, asked.whole(said))

    def _said(self, asked: _Form, habits: set[str]) -> dict[str, Any]:
        """Decide what the model says: `text`, or `calls` with their arguments as text, or `refusal`."""
        question, done = asked.question, asked.turns
        nonce = self.server.nonce(question) if not done else int(done[0].split("_")[1])
        if "refusing" in habits:
            return {"refusal": "I cannot help with that."}
        if "talking" in habits:
            return {"text": f"The key is {asked.key}." if "telling" in habits else "I know that without a tool."}
        steps = list(self.server.script.get(question, ()))
        if "endless" in habits:
            steps = [*steps, *steps[-1:] * 50]
        spoilt = "malformed" in habits
        at = len(done) - 1 if spoilt and done else len(done)
        if any(name == "search_tools" for name, _ in asked.tools):
            calls = _searching(asked, steps, at, nonce)
        else:
            calls = _listed(asked, steps, at, nonce, parallel="parallel" in habits)
        if not calls:
            found = f"That is what I found: {' '.join(asked.answers)}"
            return {"text": found if asked.answers else "No tool of mine does that."}
        texts = [(name, json.dumps(given)) for name, given in calls]
        if spoilt and not done:
            texts = [(name, text[:-1]) for name, text in texts]
        if "telling" in habits:
            texts = [(name, json.dumps({**json.loads(text), asked.key: 1})) for name, text in texts]
        return {"calls": [(f"call_{nonce}_{at}_{number}", *call) for number, call in enumerate(texts)]}

    def _send(self, status: int, data: Any, headers: Mapping[str, str] | None = None) -> None:
        self._write(status, json.dumps(data).encode(), {"Content-Type": "application/json", **(headers or {})})

    def _write(self, status: int, data: bytes, headers: Mapping[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def _stream(self, pieces: Sequence[tuple[str, Any]]) -> None:
        self._write(200, b"".join(map(_line, pieces)), {"Content-Type": "text/event-stream"})

    def _go_on(self, asked: _Form, said: Mapping[str, Any]) -> None:
        """Begin a response, and repeat the same piece of it until the client disconnects."""
        begin, again, kind = b"", b" ", "application/json"
        if asked.body.get("stream"):
            *first, word = list(asked.pieces(said))[:3]
            begin, again, kind = b"".join(map(_line, first)), _line(word), "text/event-stream"
        self.close_connection = True  # without a length, closing the connection ends the response
        try:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(begin)
            while not self.server.ending.wait(_PAUSE):
                self.wfile.write(again)
        except OSError:  # whoever asked has gone
            return


def _line(piece: tuple[str, Any]) -> bytes:
    """Return a piece of a stream as it is sent."""
    name, data = piece
    text = f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"
    return (f"event: {name}\n{text}" if name else text).encode()


_Calls = list[tuple[str, dict[str, Any]]]


def _listed(asked: _Form, steps: Sequence[Step], at: int, nonce: int, *, parallel: bool) -> _Calls:
    """Return the calls of one turn to listed tools; all steps at once if `parallel`."""
    wanted = bool(steps)
    if not steps and not at:  # no step is needed, but a tool can seem to fit
        steps = [Step(asked.question, {})]
    left = steps[at : at + 1]
    if parallel:
        left = [] if at else steps
    chosen = [(step, choose(step.thought, asked.tools, nonce, wanted=wanted)) for step in left]
    return [(name, given(step, name, asked.schemas[name])) for step, name in chosen if name is not None]


def _searching(asked: _Form, steps: Sequence[Step], at: int, nonce: int) -> _Calls:
    """Return the call of one turn with a search tool: search, then call the found tool."""
    number, calling = divmod(at, 2)
    if number >= len(steps):
        return []
    step = steps[number]
    if not calling:
        return [("search_tools", {"query": step.thought[:500]})]
    found = [(name, f"{rest}") for name, rest in _FOUND.findall(asked.answers[-1])]
    name = choose(step.thought, found, nonce)
    return [("call_tool", {"name": name, "arguments": dict(step.arguments.get(name, {}))})] if name else []


class _Form:
    """A request to the API of one vendor. Subclasses parse it, and respond with `whole` or `pieces`."""

    key: str
    listed: list[tuple[str, str, Mapping[str, Any]]]
    question: str
    turns: list[str]  # ID of the first call of each turn with calls
    answers: list[str]
    open_calls: list[str]  # calls without results

    def __init__(self, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        self.body = body
        self.headers = {name.lower(): value for name, value in headers.items()}
        self.messages: list[dict[str, Any]] = body["messages"]

    @property
    def tools(self) -> list[tuple[str, str]]:
        return [(name, text) for name, text, _ in self.listed]

    @property
    def schemas(self) -> dict[str, Mapping[str, Any]]:
        return {name: schema for name, _, schema in self.listed}

    def check(self) -> None:
        if self.key != KEY:
            raise RequestRefusedError(401, f"Incorrect API key provided: {self.key}")
        names = [name for name, _, _ in self.listed]
        if wrong := [name for name in names if not _NAME.fullmatch(name)]:
            raise RequestRefusedError(400, f"the name of a tool does not match the pattern: {wrong[0]}")
        if len(set(names)) < len(names):
            raise RequestRefusedError(400, "tool names must be unique")
        for name, _, schema in self.listed:
            if schema.get("type") != "object" or {"oneOf", "anyOf", "allOf", "enum", "not"} & set(schema):
                raise RequestRefusedError(
                    400, f"the schema of {name} must be of type object, without combinators at its top"
                )
        if self.open_calls:
            raise RequestRefusedError(400, f"no answer to {self.open_calls[0]}")


class _Chat(_Form):
    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def listed(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        functions = [tool["function"] for tool in self.body.get("tools", [])]
        return [(one["name"], one["description"], one["parameters"]) for one in functions]

    @property
    def question(self) -> str:
        return str(next(one["content"] for one in self.messages if one["role"] == "user"))

    @property
    def turns(self) -> list[str]:
        return [one["tool_calls"][0]["id"] for one in self.messages if one.get("tool_calls")]

    @property
    def answers(self) -> list[str]:
        return [one["content"] for one in self.messages if one["role"] == "tool"]

    @property
    def open_calls(self) -> list[str]:
        made = [call["id"] for one in self.messages for call in one.get("tool_calls") or ()]
        answered = {one["tool_call_id"] for one in self.messages if one["role"] == "tool"}
        return [call for call in made if call not in answered]

    def _message(self, said: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        if "refusal" in said:
            return {"role": "assistant", "content": None, "refusal": said["refusal"]}, "stop"
        if "calls" not in said:
            return {"role": "assistant", "content": said["text"], "refusal": None}, "stop"
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": text}}
            for id_, name, text in said["calls"]
        ]
        return {"role": "assistant", "content": None, "refusal": None, "tool_calls": calls}, "tool_calls"

    def _usage(self) -> dict[str, Any]:
        read = len(json.dumps(self.body)) // 4
        details = {"cached_tokens": read // 2 if self.turns else 0}
        return {
            "prompt_tokens": read,
            "completion_tokens": 20,
            "total_tokens": read + 20,
            "prompt_tokens_details": details,
        }

    def _about(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": int(time.time()), "model": self.body["model"]}

    def whole(self, said: Mapping[str, Any]) -> dict[str, Any]:
        message, reason = self._message(said)
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        return {**self._about("chat.completion"), "choices": [choice], "usage": self._usage()}

    def pieces(self, said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        message, reason = self._message(said)

        def piece(delta: dict[str, Any], reason: str | None = None) -> tuple[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return "", {**self._about("chat.completion.chunk"), "choices": [choice]}

        yield piece({"role": "assistant", "content": ""})
        for number, call in enumerate(message.get("tool_calls") or ()):
            head = {
                "index": number,
                "id": call["id"],
                "type": "function",
                "function": {"name": call["function"]["name"], "arguments": ""},
            }
            yield piece({"tool_calls": [head]})
            text = call["function"]["arguments"]
            for start in range(0, len(text), 7):
                yield piece({"tool_calls": [{"index": number, "function": {"arguments": text[start : start + 7]}}]})
        for field in ("content", "refusal"):
            for word in re.findall(r"\S+\s*", message.get(field) or ""):
                yield piece({field: word})
        yield piece({}, reason)
        yield "", {**self._about("chat.completion.chunk"), "choices": [], "usage": self._usage()}
        yield "", "[DONE]"


class _Messages(_Form):
    @property
    def key(self) -> str:
        return self.headers.get("x-api-key") or self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def listed(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        return [(one["name"], one["description"], one["input_schema"]) for one in self.body.get("tools", [])]

    @property
    def question(self) -> str:
        return str(self.messages[0]["content"])

    def _blocks(self, role: str, kind: str) -> list[list[dict[str, Any]]]:
        found = [one["content"] for one in self.messages if one["role"] == role and isinstance(one["content"], list)]
        return [blocks for one in found if (blocks := [block for block in one if block["type"] == kind])]

    @property
    def turns(self) -> list[str]:
        return [blocks[0]["id"] for blocks in self._blocks("assistant", "tool_use")]

    @property
    def answers(self) -> list[str]:
        return [block["content"] for blocks in self._blocks("user", "tool_result") for block in blocks]

    @property
    def open_calls(self) -> list[str]:
        made = [block["id"] for blocks in self._blocks("assistant", "tool_use") for block in blocks]
        answered = {block["tool_use_id"] for blocks in self._blocks("user", "tool_result") for block in blocks}
        return [call for call in made if call not in answered]

    def check(self) -> None:
        super().check()
        if not self.body.get("max_tokens") or "anthropic-version" not in self.headers:
            raise RequestRefusedError(400, "max_tokens: field required")
        roles = [one["role"] for one in self.messages]
        if any(a == b for a, b in pairwise(roles)) or set(roles) - {"user", "assistant"}:
            raise RequestRefusedError(400, "messages: roles must alternate between user and assistant")
        allowed = {"text": {"type", "text"}, "tool_use": {"type", "id", "name", "input"}}
        for one in self.messages:
            for block in one["content"] if one["role"] == "assistant" else ():
                if extra := set(block) - allowed[block["type"]]:
                    raise RequestRefusedError(400, f"messages: extra inputs are not permitted: {extra.pop()}")

    def _content(self, said: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str]:
        if "refusal" in said:
            return [], "refusal"
        if "calls" not in said:
            return [{"type": "text", "text": said["text"]}], "end_turn"
        calls = [
            {"type": "tool_use", "id": id_, "name": name, "input": _object(text)} for id_, name, text in said["calls"]
        ]
        return [{"type": "text", "text": "I look."}, *calls], "tool_use"

    def _usage(self) -> dict[str, int]:
        read = len(json.dumps(self.body)) // 4
        cached = read // 2 if self.turns else 0
        return {
            "input_tokens": read - cached,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": 20,
        }

    def whole(self, said: Mapping[str, Any]) -> dict[str, Any]:
        content, reason = self._content(said)
        about = {"id": "msg_1", "type": "message", "role": "assistant", "model": self.body["model"]}
        return {**about, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": self._usage()}

    def pieces(self, said: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        content, reason = self._content(said)
        start = {**self.whole(said), "content": [], "stop_reason": None}

        def event(kind: str, **data: Any) -> tuple[str, Any]:
            return kind, {"type": kind, **data}

        yield event("message_start", message=start)
        for number, block in enumerate(content):
            if block["type"] == "text":
                yield event("content_block_start", index=number, content_block={"type": "text", "text": ""})
                yield event("content_block_delta", index=number, delta={"type": "text_delta", "text": block["text"]})
            else:
                yield event("content_block_start", index=number, content_block={**block, "input": {}})
                text = json.dumps(block["input"])
                for at in range(0, len(text), 7):
                    delta = {"type": "input_json_delta", "partial_json": text[at : at + 7]}
                    yield event("content_block_delta", index=number, delta=delta)
            yield event("content_block_stop", index=number)
        yield event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 20})
        yield event("message_stop")


def _object(text: str) -> Any:
    """Return arguments as an object, as this API requires."""
    try:
        return json.loads(text)
    except ValueError:
        return {"unreadable": text}
