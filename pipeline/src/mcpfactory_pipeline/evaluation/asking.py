"""One question asked of a model with the tools of a running server: turn after turn, until it has answered or gone too far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.checks.person import Person
from mcpfactory_pipeline.checks.right_calls import result_text
from mcpfactory_pipeline.evaluation.attempt import MadeCall, ModelTranscript
from mcpfactory_pipeline.evaluation.model import NO_TOKENS, ModelCall, ModelChat, ToolAnswer
from mcpfactory_pipeline.evaluation.retrieval import SearchTools
from mcpfactory_runtime.client import Client, ProtocolError

__all__ = ["SYSTEM", "Answerer", "ShownTools", "converse", "system_text"]

SYSTEM: Final = "You answer the questions of a person. Where a tool helps, call it; where none does, say so."
"""What every model is told first; the instructions of the server follow."""

_TURNS: Final = 12  # after so many the model is not asked any more
_LARGEST: Final = 100_000  # characters of one answer of a tool that a model is shown


@dataclass(frozen=True, slots=True)
class ShownTools:
    """The list that a model sees, and which tool of the server each name in it stands for.

    Attributes:
        tools: as the endpoint is told them.
        stands_for: shown name → the name that the server lists, where that is another.
        own: listed name → the tool's own, where it is too long for the list.
        search: how tools are reached that the list does not have.
    """

    tools: Sequence[Mapping[str, Any]]
    search: SearchTools
    stands_for: Mapping[str, str] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)


def system_text(instructions: str) -> str:
    """Return what a model is told before the question."""
    return f"{SYSTEM}\n\n{instructions}" if instructions else SYSTEM


@dataclass(frozen=True, slots=True)
class Answerer:
    """A person beside the model: the client's `elicitation`, and what the case says that they answer to each tool."""

    person: Person = field(default_factory=Person)
    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def turn_to(self, tool: str) -> None:
        """Get ready for what the tool asks; what no case answers they decline."""
        self.person.answer = self.answers.get(tool, "declines")


async def converse(
    chat: ModelChat,
    client: Client,
    shown: ShownTools,
    *,
    beside: Answerer | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> ModelTranscript:
    """Let the model call tools of the server until it calls none any more; `beside` answers what tools ask a person.

    Raises:
        EndpointError: the endpoint gave no usable answer.
        ModelUnreachableError: it will give none to any question.
        ConnectionLostError, TimeoutError: the server ended, or did not answer.
    """
    made: list[MadeCall] = []
    usage, began, waited = NO_TOKENS, clock(), 0.0
    for number in range(1, _TURNS + 1):
        asked = clock()
        turn = await chat.turn()
        waited += clock() - asked
        usage += turn.usage
        if not turn.calls or turn.refused:
            return ModelTranscript(
                tuple(made), turn.text, number, usage, clock() - began, waited, refused=turn.refused, cut=turn.cut
            )
        answers = []
        for call in turn.calls:
            done, answer = await _call(client, shown, call, number, beside or Answerer())
            made.append(done)
            answers.append(answer)
        chat.answer(answers)
    return ModelTranscript(tuple(made), "", _TURNS, usage, clock() - began, waited, cut=True)


async def _call(
    client: Client, shown: ShownTools, call: ModelCall, turn: int, beside: Answerer
) -> tuple[MadeCall, ToolAnswer]:
    """Make one call, and return what is kept of it and what the model is told. In search mode the tool that was meant is kept."""
    arguments, listed = call.arguments, shown.stands_for.get(call.tool, call.tool)
    name = shown.own.get(listed, listed)
    if arguments is None:
        text = "The arguments are no JSON object. Call the tool again with arguments that are one."
        return MadeCall(name, None, turn, text, failed=True), ToolAnswer(call, text, failed=True)
    if call.tool not in {tool["name"] for tool in shown.tools}:
        text = f"There is no tool {call.tool}."
        return MadeCall(name, arguments, turn, text, failed=True), ToolAnswer(call, text, failed=True)
    meant = str(arguments.get("name", "")) if shown.search.call and name == shown.search.call else name
    beside.turn_to(shown.own.get(meant, meant))
    try:
        result = await client.call_tool(listed, arguments)
        text, failed = result_text(result)[:_LARGEST], bool(result.get("isError"))
    except ProtocolError as error:
        text, failed = str(error), True
    answer = ToolAnswer(call, text, failed)
    if shown.search.call and name == shown.search.call:
        inner = arguments.get("arguments")
        given = inner if isinstance(inner, dict) else {}
        return MadeCall(shown.own.get(meant, meant), given, turn, text, failed=failed), answer
    machinery = name in shown.search.machinery
    return MadeCall(name, arguments, turn, text, failed=failed, machinery=machinery), answer
