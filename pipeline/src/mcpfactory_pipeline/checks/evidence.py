"""Observations of one server; rules check them.

Data only; `validation.observe_server` and its helpers fill the evidence. `missing` has the reason for each missing
observation, so that rules can distinguish "not applicable" from "not checked".
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mcpfactory_pipeline.checks.canaries import CanaryResult
from mcpfactory_pipeline.checks.exchange import NEEDS_CREDENTIALS, WireExchange
from mcpfactory_pipeline.checks.package_inspection import PackageFacts
from mcpfactory_runtime.schemas.walk import properties_of
from mcpfactory_runtime.server.generated.search_mode import CALLS
from mcpfactory_runtime.types import Json

Transport = Literal["stdio", "http"]
Lifecycle = Literal["legacy", "modern"]


@dataclass(slots=True)
class ServerMessage:
    """Notification or request from the server. `during` is the client's request that was in progress, or None."""

    message: Json
    during: Json | None = None
    modern: bool = False  # True if the session uses the per-request lifecycle
    initialized: bool = False  # True if the client had sent `notifications/initialized` before
    declared: Json = field(default_factory=dict)  # capabilities of the client in this session

    @property
    def method(self) -> str:
        """Return the method of the message."""
        return str(self.message.get("method"))

    @property
    def params(self) -> Json:
        """Return the params, or {} if the params are not an object."""
        params = self.message.get("params")
        return params if isinstance(params, dict) else {}


@dataclass(slots=True)
class Session:
    """One session with the server; its `Conversation` fills the record.

    On stdio, a session lasts from the start of a process to its end.
    """

    purpose: str
    answered: bool = False  # True if the server sent at least one JSON-RPC message
    milliseconds: int = 0  # milliseconds from the start to the first answer
    problem: str = ""  # why the session did not start, or why it ended early; "" otherwise
    pollution: list[str] = field(default_factory=list)  # stdout lines that are not JSON-RPC messages
    # Kinds of stdout lines that are not messages; the dict serves as an ordered set.
    pollution_causes: dict[str, None] = field(default_factory=dict)
    notifications: list[str] = field(default_factory=list)  # unchanged lines with notifications
    stderr: str = ""  # start of stderr, at most 1 MiB
    # Milliseconds from the end of stdin to the exit of the process; None if the process was killed.
    ended_after: int | None = None
    memory: int | None = None  # peak memory of the process in kilobytes; None if unknown
    terminated: bool = False  # True if SIGTERM, not the end of stdin, ended the process
    busy: bool = False  # True if a request was still unanswered when the session ended
    # Requests with their answers, in the order of the requests.
    exchanges: list[WireExchange] = field(default_factory=list)
    messages: list[ServerMessage] = field(default_factory=list)  # messages from the server that are not answers
    event_ids: list[str] = field(default_factory=list)  # ids of the events on all streams (HTTP)

    @property
    def has_ended(self) -> bool:
        """Return True if the process ended, or stopped reading, at the last request."""
        return bool(self.exchanges) and self.exchanges[-1].server_ended

    @property
    def last_call_problem(self) -> str:
        """Return why the last tool call got no answer; "" if it got one."""
        return next((one.problem for one in reversed(self.exchanges) if one.method == "tools/call"), "")


@dataclass(frozen=True, slots=True)
class NotificationStream:
    """A notification stream: the messages on it in order, and the answer that ended it.

    On stdio, all streams share one channel. On that channel, a message without the id of an open stream belongs to the oldest
    unacknowledged stream, or to the first stream.
    """

    request: Json
    heard: tuple[Json, ...] = ()
    answer: Json | None = None
    ended: bool = False  # True if the stream ended without an answer

    def to_proof(self) -> dict[str, str]:
        """Return the sent and received messages in the format of findings."""
        heard = [*self.heard, *([] if self.answer is None else [self.answer])]
        return {
            "request": json.dumps(self.request),
            "heard": "\n".join(json.dumps(one) for one in heard[:5]) or "nothing",
        }


@dataclass(frozen=True, slots=True)
class RequestsBesideStreams:
    """Requests while GET streams are open.

    Each item of `before` and `heard` has the messages on one GET stream, before and after the first request. The messages in
    `on_responses` arrived before the answers, on the responses to the requests.
    """

    exchanges: tuple[WireExchange, ...]
    before: tuple[tuple[Json, ...], ...]
    heard: tuple[tuple[Json, ...], ...]
    on_responses: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplayedStream:
    """Requests, and the messages that a server sent when the first one's stream was resumed after its first event."""

    exchanges: tuple[WireExchange, ...]
    event: str
    heard: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class ModifiedStateAnswer:
    """Answer to a retry with a modified `requestState`, and answers to the unmodified state."""

    exchange: WireExchange
    unmodified: tuple[WireExchange, ...]


@dataclass(frozen=True, slots=True)
class EventStreamAnswer:
    """Answer received as server-sent events."""

    ids: bool = False  # True if an event has an id
    primed: bool = False  # True if the first event has an id and no data
    ended: bool | None = None  # True if the stream ended soon after its answer; None if the end was not observed


@dataclass(frozen=True, slots=True)
class HttpProbeAnswer:
    """Answer to one HTTP probe.

    The names in `headers` are in lower case. `message` is {} if the body has no JSON object. `what` describes the
    request, for example "a request without session id". `stream` is None if the answer is not an event stream.
    """

    probe: str
    what: str
    verb: str
    sent_headers: Mapping[str, str]
    sent: Any
    status: int
    headers: Mapping[str, str]
    message: Json
    has_body: bool = False
    stream: EventStreamAnswer | None = None
    url: str = ""

    @property
    def code(self) -> Any:
        """Return the JSON-RPC error code, or None."""
        error = self.message.get("error")
        return error.get("code") if isinstance(error, dict) else None

    def to_proof(self) -> dict[str, str]:
        """Return the exchange in the format of findings."""
        return {
            "request": f"{self.verb} {json.dumps(dict(self.sent_headers))} {json.dumps(self.sent)}",
            "response": f"{self.status} {self.headers.get('content-type', '')} {json.dumps(self.message)}",
        }


@dataclass(frozen=True, slots=True)
class Listing:
    """All pages of one list, such as `tools/list`."""

    method: str
    items: tuple[Any, ...] = ()
    exchanges: tuple[WireExchange, ...] = ()
    problem: str = ""  # why the list is incomplete; "" if it is complete


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One tool call. `origin` tells how the arguments were chosen."""

    tool: str
    exchange: WireExchange
    origin: Literal["case", "example", "no arguments", "guess"]
    title: str = ""  # name of the case
    requests: tuple[Json, ...] = ()  # requests that the stub upstream received: method, path, …
    mismatches: tuple[str, ...] = ()  # differences between these requests and the case
    question: str = ""  # method and path of a request that only reads according to the API document
    response: Json | None = None  # response of the stub API, as described in the case
    violates: str = ""  # keyword of the inputSchema that the arguments violate; "bounds" for minimum and maximum
    optional: bool = False  # True if the argument with the violation may be left out

    @property
    def failed(self) -> bool:
        """Return True if the model received an error, or no result."""
        return self.exchange.failed


@dataclass(frozen=True, slots=True)
class ConcurrentRequests:
    """Two requests with the same id that two clients sent at the same time.

    `alone` has earlier answers to each request alone. `again` has later answers to each request alone; it is empty if
    `together` equals `alone`.
    """

    alone: tuple[WireExchange, ...]
    together: tuple[WireExchange, ...]
    again: tuple[WireExchange, ...] = ()


@dataclass(frozen=True, slots=True)
class CallComparison:
    """Calls of a read-only tool that must give the same result in two situations.

    A difference counts only if the results in each situation are equal. `usual` has calls in the normal situation.
    `others` has the same calls in situation `kind`. `default`: the call states the schema's default for the argument
    `title`. `later`: the call follows calls of other read-only tools. `overlap`: the call runs at the same time as a
    second call. `rival` is the result of the second call if that call runs alone. `failures`: the call follows many
    failed calls of the same tool. `consumed`: the call repeats the first call, which had a different result.
    `repeated`: results of the tool `title`, read after the first call (`usual`) and the second call (`others`) of the
    tool `tool`, which has `idempotentHint`.
    """

    kind: Literal["default", "later", "overlap", "failures", "consumed", "repeated"]
    tool: str
    usual: tuple[WireExchange, ...]
    others: tuple[WireExchange, ...]
    title: str = ""
    rival: WireExchange | None = None


@dataclass(frozen=True, slots=True)
class AnswerDuringSlowCall:
    """Request during a slow call of `tool`: a `ping`, or the same call after the cancellation of a call."""

    kind: Literal["ping", "after cancellation"]
    tool: str
    exchange: WireExchange
    call: WireExchange  # the slow call; or, for a call after a cancellation, an earlier call that was not canceled


@dataclass(frozen=True, slots=True)
class CanceledElsewhere:
    """A call during which another client cancels a request with the same id, and the call without a cancellation.

    If the server answers the first call, it is not repeated, and both are the same exchange.
    """

    exchange: WireExchange
    again: WireExchange


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A tool call as a task, and the later requests about this task, in order.

    If the result differs from the result without a task, `plain` has two calls without a task.
    """

    tool: str
    steps: tuple[WireExchange, ...]
    plain: tuple[WireExchange, ...] = ()


@dataclass(frozen=True, slots=True)
class CanceledCall:
    """A call on stdio that was canceled while it ran, and the server's messages about it after that.

    `exchange` is a request that was sent after the cancellation. `late` has the messages that arrived well after its
    answer, which proves that the server had read the cancellation.
    """

    tool: str
    exchange: WireExchange
    late: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class EvaluatedCall:
    """Correct call from an evaluation case, made against the simulated API."""

    case: str
    call: RecordedCall
    faults: tuple[str, ...] = ()  # differences between the call and the case
    # Why a correct answer does not prove that the tool works; "" for a proof.
    shows_nothing: str = ""
    slow: bool = False  # True if no answer came in time; the machine may only be busy


@dataclass(frozen=True, slots=True)
class ElicitationOutcome:
    """Three calls of a case whose tool asks a person: the client cannot ask, a person agrees, a person declines."""

    question: str
    unasked: RecordedCall
    agreed: RecordedCall
    declined: RecordedCall


@dataclass(frozen=True, slots=True)
class ApiFailure:
    """One kind of API failure.

    If `error` is set, the tool must return an error, and the error text must contain the HTTP `status`. `answer` sends
    the response; None means that the port is closed. If `heavy` is set, the memory of the server is measured. If
    `waits` is set, the tool may wait or retry for seconds, so the failure gets a separate process.
    """

    id: str
    does: str
    answer: Callable[[Any, asyncio.StreamWriter], Awaitable[None]] | None
    error: bool = True
    status: int = 0
    heavy: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True)
class FailureOutcome:
    """A call during one API failure, and the next call after the API recovered."""

    failure: ApiFailure
    tool: str
    method: str  # HTTP method of the documented request
    exchange: WireExchange
    requests: tuple[str, ...] = ()  # HTTP methods of the requests that reached the API
    elsewhere: int = 0  # number of requests that a redirect sent to another host
    grown: int | None = None  # growth of the process's peak memory in megabytes; None if unknown
    again: WireExchange = field(default_factory=lambda: WireExchange({}))

    @property
    def failed(self) -> bool:
        """Return True if the model received an error, or no result."""
        return self.exchange.failed

    @property
    def said(self) -> str:
        """Return the text that the model received."""
        return answer_text(self.exchange)

    def to_json(self) -> Json:
        """Return a row for the report's matrix, without details that depend on the machine."""
        first = next((line.strip() for line in self.said.splitlines() if line.strip()), "nothing")[:200]
        return {
            "failure": self.failure.id,
            "does": self.failure.does,
            "tool": self.tool,
            "method": self.method,
            "sent": ("none", "once")[len(self.requests)] if len(self.requests) < 2 else "repeated",
            "error": self.failed,
            "answer": f"{'error' if self.failed else 'result'}: {first}",
            "then": "fails" if self.again.failed else "works",
        }


def answer_text(exchange: WireExchange) -> str:
    """Return the text that a model receives: the result, the protocol error, or the reason for a missing answer."""
    if exchange.error is not None:
        return str(exchange.error.get("message", ""))
    content = (exchange.result or {}).get("content")
    blocks = content if isinstance(content, list) else []
    texts = " ".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict))
    return texts or exchange.problem


def sent_arguments(call: RecordedCall) -> Json:
    """Return the arguments that a call sent."""
    arguments = call.exchange.params.get("arguments")
    return arguments if isinstance(arguments, dict) else {}


def _named_call(sent: Any) -> Json:
    if isinstance(sent, str):
        try:
            sent = json.loads(sent)
        except ValueError:
            return {}
    if not isinstance(sent, dict) or sent.get("method") != "tools/call":
        return {}
    params = sent.get("params")
    if not isinstance(params, dict):
        return {"tool": "", "arguments": params}
    return {"tool": params.get("name", ""), "arguments": params.get("arguments", {})}


def is_search_call_tool(tool: Json) -> bool:
    """Return True if a listed tool is search mode's call tool, which calls other tools by name."""
    meta = tool.get("_meta")
    return isinstance(meta, dict) and meta.get(CALLS) is True


def hint(tool: Any, name: str) -> Any:
    """Return an annotation of a tool, or None if the annotation is missing."""
    annotations = tool.get("annotations")
    return annotations.get(name) if isinstance(annotations, dict) else None


@dataclass(slots=True)
class Evidence:
    """Observations of one server.

    `handshakes` maps each handshake revision to the exchange of `initialize`. `discover` is the exchange of
    `server/discover`. `tools` are the listed objects as received; `named_tools` omits invalid entries.
    """

    transport: Transport = "stdio"
    sessions: list[Session] = field(default_factory=list)
    second_process: WireExchange | None = None  # `initialize` of a second process while the first session was open
    handshakes: dict[str, WireExchange] = field(default_factory=dict)
    discover: WireExchange | None = None
    revisions: tuple[str, ...] = ()  # protocol revisions that the server supports, oldest first
    lifecycles: set[Lifecycle] = field(default_factory=set)
    capabilities: dict[str, Any] = field(default_factory=dict)
    probes: dict[str, WireExchange] = field(default_factory=dict)  # name of a probe → request and answer
    lists: dict[str, Listing] = field(default_factory=dict)
    # Requests that read further prompts, resources and templates.
    later_reads: list[WireExchange] = field(default_factory=list)
    # Failed requests for prompts without optional arguments, and the same requests with all arguments.
    completed_prompts: list[tuple[WireExchange, WireExchange]] = field(default_factory=list)
    unknown_items: list[WireExchange] = field(default_factory=list)  # reads of templates with invented values
    calls: list[RecordedCall] = field(default_factory=list)
    others: list[RecordedCall] = field(default_factory=list)  # calls of the same tools with other arguments
    # Calls with other valid arguments; `title` names the changed argument.
    further: list[RecordedCall] = field(default_factory=list)
    comparisons: list[CallComparison] = field(default_factory=list)
    busy: list[AnswerDuringSlowCall] = field(default_factory=list)  # answers to requests during a slow call
    canceled: list[CanceledCall] = field(default_factory=list)  # only in the per-request lifecycle
    canceled_elsewhere: list[CanceledElsewhere] = field(default_factory=list)
    # Calls with arguments that violate the schema; `title` describes the error.
    wrong: list[RecordedCall] = field(default_factory=list)
    changed: list[RecordedCall] = field(default_factory=list)  # calls from cases, with a changed API response
    # Requests for which the server asked for input, and their retries.
    dialogues: list[tuple[WireExchange, ...]] = field(default_factory=list)
    modified_states: list[ModifiedStateAnswer] = field(default_factory=list)
    # Groups of streams; each stream was still open when the next one of its group was opened.
    streams: list[tuple[NotificationStream, ...]] = field(default_factory=list)
    task_runs: list[TaskRun] = field(default_factory=list)
    # All listed tasks, and later requests for each task of `task_runs`.
    task_list: tuple[Listing, tuple[WireExchange, ...]] | None = None
    # Calls in older protocol revisions; `title` is the revision.
    older: list[RecordedCall] = field(default_factory=list)
    uncalled: dict[str, str] = field(default_factory=dict)  # tool → reason why it was not called
    lists_around_calls: list[tuple[Listing, Listing]] = field(default_factory=list)  # lists before and after calls
    sandboxed: Session | None = None  # session with a process that cannot cause side effects
    with_cases: bool = False
    evaluated: list[EvaluatedCall] = field(default_factory=list)  # correct calls from evaluation cases
    # Tools that ask a person; `calls` has the same calls with the person's consent.
    persons: list[ElicitationOutcome] = field(default_factory=list)
    server: dict[str, Any] = field(default_factory=dict)  # serverInfo
    secrets: Mapping[str, str] = field(default_factory=dict)  # name → value of a secret that must not leak
    package: PackageFacts | None = None  # only for servers in a workspace
    missing: dict[str, str] = field(default_factory=dict)  # missing probe or list → reason; "*" means all others
    http: dict[str, HttpProbeAnswer] = field(default_factory=dict)  # probe → answer; only for servers at a URL
    # Answers to calls with defects in the headers that repeat arguments.
    header_arguments: list[HttpProbeAnswer] = field(default_factory=list)
    authorization: dict[str, HttpProbeAnswer] = field(default_factory=dict)  # probe → answer
    # Calls while one GET stream is open, then while two are open.
    beside_streams: list[RequestsBesideStreams] = field(default_factory=list)
    replayed: ReplayedStream | None = None
    concurrent: list[ConcurrentRequests] = field(default_factory=list)  # only for servers at a URL
    first_client: list[WireExchange] = field(default_factory=list)  # calls with texts that no other client sent
    second_client: list[WireExchange] = field(default_factory=list)  # later calls of another client without these texts
    canaries: list[CanaryResult] = field(default_factory=list)  # empty if the API is a stub
    failures: list[FailureOutcome] = field(default_factory=list)  # results of calls while the API failed
    drift: tuple[str, ...] | None = None  # differences from the adopted server; None if they were not checked
    drift_offer: str = ""  # the hash of the current offer
    limits: Mapping[str, float] = field(default_factory=dict)  # name in `gates.COST_GATES` → limit in the policy

    @property
    def all_sessions(self) -> list[Session]:
        """Return `sessions` and the session in the sandbox."""
        return [*self.sessions, *([self.sandboxed] if self.sandboxed else [])]

    @property
    def traffic(self) -> list[WireExchange]:
        """Return the requests of all sessions, except unanswered ones in the sandbox, because it may be the cause."""
        inside = [one for one in self.sandboxed.exchanges if one.received is not None] if self.sandboxed else []
        return [*(one for session in self.sessions for one in session.exchanges), *inside]

    @property
    def needs_credentials(self) -> bool:
        """Return True if no request was answered because the server requires credentials."""
        return not self.lifecycles and any(one.status == NEEDS_CREDENTIALS for one in self.traffic)

    @property
    def server_messages(self) -> list[ServerMessage]:
        """Return all notifications and requests from the server, except messages on notification streams."""
        return [message for session in self.all_sessions for message in session.messages]

    @property
    def tools(self) -> tuple[Any, ...]:
        """Return the listed tools as the server sent them; entries may be invalid."""
        listing = self.lists.get("tools/list")
        return listing.items if listing else ()

    @property
    def named_tools(self) -> tuple[tuple[str, Json], ...]:
        """Return (name, tool) for each listed object with a text as name."""
        return tuple(
            (tool["name"], tool) for tool in self.tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)
        )

    @property
    def input_schemas(self) -> dict[str, Any]:
        """Return tool → input schema."""
        return {name: tool.get("inputSchema") for name, tool in self.named_tools}

    @property
    def read_only_tools(self) -> dict[str, Json]:
        """Return name → tool for the tools with `readOnlyHint`.

        A name that several tools share is omitted, because any of these tools may answer.
        """
        counts = Counter(name for name, _ in self.named_tools)
        return {
            name: tool for name, tool in self.named_tools if hint(tool, "readOnlyHint") is True and counts[name] == 1
        }

    @property
    def answered_reads(self) -> dict[str, Json]:
        """Return method → params of a successful request without effects."""
        asked = [self.probes.get("read-resource"), self.probes.get("get-prompt")]
        asked += [call.exchange for call in self.calls if call.tool in self.read_only_tools and not call.failed]
        lists: dict[str, Json] = {one.method: {} for one in self.lists.values() if not one.problem}
        return lists | {one.method: one.params for one in asked if one is not None and one.result is not None}

    @property
    def output_schemas(self) -> dict[str, Any]:
        """Return tool name → outputSchema."""
        return {name: tool["outputSchema"] for name, tool in self.named_tools if "outputSchema" in tool}

    @property
    def tool_calls(self) -> tuple[RecordedCall, ...]:
        """Return the calls of tools in the first session, with valid and with invalid arguments."""
        return (*self.calls, *self.others, *self.further, *self.wrong)

    @property
    def answers(self) -> tuple[RecordedCall, ...]:
        """Return the calls with arguments from cases, guesses and evaluation cases."""
        evaluated = (one.call for one in self.evaluated)
        return (*self.calls, *(call for call in evaluated if call.exchange.received is not None))

    @property
    def timed_calls(self) -> list[RecordedCall]:
        """Return the answered calls outside the sandbox, where a tool may wait in vain for the network."""
        inside = set(map(id, self.sandboxed.exchanges if self.sandboxed else ()))
        return [call for call in self.calls if call.exchange.received is not None and id(call.exchange) not in inside]

    @property
    def valid_calls(self) -> tuple[RecordedCall, ...]:
        """Return all calls with valid arguments: `answers`, `others` and `further`."""
        return (*self.answers, *self.others, *self.further)

    @property
    def task_results(self) -> list[RecordedCall]:
        """Return the results of calls as tasks."""
        steps = ((run.tool, step) for run in self.task_runs for step in run.steps if step.method == "tasks/result")
        return [RecordedCall(tool, step, "guess") for tool, step in steps if step.result is not None]

    @property
    def called(self) -> tuple[Json, ...]:
        """Return each `tools/call` that was sent. `tool` is "" if the request has no tool name."""
        sent: list[WireExchange | HttpProbeAnswer] = [one for each in self.all_sessions for one in each.exchanges]
        sent += self.http.values()
        sent += [one.call.exchange for one in self.evaluated]
        sent += [call.exchange for one in self.persons for call in (one.unasked, one.agreed, one.declined)]
        sent += [exchange for one in self.failures for exchange in (one.exchange, one.again)]
        return tuple(filter(None, (_named_call(one.sent) for one in sent)))

    @property
    def untried(self) -> dict[str, str]:
        """Return tool → why the tool is unproven: it was not called, or its evaluation case proves nothing."""
        shown = {one.call.tool for one in self.evaluated if not one.faults and not one.shows_nothing}
        reasons = {one.call.tool: one.shows_nothing or "its evaluation case did not pass" for one in self.evaluated}
        return {tool: reasons.get(tool, why) for tool, why in self.uncalled.items() if tool not in shown}

    def missing_reason(self, what: str) -> str:
        """Return why the observation `what` is missing."""
        return self.missing.get(what) or self.missing.get("*", "it was not observed")

    def parameters(self) -> Iterator[tuple[str, str, Any]]:
        """Yield (tool, property, schema) for each top-level property of an inputSchema."""
        for name, tool in self.named_tools:
            for key, value in properties_of(tool.get("inputSchema")).items():
                yield name, key, value
