"""Rules about tool calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from mcpfactory_codegen.effects import SAFE_METHODS, is_read_request, sounds_like_change
from mcpfactory_pipeline.checks.evidence import (
    ElicitationOutcome,
    Evidence,
    RecordedCall,
    answer_text,
    sent_arguments,
)
from mcpfactory_pipeline.checks.exchange import BIG_INTEGERS, QUICK, STRUCTURED
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
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.subjects import (
    calls_as_subjects,
    missing_calls_outcome,
    missing_cases_outcome,
    missing_tools_outcome,
)
from mcpfactory_runtime.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    URL_ELICITATION_REQUIRED,
)
from mcpfactory_runtime.types import Json

RULES: Final = RuleTable()
rule = RULES.rule
_UNFINISHED: Final = re.compile(
    r"not[ _-]?(yet )?implemented|notimplementederror|\bTODO\b|\bunimplemented\b", re.IGNORECASE
)
_BUSY: Final = 429  # HTTP status "Too Many Requests"
_SHORT: Final = 500  # characters; a longer answer cannot be only a question or a refusal
# Words in answers that ask a question about wrong arguments, or refuse them.
_ASKS: Final = re.compile(
    r"[?？؟][\s\"')*]*$|[?？؟]\s|¿|\b(which|what|need(s|ed)?|require[sd]?|missing|provide|specify|supply|give|enter|choose|must|should|invalid|"
    r"expect(s|ed)?|please|unknown|not an?|error|fail(s|ed)?|unable|can ?not|can't|wrong|malformed|illegal|refused|ignor(e[sd]?|ing)|instead|defaults?|no such|not found|there (is|are) no)\b",
    re.IGNORECASE,
)
# Characters; a longer answer may only describe an exception.
_TRACE: Final = 5_000
# A text that begins with an exception ("KeyError: 'x'", "Error: java.io.IOException: …"), or a Python stack trace.
_EXCEPTION: Final = re.compile(
    r"\A\W*((Error|Exception):\s*)?((\w+\.)*[A-Z]\w*(Error|Exception)\s*[:(]|Traceback \(most recent call last\))"
)
_BIG: Final = re.compile(rf"\b{str(BIG_INTEGERS[0])[:11]}\d{{5}}\b")  # a number close to 2^53
# Wrong arguments (`invalid_arguments`) that appear in the answer of a tool without argument checks.
_REPEATED: Final = re.compile(r"mcpfactory|\[object Object\]")
_ECHOED: Final = re.compile(rf"{_REPEATED.pattern}|\bundefined\b|\bNaN\b|\bNone\b|\bnull\b")
# Codes of errors from the protocol layer: wrong arguments, a missing client capability, a required task.
_PROTOCOL_CODES: Final = (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    URL_ELICITATION_REQUIRED,
)


def _said(call: RecordedCall, length: int = 120) -> str:
    return repr(answer_text(call.exchange)[:length])


def _fault(call: RecordedCall, words: str, lesser: Severity | None = None) -> Fault:
    return Fault(words, call.tool, call.exchange, lesser=lesser)


def _calls(choose: Callable[[Evidence], Iterable[RecordedCall]], none: str) -> Scope[RecordedCall]:
    """Return a scope of chosen calls; several calls of one tool count once.

    `none` is the reason if no call is selected.
    """

    def scope(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
        calls = calls_as_subjects(choose(evidence))
        return calls if calls.items else not_applicable(none)

    return scope


def _is_unfinished(call: RecordedCall) -> bool:
    return _UNFINISHED.search(answer_text(call.exchange)) is not None


@rule("tool-calls.some-succeed", 5, gate=True,
      statement="At least one of the called tools succeeded.",
      source="if every tool returns an error, the server is useless, even with good descriptions",
      hint=("implement the tools; without cases, set readOnlyHint on tools that only read, so that they "
            "can be called"))  # fmt: skip
def _tools_work(evidence: Evidence) -> RuleOutcome:
    """Check that a tool succeeds.

    A failure with guessed arguments proves nothing, unless the answer reports a defect.
    """
    reason = missing_calls_outcome(evidence)
    if reason is not None:
        return reason
    if any(not call.failed for call in (*evidence.calls, *evidence.task_results)):
        return RuleOutcome()
    if any(not one.faults and not one.shows_nothing for one in evidence.evaluated):
        return RuleOutcome()
    relevant = [call for call in evidence.calls if call.origin == "case" or _is_unfinished(call)]
    if not relevant:
        return not_checked(
            f"every call returned an error ({_said(evidence.answers[0])}), but no call had arguments known to be "
            "right; a correct server does the same without its API; add cases, or the settings of its API"
        )
    shown = next(filter(_is_unfinished, relevant), relevant[0])
    words = f"every called tool ({len(evidence.calls)} calls) returned an error: {_said(shown)}"
    return RuleOutcome((_fault(shown, words),))


def _quick_answers(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    """Return the calls, except calls that timed out or were rate-limited by design.

    A timeout counts if the call has a case, or if the server is alive and the tool has answered another call quickly.
    Invalid calls count if the server ended.
    """
    valid = {id(call.exchange) for call in evidence.valid_calls}
    sent = [one for one in evidence.traffic if one.method == "tools/call" and id(one) not in valid]
    fatal = [RecordedCall(str(one.params.get("name")), one, "guess") for one in sent if one.server_ended]
    if not fatal and (reason := missing_calls_outcome(evidence)) is not None:
        return reason
    made = () if any(call.exchange.server_ended for call in evidence.valid_calls) else evidence.calls
    quick = {call.tool for call in made if call.exchange.received and call.exchange.milliseconds < QUICK}
    calls = [*fatal, *(call for call in evidence.valid_calls if not _is_slow_or_limited(call, quick))]
    return calls_as_subjects(calls) if calls else not_checked("no call was answered within the time limit")


def _is_slow_or_limited(call: RecordedCall, quick: Container[str]) -> bool:
    """Return True if a call without a case was rate-limited, or timed out without a quick call of the tool."""
    slow = call.exchange.problem.startswith("no answer") and call.tool not in quick
    return call.origin != "case" and (slow or call.exchange.status == _BUSY)


@rule("tool-calls.answered", 5, gate=True, over=_quick_answers,
      statement="Every call is answered, and the server keeps running.",
      source="JSON-RPC 2.0 §5; a client waits for the answer",
      hint="catch exceptions in the tool, limit its run time, and never end the process in a tool")  # fmt: skip
def _answers(call: RecordedCall) -> Iterator[Fault]:
    problem = call.exchange.problem
    if call.exchange.received is None:
        lesser: Severity | None = 2 if call.origin != "case" and problem.startswith("no answer") else None
        yield _fault(call, f"the call got no answer: {problem}", lesser)


def _answered(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    return missing_calls_outcome(evidence) or RuleSubjects(evidence.answers, _called(evidence))


def _called(evidence: Evidence) -> int:
    return len({call.tool for call in evidence.calls})


@rule("tool-calls.implemented", 3, over=_answered,
      statement="No tool answers that it is not implemented.",
      source="a tool that is listed is a promise to the model",
      hint="implement the tool or do not list it")  # fmt: skip
def _finished(call: RecordedCall) -> Iterator[Fault]:
    if call.failed and _is_unfinished(call):
        yield _fault(call, f"the tool answers that it is not implemented: {_said(call)}")


def _cases(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    cases = calls_as_subjects(call for call in evidence.calls if call.origin == "case")
    return cases if cases.items else missing_cases_outcome(evidence) or cases


@rule("tool-calls.cases", 5, gate=True, over=_cases,
      statement="Every case, from the API document or supplied by you, is answered without an error.",
      source="the arguments of cases are correct: they come from the document, or from a person who knows the server",
      hint="run the server's own tests; the evidence shows the call")  # fmt: skip
def _case(call: RecordedCall) -> Iterator[Fault]:
    # The rule tool-calls.answered reports unanswered calls.
    if call.failed and call.exchange.received is not None:
        yield _fault(call, f"{call.title or 'a correct call'}: returned an error: {_said(call, 200)}")


@rule("tool-calls.api-requests", 5, gate=True,
      over=lambda evidence: missing_cases_outcome(evidence) or RuleSubjects(evidence.calls, _called(evidence)),
      statement="The requests that tools send upstream match the API document.",
      source="the API document: method, path, parameters, headers, body",
      hint="compare the operation record with the document")  # fmt: skip
def _requests(call: RecordedCall) -> Iterator[Fault]:
    if call.mismatches:
        yield _fault(call, f"{call.title}: {'; '.join(call.mismatches)}")


_NOTHING_WRONG: Final = "no tool with readOnlyHint has an argument for which a wrong value is known"


# Keyword → severity of a violation that libraries drop, or that tools limit on purpose.
_HARMLESS: Final[Mapping[str, Severity]] = {"additionalProperties": 1, "bounds": 2, "maxLength": 2, "maxItems": 2}


def _wrong_calls(evidence: Evidence) -> RuleSubjects[list[RecordedCall]] | RuleOutcome:
    """Return the calls with wrong arguments, grouped by tool and keyword."""
    groups: dict[tuple[str, str], list[RecordedCall]] = {}
    for call in evidence.wrong:
        groups.setdefault((call.tool, call.violates), []).append(call)
    tools = {tool for tool, _ in groups}
    return RuleSubjects(list(groups.values()), len(tools)) if groups else not_applicable(_NOTHING_WRONG)


@rule("tool-calls.argument-validation", 3, gate=True, over=_wrong_calls,
      statement=("A call whose arguments violate the inputSchema is answered with an error. These violations close no "
                 "gate: a number, text or list beyond its limit, because some tools limit them on purpose; an "
                 "undeclared argument; an optional argument that the answer does not contain, because some tools use "
                 "the default instead."),
      source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
      hint="validate the arguments against the inputSchema before the tool runs")  # fmt: skip
def _validates(calls: list[RecordedCall], evidence: Evidence) -> Iterator[Fault]:
    faults = [_accepted(call, evidence) for call in calls if not call.failed]
    yield from sorted(faults, key=lambda fault: fault.lesser or 4, reverse=True)[:1]


def _accepted(call: RecordedCall, evidence: Evidence) -> Fault:
    words, lesser = _taken(call, evidence)
    ignored: Severity | None = 2 if call.optional and not _REPEATED.search(answer_text(call.exchange)) else None
    least = min((one for one in (lesser, ignored, _HARMLESS.get(call.violates)) if one), default=None)
    return _fault(call, f"called {call.title}, the tool {words}", least)


def _taken(call: RecordedCall, evidence: Evidence) -> tuple[str, Severity | None]:
    """Return (reaction, lower severity) of a tool that answered wrong arguments without an error.

    The gate closes only with evidence that the tool ran with the wrong arguments.
    """
    text = answer_text(call.exchange).strip()
    changing = next((one for one in call.requests if one["method"] not in ("GET", "HEAD")), None)
    if changing is not None:  # this request is enough evidence for any answer
        return f"sent {changing['method']} {changing['path']} to its API", None
    if text and len(text) <= _SHORT and _ASKS.search(text):
        return f"asked a question, or refused, without an error: {text[:120]!r}", 1
    if call.requests:
        return f"sent {call.requests[0]['method']} {call.requests[0]['path']} to its API", None
    right = {answer_text(one.exchange).strip() for one in evidence.calls if one.tool == call.tool and not one.failed}
    if text and text in right:
        return f"answered as it does to right ones: {text[:120]!r}", None
    if _ECHOED.search(text):
        return f"worked with them: {text[:120]!r}", None
    if (call.exchange.result or {}).get("structuredContent"):
        return "answered with structured content", None
    return f"answered without an error; it is unknown whether it used the arguments: {text[:120]!r}", 3


def _refused(evidence: Evidence) -> list[RecordedCall]:
    return [call for call in evidence.wrong if call.failed]


@rule("tool-calls.argument-errors", 2, over=_calls(_refused, "no call with wrong arguments was answered with an error"),
      statement=(f"Wrong arguments are answered with isError, or error {INVALID_PARAMS}, and an explanation for the "
                 "model."),
      source="MCP server/tools, Error Handling: input validation errors should be reported in the result",
      hint="say which argument is wrong, and what it must be")  # fmt: skip
def _argument_error(call: RecordedCall) -> Iterator[Fault]:
    exchange = call.exchange
    if exchange.received is None:
        yield _fault(call, f"called {call.title}, the tool gave no answer: {exchange.problem}")
    elif exchange.code is not None and exchange.code != INVALID_PARAMS:
        yield _fault(call, f"called {call.title}, the answer is error {exchange.code}: {_said(call)}")
    else:
        yield from _help_faults(call)


@rule("tool-calls.error-in-result", 2,
      over=_calls(lambda evidence: (call for call in evidence.calls if call.exchange.error is not None),
                  none="no call was answered with a protocol error"),
      statement="A tool that fails reports it by isError in its result, not by a protocol error.",
      source=("MCP schema, CallToolResult: errors that originate from the tool should be reported inside the result, "
              "or the model does not see them"),
      hint="catch exceptions in the tool, and return them as text with isError")  # fmt: skip
def _failure_kind(call: RecordedCall) -> Iterator[Fault]:
    code = call.exchange.code
    if code not in _PROTOCOL_CODES:
        words = f"a call that matches the inputSchema got the protocol error {code}: {_said(call)}"
        yield _fault(call, words)


def _succeeded(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    calls = calls_as_subjects((call for call in evidence.valid_calls if not call.failed), once=True)
    return calls if calls.items else not_applicable("no call succeeded")


@rule("tool-calls.error-flag", 2, over=_succeeded,
      statement="A result whose text is an exception or a stack trace has isError.",
      source=("MCP server/tools, Error Handling: without isError, neither the client nor the model knows that the "
              "call failed"),
      hint="let the exception pass to the SDK, or return its text with isError")  # fmt: skip
def _flagged(call: RecordedCall) -> Iterator[Fault]:
    text = answer_text(call.exchange)
    if len(text) <= _TRACE and _EXCEPTION.search(text):
        yield _fault(call, f"the tool failed, and its result has no isError: {_said(call)}")


def _big_integers(evidence: Evidence) -> RuleSubjects[tuple[RecordedCall, RecordedCall]] | RuleOutcome:
    calls = [call for call in evidence.further if not call.failed]
    pairs = [
        (one, other)
        for one in calls
        for other in calls
        if one.tool == other.tool and _changed_values(sent_arguments(one), sent_arguments(other)) == [BIG_INTEGERS]
    ]
    return RuleSubjects(pairs, once=True) if pairs else not_applicable("no tool was called with integers beyond 2^53")


def _changed_values(one: Json, other: Json) -> list[tuple[Any, Any]]:
    return [(one.get(key), value) for key, value in other.items() if one.get(key) != value]


@rule("tool-calls.large-integers", 2, over=_big_integers,
      statement="A tool whose schema allows any integer does not round large integers.",
      source="RFC 8259 §6: beyond 2^53, software that reads numbers as floating-point values rounds them silently",
      hint='compute with integers, declare "maximum": 9007199254740991, or accept long numbers as strings')  # fmt: skip
def _exact(pair: tuple[RecordedCall, RecordedCall]) -> Iterator[Fault]:
    even, odd = pair
    text = answer_text(odd.exchange)
    if text == answer_text(even.exchange) and _BIG.search(text):
        yield _fault(odd, f"the arguments 2^53 and 2^53+1 give the same large number: {_said(odd)}")


@rule("tool-calls.coverage", 3,
      statement=("With cases, every tool is called, by a case of the API document or by an evaluation case with an "
                 "answer that depends on the API."),
      source="nothing shows that a tool works if it was never called",
      hint=("add a case for the tool, or an evaluation case in evals/ that defines what the answer "
            "contains (docs/how-to/evaluate.md)"))  # fmt: skip
def _covered(evidence: Evidence) -> RuleOutcome:
    if not evidence.with_cases and not evidence.evaluated:
        return not_applicable("there are no cases")
    untried = evidence.untried
    called = {one.call.tool for one in evidence.evaluated}
    faults = (
        Fault(
            f"nothing shows that the tool works: {why}" if name in called else f"the tool was not called: {why}", name
        )
        for name, _ in evidence.named_tools
        if (why := untried.get(name))
    )
    return missing_tools_outcome(evidence) or rule_outcome(len(evidence.named_tools), faults)


@rule("tool-calls.evaluation-cases", 5, gate=True,
      statement=("Every correct call of the evaluation cases gets the expected answer, and asks a person if its case "
                 "requires it."),
      source="somebody who knows the server wrote the expected answers",
      hint="mcpfactory evaluate NAME runs the same cases; fix the tool, or the case")  # fmt: skip
def _evaluated(evidence: Evidence) -> RuleOutcome:
    unasked = evidence.missing.get("evaluations", "")
    if not evidence.evaluated and not unasked:
        return not_applicable("there are no evaluation cases, or they cannot be run")
    faults = [
        _fault(one.call, f"{one.case}: {'; '.join(one.faults)}", 2 if one.slow else None)
        for one in evidence.evaluated
        if one.faults
    ]
    if unasked:
        faults.append(Fault(f"not every evaluation case could be run: {unasked}", lesser=2))
    return rule_outcome(max(len({one.call.tool for one in evidence.evaluated}), 1), faults)


def _persons(evidence: Evidence) -> RuleSubjects[ElicitationOutcome] | RuleOutcome:
    if not evidence.persons:
        return not_applicable("no tool that has a case asks a person")
    return RuleSubjects(evidence.persons, len({one.agreed.tool for one in evidence.persons}))


@rule("tool-calls.consent", 5, gate=True, over=_persons,
      statement="A tool that asks a person changes nothing if the person declines or cannot be asked.",
      source="MCP client/elicitation: a server must do what the user's answer says; decline and cancel are answers",
      hint="ask before anything is sent, and send nothing without consent")  # fmt: skip
def _consent(person: ElicitationOutcome) -> Iterator[Fault]:
    for when, call in (("no person could be asked", person.unasked), ("the person declined", person.declined)):
        sent = [(str(one["method"]), f"{one['method']} {one['path']}") for one in call.requests]
        changing = ", ".join(text for method, text in sent if method not in SAFE_METHODS and text != call.question)
        if changing:
            yield _fault(call, f"{when}, the call sent {changing}")


def _with_output(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    if (reason := missing_tools_outcome(evidence)) is not None:
        return reason
    declared = evidence.output_schemas
    if not declared:
        return not_applicable("no tool declares an outputSchema")
    made = (*evidence.valid_calls, *evidence.task_results)
    structured = [call for call in (*made, *evidence.wrong) if "structuredContent" in (call.exchange.result or {})]
    calls = [call for call in made if not call.failed] + [call for call in structured if call.failed]
    calls = [call for call in calls if call.tool in declared]
    return (
        calls_as_subjects(calls, once=True)
        if calls
        else not_checked("no tool with an outputSchema was called with success")
    )


@rule("tool-calls.output-schema", 5, gate=True, since=STRUCTURED, over=_with_output,
      statement=("A tool with an outputSchema returns structuredContent that matches it. A result with isError needs no "
                 "structuredContent."),
      source="MCP server/tools, Output Schema: servers must provide structured results that conform",
      hint="correct the schema or the result; clients may refuse the answer")  # fmt: skip
def _output(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    result = call.exchange.result or {}
    schema = evidence.output_schemas[call.tool]
    if schema_error(schema):
        return  # the rule schemas.output-valid reports invalid schemas
    if "structuredContent" not in result:
        yield _fault(call, "the tool declares an outputSchema but returned no structuredContent")
    elif problem := instance_error(result["structuredContent"], schema):
        yield _fault(call, f"structuredContent does not match the outputSchema: {problem}")


def _read_only_calls(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    if not evidence.with_cases:
        return not_applicable("without a stub upstream, the requests of tools are unknown")
    reading = evidence.read_only_tools
    return missing_calls_outcome(evidence) or calls_as_subjects(call for call in evidence.calls if call.tool in reading)


@rule("tool-calls.read-only", 5, gate=True, over=_read_only_calls,
      statement=("A tool with readOnlyHint sends no write request. A POST is allowed if it only queries, according to "
                 "the API document or its path."),
      source="MCP schema, ToolAnnotations.readOnlyHint: clients run such tools without asking",
      hint="remove the hint or the request")  # fmt: skip
def _read_only(call: RecordedCall, evidence: Evidence) -> Iterator[Fault]:
    tool = evidence.read_only_tools[call.tool]
    sent = [(str(request.get("method")), str(request.get("path", ""))) for request in call.requests]
    writing = [f"{method} {path}" for method, path in sent if not _reads(method, path, call, tool)]
    if writing:
        yield _fault(call, f"readOnlyHint is true, but the call sent {', '.join(writing)}")


def _reads(method: str, path: str, call: RecordedCall, tool: Any) -> bool:
    """Return True if a request only reads, according to its method, the API document, or its path and the tool."""
    if method in SAFE_METHODS or call.question in {f"{method} {path}", f"{method} {unquote(path)}"}:
        return True
    texts = (str(tool.get(text) or "") for text in ("title", "description"))
    return is_read_request(method, path) and not sounds_like_change(call.tool, *texts)


@rule("tool-calls.error-text", 2,
      over=_calls(lambda evidence: (call for call in evidence.calls if call.failed and call.exchange.result is not None),
                  none="no call was answered with isError"),
      statement="A tool error tells the model what went wrong, without a stack trace.",
      source="MCP server/tools, Error Handling: tool execution errors are for the model to act on",
      hint="name the wrong argument, the problem, and what to try")  # fmt: skip
def _help_faults(call: RecordedCall) -> Iterator[Fault]:
    text = answer_text(call.exchange)
    if not text.strip():
        yield _fault(call, "the error has no text")
    elif "Traceback (most recent call last)" in text or re.search(r"^\s+at \S+ \(.+:\d+:\d+\)", text, re.MULTILINE):
        yield _fault(call, "the error is a stack trace that contains paths of the machine")
