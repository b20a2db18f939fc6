"""Rules about the process: start, stdout, shutdown and cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.checks.evidence import Evidence, ServerProcess, measure
from mcpfactory_pipeline.checks.exchange import LATEST_MODERN
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_pipeline.checks.transport.stdio import noise_hint
from mcpfactory_pipeline.plan.gates import COSTS

_ODD: Final = frozenset({"before the handshake", f"session {LATEST_MODERN}"})
"""Sessions that do not begin with `initialize`: a server of the handshake may end at that."""
START_WITHIN: Final = (
    10_000  # milliseconds; the shortest start-up limit of a common client (ecosystem: Codex CLI, 10 s)
)
END_WITHIN: Final = 2_000  # milliseconds from the end of stdin
_STDERR: Final = 1500  # trailing characters of stderr in a finding: the reason is at the end


def _starts(evidence: Evidence) -> RuleOutcome:
    begun = any(start.answered and start.purpose.startswith("session ") for start in evidence.starts)
    judged = [start for start in evidence.starts if not begun or start.purpose not in _ODD]
    return rule_outcome(len(judged), (fault for start in judged for fault in _start_faults(start)))


def _start_faults(start: ServerProcess) -> Iterator[Fault]:
    if not start.answered:
        words = start.problem or "no answer came"
        proof = {"stderr": start.stderr[-_STDERR:]}
        if start.noise:
            words = f"{words}; what stood on stdout is no JSON-RPC message: {_causes(start)}"
            proof = {"stdout": _shown(start), **proof}
        yield Fault(words, start.purpose, proof=proof, hint=noise_hint(start.noise_causes))


def _speaks(evidence: Evidence) -> RuleOutcome:
    if evidence.eras:
        return RuleOutcome()
    if not any(start.answered for start in evidence.starts):
        return not_checked("the server did not start")
    asked = [*evidence.handshakes.values(), *([evidence.discover] if evidence.discover else [])]
    shown = next((exchange for exchange in asked if exchange.received), asked[0] if asked else None)
    return RuleOutcome((Fault("neither initialize nor server/discover was answered with a result", exchange=shown),))


def _in_time(evidence: Evidence) -> RuleOutcome:
    answered = [start for start in evidence.starts if start.answered]
    if not answered:
        return not_checked("the server did not start")
    fastest = min(answered, key=lambda start: start.milliseconds)
    slow = [Fault(f"the first answer took {fastest.milliseconds} ms", fastest.purpose)]
    return rule_outcome(1, slow if fastest.milliseconds > START_WITHIN else ())


def _stdout(evidence: Evidence) -> RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("stdout is no channel of this transport")
    started = [start for start in evidence.starts if start.answered]  # startup.starts reports the stdout of the others
    if not started:
        return not_checked("the server did not start")
    return rule_outcome(len(started), (_noise(start) for start in started if start.noise))


def _noise(start: ServerProcess) -> Fault:
    return Fault(
        f"{pluralize(len(start.noise), 'line')} on stdout {('is' if len(start.noise) == 1 else 'are')} not "
        f"JSON-RPC: {_causes(start)}",
        start.purpose,
        proof={"stdout": _shown(start)},
        hint=noise_hint(start.noise_causes),
    )


def _causes(start: ServerProcess) -> str:
    return ", ".join(start.noise_causes) or "text"


def _shown(start: ServerProcess) -> str:
    return "\n".join(start.noise[:5])


def _ends(evidence: Evidence) -> RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("the server was not started here")
    if not any(start.answered for start in evidence.starts):
        return not_checked("the server did not start")
    idle = [start for start in evidence.starts if start.answered and not start.busy and not start.terminated]
    never = (
        Fault("the process did not end when its stdin ended, so it was killed", start.purpose)
        for start in idle
        if start.ended_after is None
    )
    return rule_outcome(len(idle), (*never, *_late(idle)))


def _late(idle: Iterable[ServerProcess], what: str = "after its stdin") -> Iterator[Fault]:
    """Lateness is the fastest's: one slow end of several is the machine's, not the server's."""
    ended = [(start.ended_after, start.purpose) for start in idle if start.ended_after is not None]
    starts = [start.milliseconds for start in idle if start.answered]
    if ended and min(ended)[0] > max(END_WITHIN, 2 * min(starts, default=0)):
        for milliseconds, purpose in ended:
            yield Fault(f"the process ended {milliseconds} ms {what}", purpose)


def _signals(evidence: Evidence) -> RuleOutcome:
    if evidence.transport != "stdio":
        return not_applicable("the server was not started here")
    told = [start for start in evidence.starts if start.answered and start.terminated]
    if not told:
        return not_checked("no process could be told to end")
    never = (
        Fault("the process did not end after SIGTERM, so it was killed", start.purpose)
        for start in told
        if start.ended_after is None
    )
    return rule_outcome(len(told), (*never, *_late(told, "after SIGTERM")))


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="startup.starts", severity=5, gate=True, ceiling=0, check=_starts,
        statement="The server starts and answers at every attempt.",
        source="MCP basic/transports",
        hint="run the command by hand; the evidence has its stderr",
    ),
    Rule(
        id="startup.speaks", severity=5, gate=True, ceiling=0, check=_speaks,
        statement="The server answers initialize or server/discover with a result.",
        source="MCP basic/lifecycle (handshake revisions); MCP server/discover (per-request revisions)",
        hint="answer one of the two; otherwise no client can start a session",
    ),
    Rule(
        id="startup.in-time", severity=3, check=_in_time,
        statement=(f"The first answer arrives within {START_WITHIN // 1000} seconds; the fastest of several starts "
                   "counts."),
        source="the shortest start-up limit among common clients",
        hint="import lazily, and do not wait for the network before you answer",
    ),
    Rule(
        id="startup.stdout", severity=5, gate=True, check=_stdout,
        statement="On stdio, stdout has only JSON-RPC messages, one per line.",
        source="MCP basic/transports, stdio: the server must not write anything else to stdout",
        hint="log to stderr; a stray print breaks clients",
    ),
    Rule(
        id="startup.ends", severity=3, check=_ends,
        statement=(f"On stdio, the process ends within {END_WITHIN // 1000} seconds after its stdin ends, or within twice "
                   "the time of its start."),
        source="MCP basic/lifecycle, Shutdown, stdio: closing stdin is how a client ends a server",
        hint="exit when stdin reaches end-of-file; do not wait for timers or threads",
    ),
    Rule(
        id="startup.signals", severity=1, check=_signals,
        statement="On stdio, the process ends within the same time after SIGTERM.",
        source="MCP basic/lifecycle, Shutdown, stdio: clients send SIGTERM where the end of stdin did not help",
        hint="do not ignore the signal, and finish any cleanup at once",
    ),
)  # fmt: skip


def _within(limit: str, fault: Callable[[Evidence, int], Fault]) -> Check:
    def check(evidence: Evidence) -> RuleOutcome:
        most = evidence.limits.get(limit)
        if most is None:
            return not_applicable(f"no policy sets {limit}")
        value = measure(evidence).get(COSTS[limit])
        if value is None:
            return not_checked(f"{COSTS[limit]} could not be measured")
        return rule_outcome(1, [fault(evidence, value)] if value > most else ())

    return check


def _start(evidence: Evidence, value: int) -> Fault:
    starts = [f"{start.purpose}: {start.milliseconds} ms" for start in evidence.starts if start.answered]
    words = f"the first answer took {value} ms, {evidence.limits['max_start_ms']:g} are allowed"
    return Fault(words, proof={"starts": "\n".join(starts)})


def _call(evidence: Evidence, value: int) -> Fault:
    answered = [call for call in evidence.calls if call.exchange.received is not None]
    slowest = max(answered, key=lambda call: call.exchange.milliseconds)
    words = f"calls took {value} ms (the median), {evidence.limits['max_call_ms']:g} are allowed"
    return Fault(f"{words}; the slowest took {slowest.exchange.milliseconds} ms", slowest.tool, slowest.exchange)


def _memory(evidence: Evidence, value: int) -> Fault:
    peaks = [f"{start.purpose}: {round(start.memory / 1024)} MB" for start in evidence.starts if start.memory]
    words = f"a process took {value} MB, {evidence.limits['max_memory_mb']:g} are allowed"
    return Fault(words, proof={"peaks": "\n".join(peaks)})


_SOURCE: Final = "the policy of this workspace, or --limit"

PERFORMANCE_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="performance.start", severity=1, check=_within("max_start_ms", _start),
        statement="The first answer arrives within max_start_ms of the policy; the fastest of several starts counts.",
        source=_SOURCE,
        hint="import lazily, and do not wait for the network before you answer",
    ),
    Rule(
        id="performance.calls", severity=1, check=_within("max_call_ms", _call),
        statement="Tool calls take at most max_call_ms of the policy; the median counts.",
        source=_SOURCE,
        hint="keep connections open between calls, and move repeated work to the start",
    ),
    Rule(
        id="performance.memory", severity=1, check=_within("max_memory_mb", _memory),
        statement="No process uses more memory than max_memory_mb of the policy, including all calls (stdio, Linux).",
        source=_SOURCE,
        hint=("compare the peaks: if a session with calls uses more memory than one without, the server keeps data "
              "of every call"),
    ),
)  # fmt: skip
