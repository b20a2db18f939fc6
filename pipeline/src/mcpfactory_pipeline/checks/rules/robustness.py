"""Rules over what a server does while its API fails: the failure matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, FailureOutcome
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_pipeline.checks.rules.schemas import tools_or_reason

_MOST_REQUESTS: Final = 3
_MOST_MEMORY: Final = 256  # megabytes that the process may grow by while a gigabyte is thrown at it
_MOST_TEXT: Final = 1_000_000  # characters of an answer
_ONCE: Final = frozenset({"POST", "PATCH"})


def _each(find_faults: Callable[[FailureOutcome], Iterator[Fault]]) -> Check:
    def check(evidence: Evidence) -> RuleOutcome:
        return _rows_or_reason(evidence) or rule_outcome(
            len(evidence.failures), (fault for row in evidence.failures for fault in find_faults(row))
        )

    return check


def _rows_or_reason(evidence: Evidence) -> RuleOutcome | None:
    if not evidence.with_cases:
        return not_applicable("without cases nobody can make the server's API fail")
    reason = tools_or_reason(evidence)
    if reason is not None:
        return reason
    why = evidence.missing.get("failures", "")
    return not_checked(why) if why or not evidence.failures else None


def _where(row: FailureOutcome) -> str:
    return f"{row.tool}/{row.failure}"


def _answers(row: FailureOutcome) -> Iterator[Fault]:
    if row.exchange.received is None:
        yield Fault(
            f"the API {row.does}, and the call got no answer: {row.exchange.problem}", _where(row), row.exchange
        )


def _lives(row: FailureOutcome) -> Iterator[Fault]:
    if row.again.failed:
        said = row.again.problem or "an error"
        yield Fault(f"the API {row.does} and then recovers, but the next call gets {said}", _where(row), row.again)


def _errors(evidence: Evidence) -> RuleOutcome:
    """A tool that never asks its API cannot know that it fails; that it does not ask is what behaviour.requests sees."""
    if (reason := _rows_or_reason(evidence)) is not None:
        return reason
    asking = {row.tool for row in evidence.failures if row.requests}
    rows = [row for row in evidence.failures if row.tool in asking]
    if not rows:
        return not_applicable("no tool asked the API")
    faults = (
        Fault(f"the API {row.does}, but the tool reports success", _where(row), row.exchange)
        for row in rows
        if row.error and row.exchange.received is not None and not row.failed
    )
    return rule_outcome(len(rows), faults)


def _error_text(row: FailureOutcome) -> Iterator[Fault]:
    if not row.failed or row.exchange.received is None:
        return
    if not row.said.strip():
        yield Fault(f"the API {row.does}, and the error has no text", _where(row), row.exchange)
    elif "Traceback (most recent call last)" in row.said:
        yield Fault(f"the API {row.does}, and the error is a stack trace", _where(row), row.exchange)
    elif row.status and str(row.status) not in row.said:
        yield Fault(f"the API {row.does}, and the error does not contain {row.status}", _where(row), row.exchange)


def _once(row: FailureOutcome) -> Iterator[Fault]:
    writing = [method for method in row.requests if method in _ONCE]
    if len(writing) > 1:
        yield Fault(f"the API {row.does}, and {writing[0]} was sent {len(writing)} times", _where(row), row.exchange)
    elif len(row.requests) > _MOST_REQUESTS:
        yield Fault(f"the API {row.does}, and got {len(row.requests)} requests", _where(row), row.exchange, lesser=2)


def _redirected(row: FailureOutcome) -> Iterator[Fault]:
    if row.elsewhere:
        yield Fault(f"the API {row.does}, and the request was sent there", _where(row), row.exchange)


def _bounded(row: FailureOutcome) -> Iterator[Fault]:
    if row.grown is not None and row.grown > _MOST_MEMORY:
        yield Fault(
            f"the API {row.does}, and the process grew by more than {_MOST_MEMORY} MB", _where(row), row.exchange
        )
    elif len(row.said) > _MOST_TEXT:
        yield Fault(
            f"the API {row.does}, and the answer of the tool has {len(row.said):,} characters",
            _where(row),
            row.exchange,
        )


def _shape(evidence: Evidence) -> RuleOutcome:
    reason = _rows_or_reason(evidence)
    if reason is not None:
        return reason
    declared = {name: tool["outputSchema"] for name, tool in evidence.named_tools if "outputSchema" in tool}
    rows = [row for row in evidence.failures if row.tool in declared and not row.failed]
    if not rows:
        return not_applicable("no tool with an outputSchema answered while its API failed")
    return rule_outcome(len(rows), (fault for row in rows for fault in _shape_faults(row, declared[row.tool])))


def _shape_faults(row: FailureOutcome, schema: object) -> Iterator[Fault]:
    if schema_error(schema):
        return  # schemas.output-valid says so
    structured = (row.exchange.result or {}).get("structuredContent")
    problem = "there is none" if structured is None else instance_error(structured, schema)
    if problem:
        yield Fault(
            f"the API {row.does}, and structuredContent does not match the outputSchema: {problem}",
            _where(row),
            row.exchange,
        )


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="robustness.answers", severity=5, gate=True, check=_each(_answers),
        statement="Every call is answered in time, even if the API fails.",
        source="JSON-RPC 2.0 §5; a model waits for the answer, and a client gives the server up",
        hint=("limit the time of the whole exchange with the API, not only of its parts; generated servers read "
              "MCPFACTORY_TIMEOUT"),
    ),
    Rule(
        id="robustness.lives", severity=5, gate=True, check=_each(_lives),
        statement="When the API has recovered, the next call works.",
        source="a server that one bad answer ends has to be started again by a person",
        hint="keep no state of a failed exchange: no broken connection, no lock, no partially read body",
    ),
    Rule(
        id="robustness.errors", severity=5, gate=True, check=_errors,
        statement="When the API fails, the tool answers with isError.",
        source="MCP server/tools, Error Handling: API failures are tool execution errors",
        hint="raise ToolError, or return isError, for every status from 300 and for every interrupted exchange",
    ),
    Rule(
        id="robustness.told", severity=2, check=_each(_error_text),
        statement="The error reports the answer of the API, without a stack trace.",
        source="MCP server/tools, Error Handling: tool execution errors are for the model to act on",
        hint="include the status and the message of the API",
    ),
    Rule(
        id="robustness.once", severity=5, gate=True, check=_each(_once),
        statement=("POST and PATCH are sent once, whether they succeed or fail; other methods are sent at most "
                   f"{_MOST_REQUESTS} times."),
        source="RFC 9110 §9.2.2: a request that is not idempotent must not be repeated automatically",
        hint="retry only idempotent methods, and limit the number of attempts",
    ),
    Rule(
        id="robustness.redirect", severity=5, gate=True, check=_each(_redirected),
        statement="A redirect to another host is not followed.",
        source="MCP basic/security best practices, SSRF; credentials would go along",
        hint="disable redirects, or follow them within the host only",
    ),
    Rule(
        id="robustness.bounded", severity=3, check=_each(_bounded),
        statement=(f"A response of a gigabyte, even a compressed one, does not fill the memory ({_MOST_MEMORY} MB) or the "
                   "answer."),
        source="CWE-400, CWE-409: one answer of an API must not end a server of many",
        hint="read up to a limit that is counted after decompression, then stop",
    ),
    Rule(
        id="robustness.shape", severity=3, check=_shape,
        statement="Structured content matches the outputSchema, even if the API answers in an undocumented form.",
        source="MCP server/tools, Output Schema: servers must provide structured results that conform",
        hint="leave out values that do not conform, or return isError",
    ),
)  # fmt: skip
