"""Rules about a server's behavior while its API fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence, FailureOutcome
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_pipeline.checks.rule import (
    Fault,
    RuleOutcome,
    RuleSubjects,
    RuleTable,
    Scope,
    Severity,
    not_applicable,
    not_checked,
)
from mcpfactory_pipeline.checks.rules.subjects import missing_tools_outcome

RULES: Final = RuleTable()
rule = RULES.rule
_MOST_REQUESTS: Final = 3
_MOST_MEMORY: Final = 256  # megabytes; maximum growth of the process during a response of one gigabyte
_MOST_TEXT: Final = 1_000_000  # maximum characters of an answer
_ONCE: Final = frozenset({"POST", "PATCH"})


def _rows(
    choose: Callable[[FailureOutcome, Evidence], bool] = lambda _row, _evidence: True, *, none: str = ""
) -> Scope[FailureOutcome]:
    def scope(evidence: Evidence) -> RuleSubjects[FailureOutcome] | RuleOutcome:
        if not evidence.with_cases:
            return not_applicable("without cases, the server's API cannot be made to fail")
        if (reason := missing_tools_outcome(evidence)) is not None:
            return reason
        why = evidence.missing.get("failures", "")
        if why or not evidence.failures:
            return not_checked(why)
        rows = [row for row in evidence.failures if choose(row, evidence)]
        return RuleSubjects(rows) if rows else not_applicable(none)

    return scope


def _fault(
    row: FailureOutcome, words: str, exchange: WireExchange | None = None, lesser: Severity | None = None
) -> Fault:
    place = f"{row.tool}/{row.failure.id}"
    return Fault(f"the API {row.failure.does}{words}", place, exchange or row.exchange, lesser=lesser)


@rule("api-failures.answered", 5, gate=True, over=_rows(),
      statement="Every call is answered in time, even if the API fails.",
      source="JSON-RPC 2.0 §5; a model waits for the answer, and a client gives up on the server",
      hint=("limit the time of the whole exchange with the API, not only of its parts; generated "
            "servers read MCPFACTORY_TIMEOUT"))  # fmt: skip
def _answers(row: FailureOutcome) -> Iterator[Fault]:
    if row.exchange.received is None:
        yield _fault(row, f", and the call got no answer: {row.exchange.problem}")


@rule("api-failures.recovery", 5, gate=True, over=_rows(),
      statement="When the API has recovered, the next call works.",
      source="if one bad answer ends a server, a person must restart it",
      hint="keep no state of a failed exchange: no broken connection, no lock, no partially read body")  # fmt: skip
def _lives(row: FailureOutcome) -> Iterator[Fault]:
    if row.again.failed:
        said = row.again.problem or "an error"
        yield _fault(row, f" and then recovers, but the next call gets {said}", row.again)


def _asks(row: FailureOutcome, evidence: Evidence) -> bool:
    """Return True if the tool calls its API; the rule tool-calls.api-requests reports other tools."""
    return any(other.requests for other in evidence.failures if other.tool == row.tool)


@rule("api-failures.is-error", 5, gate=True, over=_rows(_asks, none="no tool asked the API"),
      statement="When the API fails, the tool answers with isError.",
      source="MCP server/tools, Error Handling: API failures are tool execution errors",
      hint=("raise ToolError, or return isError, for every status from 300 and for every interrupted "
            "exchange"))  # fmt: skip
def _errors(row: FailureOutcome) -> Iterator[Fault]:
    if row.failure.error and row.exchange.received is not None and not row.failed:
        yield _fault(row, ", but the tool reports success")


@rule("api-failures.error-text", 2, over=_rows(),
      statement="The error reports the answer of the API, without a stack trace.",
      source="MCP server/tools, Error Handling: tool execution errors are for the model to act on",
      hint="include the status and the message of the API")  # fmt: skip
def _told(row: FailureOutcome) -> Iterator[Fault]:
    status = row.failure.status
    if not row.failed or row.exchange.received is None:
        return
    if not row.said.strip():
        yield _fault(row, ", and the error has no text")
    elif "Traceback (most recent call last)" in row.said:
        yield _fault(row, ", and the error is a stack trace")
    elif status and str(status) not in row.said:
        yield _fault(row, f", and the error does not contain {status}")


@rule("api-failures.retries", 5, gate=True, over=_rows(),
      statement=("POST and PATCH are sent once, whether they succeed or fail; other methods are sent at most "
                 f"{_MOST_REQUESTS} times."),
      source="RFC 9110 §9.2.2: a request that is not idempotent must not be repeated automatically",
      hint="retry only idempotent methods, and limit the number of attempts")  # fmt: skip
def _once(row: FailureOutcome) -> Iterator[Fault]:
    writing = [method for method in row.requests if method in _ONCE]
    if len(writing) > 1:
        yield _fault(row, f", and {writing[0]} was sent {len(writing)} times")
    elif len(row.requests) > _MOST_REQUESTS:
        yield _fault(row, f", and got {len(row.requests)} requests", lesser=2)


@rule("api-failures.redirect", 5, gate=True, over=_rows(),
      statement="A redirect to another host is not followed.",
      source="MCP basic/security best practices, SSRF; credentials would be sent along",
      hint="disable redirects, or follow them within the host only")  # fmt: skip
def _redirect(row: FailureOutcome) -> Iterator[Fault]:
    if row.elsewhere:
        yield _fault(row, ", and the request was sent there")


@rule("api-failures.response-size", 3, over=_rows(),
      statement=(f"If the API sends a gigabyte, even compressed, the process grows by at most {_MOST_MEMORY} MB, and "
                 f"the tool's answer has at most {_MOST_TEXT:,} characters."),
      source="CWE-400, CWE-409: one API response must not end a server for all its clients",
      hint="read up to a limit that is counted after decompression, then stop")  # fmt: skip
def _bounded(row: FailureOutcome) -> Iterator[Fault]:
    if row.grown is not None and row.grown > _MOST_MEMORY:
        yield _fault(row, f", and the process grew by more than {_MOST_MEMORY} MB")
    elif len(row.said) > _MOST_TEXT:
        yield _fault(row, f", and the answer of the tool has {len(row.said):,} characters")


def _declares(row: FailureOutcome, evidence: Evidence) -> bool:
    return not row.failed and row.tool in evidence.output_schemas


@rule("api-failures.output-schema", 3, over=_rows(_declares, none="no tool with an outputSchema answered while its API failed"),
      statement="Structured content matches the outputSchema, even if the API answers in an undocumented form.",
      source="MCP server/tools, Output Schema: servers must provide structured results that conform",
      hint="leave out values that do not conform, or return isError")  # fmt: skip
def _shape(row: FailureOutcome, evidence: Evidence) -> Iterator[Fault]:
    schema = evidence.output_schemas[row.tool]
    structured = (row.exchange.result or {}).get("structuredContent")
    if schema_error(schema):
        return  # the rule schemas.output-valid reports invalid schemas
    problem = "it is missing" if structured is None else instance_error(structured, schema)
    if problem:
        yield _fault(row, f", and structuredContent does not match the outputSchema: {problem}")
