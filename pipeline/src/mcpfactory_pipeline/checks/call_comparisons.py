"""Repeat calls of read-only tools: with explicit defaults, after other calls, in parallel, after a cancellation.

Only calls that succeeded in less than a second are compared.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, Final

from mcpfactory_pipeline.checks.client_capabilities import asks_for_input, params_without_meta
from mcpfactory_pipeline.checks.evidence import (
    AnswerDuringSlowCall,
    CallComparison,
    Evidence,
    RecordedCall,
    answer_text,
    sent_arguments,
)
from mcpfactory_pipeline.checks.exchange import QUICK, WireExchange
from mcpfactory_pipeline.checks.requester import ANSWER, SLOWER, Requester
from mcpfactory_pipeline.checks.samples import arguments_with_defaults
from mcpfactory_pipeline.checks.transport.conversation import Conversation, cancellation_message
from mcpfactory_runtime.types import Json

_SECONDS: Final = 2.0  # seconds per comparison
_MAX_TOOLS: Final = 20
_LARGE: Final = 1 << 15  # characters of a result
_COPIES: Final = 3  # number of times that two calls with large answers are sent
_MAX_PAIRS: Final = 5
_MAX_DEFAULTS: Final = 3  # per tool
_CONFIRMATIONS: Final = 4  # number of calls that confirm a result
_FAILURES: Final = 12  # number of repetitions of a failing call
_IDLE: Final = 1.1  # seconds; minimum pause before a repetition
_MAX_IDLE: Final = 10.0  # seconds
_CANCELABLE: Final = 100  # milliseconds; only slower calls are canceled
_LONGEST: Final = 5_000  # milliseconds; only quicker calls are repeated
_CANCELED: Final = 3  # number of calls to cancel
_PAUSE: Final = 0.2  # seconds between a call and its cancellation


_Call = tuple[str, Mapping[str, Any]]  # name of the tool, and arguments


@dataclass(slots=True)
class _Repeated:
    """A first call, its immediate repetition, and the duration of each call."""

    arguments: Mapping[str, Any]
    exchanges: tuple[WireExchange, WireExchange]
    at: float


class CallComparer:
    """Repeats and compares the calls of one session."""

    def __init__(self, evidence: Evidence, conversation: Conversation, requests: Requester) -> None:
        self._evidence = evidence
        self._conversation = conversation
        self._requests = requests
        self._firsts: dict[str, _Repeated] = {}
        self._ended = False
        self._tools = evidence.read_only_tools

    async def repeat(self, call: RecordedCall) -> None:
        """Repeat a tool's first call immediately; if the result differs, repeat the call again.

        Later results are compared only if the first two results are equal.
        """
        usable = call.tool in self._tools and call.tool not in self._firsts and len(self._firsts) < _MAX_TOOLS
        if usable and not call.failed and call.exchange.milliseconds < QUICK:
            arguments = sent_arguments(call)
            again = await self._call(call.tool, arguments)
            if again.outcome != call.exchange.outcome and not self._ended:
                others = (again, await self._call(call.tool, arguments))
                self._evidence.comparisons.append(CallComparison("consumed", call.tool, (call.exchange,), others))
            self._firsts[call.tool] = _Repeated(arguments, (call.exchange, again), time.monotonic())

    async def compare(self) -> None:
        """Make all comparisons."""
        await self._with_defaults()
        if not self._other_tools_were_called():
            await self._later()
        await self._overlapping()
        await self._after_failures()
        slow = max(
            (one for one in self._evidence.calls if one.tool in self._tools and not one.failed),
            # Round to tenths of a second, so that the first of several calls with similar durations wins.
            key=lambda one: one.exchange.milliseconds // 100,
            default=None,
        )
        if slow is not None and slow.exchange.milliseconds <= _LONGEST and not self._over():
            await self._while_running(slow)

    def _other_tools_were_called(self) -> bool:
        """Return True if calls of tools that may write were sent, for example with `--allow-calls`."""
        sent = {one.params.get("name") for one in self._conversation.session.exchanges if one.method == "tools/call"}
        return any(name in sent and name not in self._tools for name, _ in self._evidence.named_tools)

    async def _with_defaults(self) -> None:
        until = time.monotonic() + _SECONDS
        for tool, first in self._firsts.items():
            schema = self._tools[tool].get("inputSchema")
            for key, arguments in arguments_with_defaults(schema, first.arguments)[:_MAX_DEFAULTS]:
                if self._over() or time.monotonic() > until:
                    return
                given = [await self._call(tool, arguments) for _ in range(2)]
                left_out = await self._call(tool, first.arguments)
                usual = (*first.exchanges, left_out)
                self._evidence.comparisons.append(CallComparison("default", tool, usual, tuple(given), key))

    async def _later(self) -> None:
        """Repeat the first calls; if a result changed, repeat that call once more after a pause.

        The pause is as long as the earlier calls took, because results may change over time. If the pause would be too
        long, a changed result is not compared.
        """
        until = time.monotonic() + _SECONDS
        changed: list[tuple[str, _Repeated]] = []
        for tool, first in self._firsts.items():
            if self._over() or time.monotonic() > until:
                break
            later = await self._call(tool, first.arguments)
            if later.outcome == first.exchanges[1].outcome:
                self._evidence.comparisons.append(CallComparison("later", tool, first.exchanges, (later,)))
            else:
                changed.append((tool, first))
        again = [await self._call(tool, first.arguments) for tool, first in changed if not self._over()]
        idle = max([_IDLE, *(time.monotonic() - first.at for _, first in changed)])
        if not changed or self._ended or idle > min(_MAX_IDLE, self._requests.seconds_left()):
            return
        await asyncio.sleep(idle)
        for (tool, first), one in zip(changed, again, strict=True):
            others = (one, await self._call(tool, first.arguments))
            self._evidence.comparisons.append(CallComparison("later", tool, first.exchanges, others))

    async def _overlapping(self) -> None:
        """Send two calls at the same time. For comparison, send each call alone before and afterwards.

        Calls with large answers are sent several times, because a pipe takes only a part of such an answer at once.
        """
        until = time.monotonic() + _SECONDS
        for pair in self._pairs()[:_MAX_PAIRS]:
            if self._over() or time.monotonic() > until:
                return
            before = [await self._call(*one) for one in pair]
            large = any(len(answer_text(one)) > _LARGE for one in before)
            requests = [self._request(*one) for one in pair * (_COPIES if large else 1)]
            both = (await self._conversation.overlap(requests, ANSWER))[: len(pair)]
            # A server that is stuck answers no further calls.
            stuck = any(one.received is None for one in both)
            after = before if stuck else [await self._call(*one) for one in pair]
            if len(both) < len(pair) or any(map(asks_for_input, both)):
                return  # a call that asks for input has its result only after the answer
            more: list[list[WireExchange]] = []
            if not stuck and [one.outcome for one in both] != [one.outcome for one in before] and not self._ended:
                # Random results may be equal by chance.
                more = [[await self._call(*one) for one in pair] for _ in range(_CONFIRMATIONS)]
            for at, (tool, _) in enumerate(pair):
                usual = (before[at], after[at], *(one[at] for one in more))
                rival = before[1 - at]
                self._evidence.comparisons.append(CallComparison("overlap", tool, usual, (both[at],), rival=rival))

    async def _after_failures(self) -> None:
        """Repeat failing calls, each followed by a correct call: each failure may leave a resource occupied."""
        evidence = self._evidence
        failed = {call.tool: call.exchange for call in evidence.tool_calls if call.failed and call.tool in self._tools}
        until = time.monotonic() + _SECONDS
        for tool, exchange in failed.items() if self._firsts else ():
            params, answered = params_without_meta(exchange.sent), exchange.milliseconds < QUICK
            for _ in range(_FAILURES):
                if self._over() or time.monotonic() > until or not answered:
                    break
                again = await self._requests.request(self._conversation, "tools/call", params)
                answered = again.received is not None
            if self._over():
                return
            name, first = (tool, self._firsts[tool]) if tool in self._firsts else next(iter(self._firsts.items()))
            after = await self._call(name, first.arguments)
            evidence.comparisons.append(CallComparison("failures", name, first.exchanges, (after,)))

    def _pairs(self) -> list[tuple[_Call, _Call]]:
        """Return pairs of calls with different results: one pair per tool, or else one pair of two tools."""
        pairs: list[tuple[_Call, _Call]] = []
        more = (*self._evidence.others, *self._evidence.further)
        for tool, first in self._firsts.items():
            outcome = first.exchanges[0].outcome
            others = (one for one in more if one.tool == tool and not one.failed and one.exchange.outcome != outcome)
            if (other := next(others, None)) is not None:
                pairs.append(((tool, first.arguments), (tool, sent_arguments(other))))
        return pairs or list(pairwise((tool, first.arguments) for tool, first in self._firsts.items()))[:1]

    async def _while_running(self, slow: RecordedCall) -> None:
        """Send a ping during a call that takes more than a second; then cancel calls, and repeat them."""
        tool, arguments = slow.tool, sent_arguments(slow)
        if slow.exchange.milliseconds > QUICK and "legacy" in self._evidence.lifecycles:
            messages = [self._request(tool, arguments), self._requests.message("ping")]
            answers = await self._conversation.overlap(messages, ANSWER)
            if len(answers) == len(messages):
                self._evidence.busy.append(AnswerDuringSlowCall("ping", tool, answers[1], answers[0]))
        if slow.exchange.milliseconds > _CANCELABLE and not self._over():
            *canceled, again = (self._request(tool, arguments) for _ in range(_CANCELED + 1))
            pause = min(_PAUSE, slow.exchange.milliseconds / 3_000)
            # The server may complete the canceled call before it starts the next call.
            patience = ANSWER + max(4 * slow.exchange.milliseconds / 1000, SLOWER * self._requests.pace)
            pairs = ((one, cancellation_message(one)) for one in canceled)
            answers = await self._conversation.overlap([*chain(*pairs), again], patience, pause)
            self._evidence.busy += [
                AnswerDuringSlowCall("after cancellation", tool, one, slow.exchange) for one in answers
            ]

    def _over(self) -> bool:
        return self._ended or self._requests.seconds_left() <= 0

    def _request(self, tool: str, arguments: Mapping[str, Any]) -> Json:
        return self._requests.message("tools/call", {"name": tool, "arguments": dict(arguments)})

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> WireExchange:
        exchange = await self._requests.ask(self._conversation, self._request(tool, arguments))
        if exchange.received is None:
            self._ended = True
            self._evidence.further.append(RecordedCall(tool, exchange, "guess", "repeated"))
        return exchange
