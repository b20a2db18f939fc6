"""Whether a call of an evaluation case does what the case says: made on a running server, by its client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.checks.exchange import Json
from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.checks.person import Person
from mcpfactory_pipeline.workspace.evaluation_case import ExpectedCall
from mcpfactory_runtime.client import Client, ProtocolError
from mcpfactory_runtime.protocol.errors import McpError

__all__ = ["CallOutcome", "make_call", "misfits", "result_text"]

_SHOWN: Final = 200  # characters of an answer


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came of a call: what is wrong with it, the answer as JSON-RPC, and what a person was asked."""

    faults: tuple[str, ...]
    received: Json | None = None
    asked: tuple[str, ...] = ()
    sent: Json = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The answer as a model reads it."""
        return result_text((self.received or {}).get("result") or {})


def misfits(known: Mapping[str, Mapping[str, Any]], call: ExpectedCall) -> list[str]:
    """Return why the call cannot be made: no such tool, or arguments that its schema does not take.

    Args:
        known: the tools of the server in mode full, by name.
        call: of a case.
    """
    if call.tool not in known:
        return [f"the server has no tool {call.tool}"]
    if missing := set(call.free) - set(call.arguments):
        return [f"{call.tool}: {', '.join(sorted(missing))} is free and not among the arguments"]
    if error := instance_error(dict(call.arguments), known[call.tool].get("inputSchema", {})):
        return [f"{call.tool} does not take the arguments: {error}"]
    return []


async def make_call(client: Client, call: ExpectedCall, person: Person, *, through: str = "") -> CallOutcome:
    """Make the call, and compare what came of it with the case.

    Args:
        client: of the running server; `person` is its `elicitation`, where the case has one.
        call: what is called and expected.
        person: answers what the tool asks.
        through: the tool that calls others, for a tool that the server does not list.

    Raises:
        ConnectionLostError, TimeoutError: when the server ends, or does not answer.
    """
    name, arguments = call.tool, dict(call.arguments)
    if through:
        name, arguments = through, {"name": name, "arguments": arguments}
    sent = {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
    person.answer = "declines" if call.person is None else call.person
    before, faulty = len(person.asked), len(person.faults)
    try:
        result = await client.call_tool(name, arguments)
    except (ProtocolError, McpError) as error:
        said = f"{call.tool} was answered with a protocol error: {error}"
        received = {"error": {"code": error.code, "message": str(error)}} if isinstance(error, McpError) else None
        return CallOutcome((said,), received, sent=sent)
    asked = tuple(person.asked[before:])
    faults = [*_said_faults(call, result), *_person_faults(call, asked), *person.faults[faulty:]]
    return CallOutcome(tuple(faults), {"result": result}, asked, sent)


def _said_faults(call: ExpectedCall, result: Mapping[str, Any]) -> Sequence[str]:
    text = result_text(result)
    if result.get("isError"):
        return [f"{call.tool} failed: {text[:_SHOWN]!r}"]
    return [
        f"the answer of {call.tool} does not say {said!r}: {text[:_SHOWN]!r}" for said in call.says if said not in text
    ]


def _person_faults(call: ExpectedCall, asked: Sequence[str]) -> Sequence[str]:
    if call.person is not None and not asked:
        return [f"{call.tool} did it without asking a person"]
    if call.person is None and asked:
        return [f"{call.tool} asked a person {asked[0][:_SHOWN]!r}, and the case does not say what they answer"]
    return []


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of a result as a model reads it."""
    blocks = result.get("content")
    found = blocks if isinstance(blocks, list) else []
    return "\n".join(str(block["text"]) for block in found if isinstance(block, dict) and "text" in block)
