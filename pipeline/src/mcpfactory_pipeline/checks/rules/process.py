"""Rules about the process: start, stdout, shutdown and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, Session
from mcpfactory_pipeline.checks.exchange import LATEST_MODERN, WireExchange
from mcpfactory_pipeline.checks.measurements import measure
from mcpfactory_pipeline.checks.rule import (
    Fault,
    RuleOutcome,
    RuleSubjects,
    RuleTable,
    Scope,
    not_applicable,
    not_checked,
)
from mcpfactory_pipeline.checks.transport.stdio import pollution_hint
from mcpfactory_pipeline.plan.gates import COST_GATES

RULES: Final = RuleTable()
rule = RULES.rule
_NO_HANDSHAKE: Final = frozenset({"before the handshake", f"session {LATEST_MODERN}"})
"""Sessions that do not begin with `initialize`; a server of the handshake lifecycle may end these sessions."""
# Milliseconds; the shortest time that a common client (Codex CLI) waits for a server to start.
START_WITHIN: Final = 10_000
END_WITHIN: Final = 2_000  # milliseconds; maximum time from the end of stdin to the exit of the process
_STDERR: Final = 1500  # characters; a finding shows only this last part of stderr


def _started(reason: str = "") -> Scope[Session]:
    """Return a scope of the sessions with an answer from the server.

    If `reason` is set, it explains why the rule does not apply over HTTP.
    """

    def scope(evidence: Evidence) -> RuleSubjects[Session] | RuleOutcome:
        if reason and evidence.transport != "stdio":
            return not_applicable(reason)
        started = [session for session in evidence.sessions if session.answered]
        return RuleSubjects(started) if started else not_checked("the server did not start")

    return scope


def _second_process(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("a server at a URL is not started here")
    if "legacy" not in evidence.lifecycles:
        return not_applicable("the server has no handshake")
    one = evidence.second_process
    return RuleSubjects([one]) if one is not None else not_checked(evidence.missing_reason("*"))


@rule("process.second-process", 3, over=_second_process,
      statement="A second process of the server starts while the first one runs.",
      source="MCP basic/transports, stdio: each client starts its own process",
      hint="let the system choose ports, and lock files only during a write")  # fmt: skip
def _second(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.result is None:
        words = f"while one process ran, a second one did not answer initialize: {exchange.problem or exchange.error}"
        yield Fault(words, "second process", exchange)


def _starts(evidence: Evidence) -> RuleSubjects[Session]:
    begun = any(session.answered and session.purpose.startswith("session ") for session in evidence.sessions)
    return RuleSubjects([session for session in evidence.sessions if not begun or session.purpose not in _NO_HANDSHAKE])


@rule("process.starts", 5, gate=True, over=_starts,
      statement="The server starts and answers at every attempt.",
      source="MCP basic/transports",
      hint="run the command by hand; the evidence has its stderr, and --env NAME=VALUE passes settings")  # fmt: skip
def _start(session: Session) -> Iterator[Fault]:
    if not session.answered:
        words = session.problem or "no answer came"
        proof = {"stderr": session.stderr[-_STDERR:]}
        if session.pollution:
            words = f"{words}; stdout has other text than JSON-RPC messages: {_causes(session)}"
            proof = {"stdout": _shown(session), **proof}
        yield Fault(words, session.purpose, proof=proof, hint=pollution_hint(session.pollution_causes))


@rule("process.initializes", 5, gate=True,
      statement="The server answers initialize or server/discover with a result.",
      source="MCP basic/lifecycle (handshake revisions); MCP server/discover (per-request revisions)",
      hint="answer one of the two; otherwise no client can start a session")  # fmt: skip
def _speaks(evidence: Evidence) -> RuleOutcome:
    if evidence.lifecycles:
        return RuleOutcome()
    if not any(session.answered for session in evidence.sessions):
        return not_checked("the server did not start")
    asked = [*evidence.handshakes.values(), *([evidence.discover] if evidence.discover else [])]
    shown = next((exchange for exchange in asked if exchange.received), asked[0] if asked else None)
    return RuleOutcome((Fault("neither initialize nor server/discover was answered with a result", exchange=shown),))


def _large(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("a server at a URL may limit the size of requests")
    large, before = evidence.probes.get("large"), evidence.probes.get("after-malformed")
    if large is None and before is not None and before.received is None:
        return not_applicable("the server had already ended, after malformed JSON")
    return RuleSubjects([large]) if large is not None else not_checked(evidence.missing_reason("large"))


@rule("process.large-message", 3, gate=True, over=_large,
      statement="A message of 256 KiB on one line is answered.",
      source="MCP basic/transports, stdio: messages end only at newlines; the protocol has no maximum size",
      hint="raise the line limit of the reader (Python: StreamReader(limit=…), Go: Scanner.Buffer)")  # fmt: skip
def _answers_large_message(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.received is None:
        yield Fault(f"a request of 256 KiB got no answer: {exchange.problem}", "large message")


def _fastest(evidence: Evidence) -> RuleSubjects[Session] | RuleOutcome:
    started = _started()(evidence)
    if isinstance(started, RuleOutcome):
        return started
    return RuleSubjects([min(started.items, key=lambda session: session.milliseconds)])


@rule("process.start-time", 3, over=_fastest,
      statement=(f"The first answer arrives within {START_WITHIN // 1000} seconds; the fastest of several starts "
                 "counts."),
      source="the shortest start-up limit among common clients",
      hint="import lazily, and do not wait for the network before you answer")  # fmt: skip
def _in_time(session: Session) -> Iterator[Fault]:
    if session.milliseconds > START_WITHIN:
        yield Fault(f"the first answer took {session.milliseconds} ms", session.purpose)


def _outputs(evidence: Evidence) -> RuleSubjects[Session] | RuleOutcome:
    started = _started("this transport does not use stdout")(evidence)
    if isinstance(started, RuleOutcome) or evidence.sandboxed is None:
        return started
    return RuleSubjects([*started.items, evidence.sandboxed])


@rule("process.stdout", 5, gate=True, over=_outputs,
      statement="On stdio, stdout has only JSON-RPC messages, one per line.",
      source="MCP basic/transports, stdio: the server must not write anything else to stdout",
      hint="log to stderr; other output on stdout breaks clients")  # fmt: skip
def _stdout(session: Session) -> Iterator[Fault]:
    """Check the sessions with an answer; process.starts reports the stdout of other sessions."""
    if session.pollution:
        yield Fault(
            f"stdout has lines that are not JSON-RPC: {_causes(session)}",
            session.purpose,
            proof={"stdout": _shown(session)},
            hint=pollution_hint(session.pollution_causes),
        )


def _causes(session: Session) -> str:
    return ", ".join(session.pollution_causes) or "text"


def _shown(session: Session) -> str:
    return "\n".join(session.pollution[:5])


def _processes(choose: Callable[[Session], bool], none: str = "") -> Scope[list[Session]]:
    """Return a scope with one subject: the chosen processes that answered.

    `none` is the reason if no process answered.
    """

    def scope(evidence: Evidence) -> RuleSubjects[list[Session]] | RuleOutcome:
        started = _started("the server was not started here")(evidence)
        if isinstance(started, RuleOutcome):
            return started
        chosen = list(filter(choose, started.items))
        return RuleSubjects([chosen], len(chosen)) if chosen or not none else not_checked(none)

    return scope


@rule("process.exits-on-eof", 3, over=_processes(lambda session: not session.busy and not session.terminated),
      statement=(f"On stdio, the process ends within {END_WITHIN // 1000} seconds after its stdin ends, or within "
                 "twice the time of its start."),
      source="MCP basic/lifecycle, Shutdown, stdio: closing stdin is how a client ends a server",
      hint="exit when stdin reaches end-of-file; do not wait for timers or threads")  # fmt: skip
def _ends(sessions: list[Session]) -> Iterator[Fault]:
    return _late(sessions, "when its stdin ended", "after its stdin")


@rule("process.exits-on-sigterm", 1, over=_processes(lambda session: session.terminated, "no process could be asked to end"),
      statement=(f"On stdio, the process ends within {END_WITHIN // 1000} seconds after SIGTERM, or within twice the "
                 "time of its start."),
      source="MCP basic/lifecycle, Shutdown, stdio: clients send SIGTERM if closing stdin did not end the server",
      hint="handle SIGTERM, and finish any cleanup at once")  # fmt: skip
def _signals(sessions: list[Session]) -> Iterator[Fault]:
    # Ignore processes that a call kept busy and that did not end.
    ended = [session for session in sessions if not session.busy or session.ended_after is not None]
    return _late(ended, "after SIGTERM", "after SIGTERM")


def _late(sessions: Sequence[Session], when: str, after: str) -> Iterator[Fault]:
    """Yield processes that did not end.

    Late processes count only if all processes ended late, because a busy machine delays some processes.
    """
    ended = [(session.ended_after, session) for session in sessions if session.ended_after is not None]
    for session in sessions:
        if session.ended_after is None:
            yield Fault(f"the process did not end {when}, so it was killed", session.purpose)
    fastest_start = min((session.milliseconds for session in sessions), default=0)
    if ended and min(took for took, _ in ended) > max(END_WITHIN, 2 * fastest_start):
        for took, session in ended:
            yield Fault(f"the process ended {took} ms {after}", session.purpose)


PERFORMANCE: Final = RuleTable()
_SOURCE: Final = "the policy of this workspace, or --limit"


def _limited(limit: str) -> Scope[tuple[int, float]]:
    def scope(evidence: Evidence) -> RuleSubjects[tuple[int, float]] | RuleOutcome:
        most = evidence.limits.get(limit)
        if most is None:
            return not_applicable(f"no policy sets {limit}")
        value = measure(evidence).get(COST_GATES[limit])
        if value is None:
            return not_checked(f"{COST_GATES[limit]} could not be measured")
        return RuleSubjects([(value, most)] if value > most else [], 1)

    return scope


@PERFORMANCE.rule("performance.start", 1, over=_limited("max_start_ms"),
      statement="The first answer arrives within max_start_ms of the policy; the fastest of several starts counts.",
      source=_SOURCE,
      hint="import lazily, and do not wait for the network before you answer")  # fmt: skip
def _start_cost(cost: tuple[int, float], evidence: Evidence) -> Iterator[Fault]:
    value, most = cost
    starts = [f"{one.purpose}: {one.milliseconds} ms" for one in evidence.sessions if one.answered]
    words = f"the first answer took {value} ms, {most:g} are allowed"
    yield Fault(words, proof={"starts": "\n".join(starts)})


@PERFORMANCE.rule("performance.calls", 1, over=_limited("max_call_ms"),
      statement="Tool calls take at most max_call_ms of the policy; the median counts.",
      source=_SOURCE,
      hint="keep connections open between calls, and move repeated work to the start")  # fmt: skip
def _call_cost(cost: tuple[int, float], evidence: Evidence) -> Iterator[Fault]:
    value, most = cost
    slowest = max(evidence.timed_calls, key=lambda call: call.exchange.milliseconds)
    words = f"calls took {value} ms (the median), {most:g} are allowed"
    yield Fault(f"{words}; the slowest took {slowest.exchange.milliseconds} ms", slowest.tool, slowest.exchange)


@PERFORMANCE.rule("performance.memory", 1, over=_limited("max_memory_mb"),
      statement="No process uses more memory than max_memory_mb of the policy, even during calls (stdio, Linux).",
      source=_SOURCE,
      hint=("compare the peaks: if a session with calls uses more memory than a session without calls, "
            "the server keeps data of every call"))  # fmt: skip
def _memory_cost(cost: tuple[int, float], evidence: Evidence) -> Iterator[Fault]:
    value, most = cost
    peaks = [f"{one.purpose}: {round(one.memory / 1024)} MB" for one in evidence.sessions if one.memory]
    yield Fault(f"a process took {value} MB, {most:g} are allowed", proof={"peaks": "\n".join(peaks)})
