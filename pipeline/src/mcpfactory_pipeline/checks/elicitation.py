"""Answer a server's elicitations, and repeat the calls of tools that ask for consent.

Each tool is called three times, and the stub API records the requests. In the first call, the client cannot ask a
person. In the second call, a person agrees. In the third call, a person declines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from mcpfactory_pipeline.checks.call_plan import PlannedCall, plan_calls, record_call
from mcpfactory_pipeline.checks.evidence import ElicitationOutcome, Evidence, RecordedCall
from mcpfactory_pipeline.checks.exchange import ValidationTarget, WireExchange
from mcpfactory_pipeline.checks.jsonschemas import instance_error
from mcpfactory_pipeline.checks.samples import consent_form_values
from mcpfactory_runtime.client import Client, ConnectionLostError, ProtocolError, connect_stdio
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.upstream.stub import StubUpstream

_DECLINES: Final = {"action": "decline"}


class SimulatedPerson:
    """Simulated person who answers a client's elicitations.

    Attributes:
        answer: a case's values for the form; or "agrees" (to any form); or "declines".
        asked: the questions so far.
        faults: errors in answers that do not match the form.
    """

    def __init__(self, answer: Mapping[str, Any] | Literal["agrees", "declines"] = "declines") -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.faults: list[str] = []

    def __call__(self, params: Json) -> Json:
        """Return the result of `elicitation/create`."""
        self.asked.append(str(params.get("message", "")))
        schema = params.get("requestedSchema")
        # Without a schema, an elicitation asks the person to open a URL, which a test cannot do.
        if self.answer == "declines" or not isinstance(schema, dict):
            return dict(_DECLINES)
        content = dict(consent_form_values(schema) if self.answer == "agrees" else self.answer)
        if error := instance_error(content, schema):
            self.faults.append(f"the answer of the person does not fit the form: {error}")
            return dict(_DECLINES)
        return {"action": "accept", "content": content}


_ANSWER: Final = 10.0  # seconds; timeout of one answer
_LOST: Final = (ConnectionLostError, ProtocolError, TimeoutError)


async def observe_elicitations(
    evidence: Evidence,
    target: ValidationTarget,
    environ: Mapping[str, str],
    cases: Sequence[Mapping[str, object]],
    stub: StubUpstream,
    *,
    seconds: float,
) -> None:
    """Repeat the failed calls of tools that ask a person, with a simulated person.

    A call with the person's agreement replaces the failed call. Tools that already passed their case are not called
    again.
    """
    refused = _refused(evidence, cases)
    if not refused or target.command is None:
        return
    person = SimulatedPerson()
    try:
        async with (
            asyncio.timeout(seconds),
            connect_stdio(
                target.command,
                env=environ,
                cwd=target.cwd,
                inherit=False,
                mode="legacy" if "legacy" in evidence.lifecycles else "modern",
                timeout=_ANSWER,
                elicitation=person,
            ) as client,
        ):
            for planned, call in refused:
                agreed = await _call(client, person, "agrees", planned, stub)
                if question := "; ".join(person.asked):
                    declined = await _call(client, person, "declines", planned, stub)
                    evidence.persons.append(ElicitationOutcome(question, call, agreed, declined))
    except (*_LOST, McpError):
        pass  # the connection failed, but earlier observations remain valid
    agreed_to = {id(one.unasked): one.agreed for one in evidence.persons}
    evidence.calls = [agreed_to.get(id(call), call) for call in evidence.calls]


def _refused(evidence: Evidence, cases: Sequence[Mapping[str, object]]) -> list[tuple[PlannedCall, RecordedCall]]:
    plan, _ = plan_calls(evidence.named_tools, cases)
    planned = {(one.tool, one.title): one for one in plan}
    return [
        (planned[call.tool, call.title], call)
        for call in evidence.calls
        if call.origin == "case"
        and call.exchange.received is not None
        and (call.failed or call.mismatches)
        and (call.tool, call.title) in planned
    ]


async def _call(
    client: Client,
    person: SimulatedPerson,
    answer: Literal["agrees", "declines"],
    planned: PlannedCall,
    stub: StubUpstream,
) -> RecordedCall:
    person.answer = answer
    person.asked.clear()
    return await record_call(planned, stub, call_tool(client, planned.tool, planned.arguments))


def tool_call_request(name: str, arguments: Mapping[str, Any]) -> Json:
    """Return the request of a tool call in the format of reports."""
    return {"method": "tools/call", "params": {"name": name, "arguments": dict(arguments)}}


async def call_tool(client: Client, name: str, arguments: Mapping[str, Any]) -> WireExchange:
    """Call a tool through a client; if the server returns a protocol error, store the error as the answer.

    Raises:
        ProtocolError, ConnectionLostError, TimeoutError: no answer arrived.
    """
    received: Json
    try:
        received = {"result": await client.call_tool(name, dict(arguments))}
    except McpError as error:
        received = {"error": {"code": error.code, "message": str(error)}}
    return WireExchange(tool_call_request(name, arguments), received)
