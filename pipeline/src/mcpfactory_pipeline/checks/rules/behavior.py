"""Rules over what the tools do when they are called."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from mcpfactory_codegen.effects import READING, is_question, sounds_like_change
from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall, answer_text
from mcpfactory_pipeline.checks.exchange import STRUCTURED
from mcpfactory_pipeline.checks.jsonschemas import instance_error, schema_error
from mcpfactory_pipeline.checks.rule import (
    Fault,
    Rule,
    RuleOutcome,
    Severity,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.schemas import tools_or_reason
from mcpfactory_runtime.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    URL_ELICITATION_REQUIRED,
)

_UNFINISHED: Final = re.compile(
    r"not[ _-]?(yet )?implemented|notimplementederror|\bTODO\b|\bunimplemented\b", re.IGNORECASE
)
_SHORT: Final = 500  # characters; longer answers are not a question or a refusal
# A question, or words of a refusal, in an answer to wrong arguments.
_ASKS: Final = re.compile(
    r"[?？؟][\s\"')*]*$|[?？؟]\s|¿|\b(which|what|need(s|ed)?|require[sd]?|missing|provide|specify|supply|give|enter|choose|must|should|invalid|"
    r"expect(s|ed)?|please|unknown|not an?|error|fail(s|ed)?|unable|can ?not|can't|wrong|malformed|illegal|refused)\b",
    re.IGNORECASE,
)
# What the arguments that `samples.wrong_arguments` makes leave in an answer where somebody computes with them.
_ECHOED: Final = re.compile(r"mcpfactory|\[object Object\]|\bundefined\b|\bNaN\b|\bNone\b|\bnull\b")
# Of what the protocol itself refuses: arguments, a capability that the client lacks, a tool that has to be called as a task.
_PROTOCOL_CODES: Final = (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    URL_ELICITATION_REQUIRED,
)
_NONE_CALLED: Final = "no tool could be called: none is marked readOnlyHint, and there are no cases"


def calls_or_reason(evidence: Evidence) -> RuleOutcome | None:
    """None when tools were called; else the outcome of every rule about calls."""
    reason = tools_or_reason(evidence)
    if reason is not None:
        return reason
    if not evidence.answers:
        return not_checked(evidence.missing.get("tools/call", _NONE_CALLED))
    return None


def _tools_work(evidence: Evidence) -> RuleOutcome:
    """At least one tool must do something. Guessed arguments prove nothing by failing, unless the answer itself says so."""
    reason = calls_or_reason(evidence)
    if reason is not None:
        return reason
    if any(not call.failed for call in evidence.calls):
        return RuleOutcome()
    if any(not one.faults and not one.shows_nothing for one in evidence.evaluated):
        return RuleOutcome()
    relevant = [
        call for call in evidence.calls if call.origin == "case" or _UNFINISHED.search(answer_text(call.exchange))
    ]
    if not relevant:
        said = answer_text(evidence.answers[0].exchange)[:120]
        return not_checked(
            f"no call was made with arguments that are known to be right, and all were answered with an error ({said!r}), "
            "as honest servers do without their API; cases would tell, and the settings of its API"
        )
    shown = next((call for call in relevant if _UNFINISHED.search(answer_text(call.exchange))), relevant[0])
    return RuleOutcome(
        (
            Fault(
                f"every called tool ({len(evidence.calls)} calls) returned an error: "
                f"{answer_text(shown.exchange)[:120]!r}",
                shown.tool,
                shown.exchange,
            ),
        )
    )


def _finished(evidence: Evidence) -> RuleOutcome:
    faults = (
        Fault(
            f"the tool answers that it is not implemented: {answer_text(call.exchange)[:120]!r}",
            call.tool,
            call.exchange,
        )
        for call in evidence.answers
        if call.failed and _UNFINISHED.search(answer_text(call.exchange))
    )
    return calls_or_reason(evidence) or rule_outcome(_called(evidence), faults)


def _answers(evidence: Evidence) -> RuleOutcome:
    """Return a tool may be slow by design, and then only a case shows that it is too slow; one that ends the server never may."""
    calls = [call for call in evidence.answers if not slow(call)]
    if not calls_or_reason(evidence) and not calls:
        return not_checked("no call was answered in the time that there was")
    silent = (call for call in calls if call.exchange.received is None)
    faults = (Fault(f"the call got no answer: {call.exchange.problem}", call.tool, call.exchange) for call in silent)
    return calls_or_reason(evidence) or rule_outcome(len({call.tool for call in calls}), faults)


def slow(call: RecordedCall) -> bool:
    """Return True if a call without a case timed out, which proves nothing about the tool."""
    return call.origin != "case" and call.exchange.problem.startswith("no answer")


def _cases_pass(evidence: Evidence) -> RuleOutcome:
    cases = [call for call in evidence.calls if call.origin == "case"]
    return (_with_cases(evidence) if not cases else None) or rule_outcome(
        len({call.tool for call in cases}),
        (
            Fault(
                f"{call.title or 'a correct call'}: returned an error: {answer_text(call.exchange)[:200]!r}",
                call.tool,
                call.exchange,
            )
            for call in cases
            if call.failed and call.exchange.received is not None  # else behaviour.answers says so
        ),
    )


def _requests_match(evidence: Evidence) -> RuleOutcome:
    return _with_cases(evidence) or rule_outcome(
        _called(evidence),
        (
            Fault(f"{call.title}: {'; '.join(call.mismatches)}", call.tool, call.exchange)
            for call in evidence.calls
            if call.mismatches
        ),
    )


def _covered(evidence: Evidence) -> RuleOutcome:
    if not evidence.with_cases and not evidence.evaluated:
        return not_applicable("there are no cases")
    untried = evidence.untried
    called = {one.call.tool for one in evidence.evaluated}
    return tools_or_reason(evidence) or rule_outcome(
        len(evidence.named_tools),
        (
            Fault(
                f"nothing shows that the tool works: {why}" if name in called else f"the tool was not called: {why}",
                name,
            )
            for name, _ in evidence.named_tools
            if (why := untried.get(name))
        ),
    )


def _evaluated(evidence: Evidence) -> RuleOutcome:
    unasked = evidence.missing.get("evaluations", "")
    if not evidence.evaluated and not unasked:
        return not_applicable("there are no evaluation cases, or nothing that they could be asked of")
    faults = [
        Fault(f"{one.case}: {'; '.join(one.faults)}", one.call.tool, one.call.exchange, lesser=2 if one.slow else None)
        for one in evidence.evaluated
        if one.faults
    ]
    if unasked:
        faults.append(Fault(f"not every evaluation case could be run: {unasked}", lesser=2))
    return rule_outcome(max(len({one.call.tool for one in evidence.evaluated}), 1), faults)


def _consent(evidence: Evidence) -> RuleOutcome:
    """Check that a declined or unanswered question prevents changes: no such call may send a write request."""
    if not evidence.persons:
        return not_applicable("no tool that has a case asks a person")
    return rule_outcome(
        len({one.agreed.tool for one in evidence.persons}),
        (
            Fault(f"{when}, the call sent {sent}", call.tool, call.exchange)
            for one in evidence.persons
            for when, call in (("nobody could be asked", one.unasked), ("the person declined", one.declined))
            if (sent := _changing(call))
        ),
    )


def _changing(call: RecordedCall) -> str:
    sent = ((str(one["method"]), str(one["path"])) for one in call.requests)
    return ", ".join(
        f"{method} {path}" for method, path in sent if method not in READING and f"{method} {path}" != call.question
    )


def _validates(evidence: Evidence) -> RuleOutcome:
    if not evidence.wrong:
        return not_applicable("no tool that is marked readOnlyHint has an argument that can be given wrongly")
    return rule_outcome(
        len({call.tool for call in evidence.wrong}),
        (
            Fault(f"called {call.title}, the tool {words}", call.tool, call.exchange, lesser=lesser)
            for call in evidence.wrong
            if not call.failed
            for words, lesser in [_taken(call, evidence)]
        ),
    )


def _taken(call: RecordedCall, evidence: Evidence) -> tuple[str, Severity | None]:
    """Return the reaction of a tool that answered wrong arguments without an error.

    The gate closes only on evidence that the tool ran with them.
    """
    text = answer_text(call.exchange).strip()
    changing = next((one for one in call.requests if one["method"] not in ("GET", "HEAD")), None)
    if changing is not None:  # regardless of its text
        return f"sent {changing['method']} {changing['path']} to its API", None
    if text and len(text) <= _SHORT and _ASKS.search(text):
        return f"asked back, or refused, without an error: {text[:120]!r}", 1
    if call.requests:
        return f"sent {call.requests[0]['method']} {call.requests[0]['path']} to its API", None
    right = {answer_text(one.exchange).strip() for one in evidence.calls if one.tool == call.tool and not one.failed}
    if text and text in right:
        return f"answered as it does to right ones: {text[:120]!r}", None
    if _ECHOED.search(text):
        return f"worked with them: {text[:120]!r}", None
    if (call.exchange.result or {}).get("structuredContent"):
        return "answered with structured content", None
    return f"answered without an error, and nothing shows whether it looked at them: {text[:120]!r}", 3


def _argument_errors(evidence: Evidence) -> RuleOutcome:
    refused = [call for call in evidence.wrong if call.failed]
    if not refused:
        return not_applicable("no call with wrong arguments was answered with an error")
    return rule_outcome(
        len({call.tool for call in refused}), (fault for call in refused for fault in _argument_faults(call))
    )


def _argument_faults(call: RecordedCall) -> Iterator[Fault]:
    if call.exchange.received is None:
        yield Fault(f"called {call.title}, the tool gave no answer: {call.exchange.problem}", call.tool, call.exchange)
    elif call.exchange.code is not None and call.exchange.code != INVALID_PARAMS:
        words = f"called {call.title}, the answer is error {call.exchange.code}: {answer_text(call.exchange)[:120]!r}"
        yield Fault(words, call.tool, call.exchange)
    else:
        yield from _help_faults(call)


def _failure_kind(evidence: Evidence) -> RuleOutcome:
    failed = [call for call in evidence.calls if call.exchange.error is not None]
    if not failed:
        return not_applicable("no call was answered with a protocol error")
    return rule_outcome(
        len({call.tool for call in failed}),
        (
            Fault(
                f"a call that matches the inputSchema got the protocol error {call.exchange.code}: "
                f"{answer_text(call.exchange)[:120]!r}",
                call.tool,
                call.exchange,
            )
            for call in failed
            if call.exchange.code not in _PROTOCOL_CODES
        ),
    )


def _with_cases(evidence: Evidence) -> RuleOutcome | None:
    if not evidence.with_cases:
        return not_applicable("there are no cases")
    return calls_or_reason(evidence)


def _output_matches(evidence: Evidence) -> RuleOutcome:
    reason = tools_or_reason(evidence)
    if reason is not None:
        return reason
    declared = {name: tool["outputSchema"] for name, tool in evidence.named_tools if "outputSchema" in tool}
    if not declared:
        return not_applicable("no tool declares an outputSchema")
    calls = [call for call in evidence.answers if call.tool in declared and not call.failed]
    if not calls:
        return not_checked("no tool with an outputSchema was called with success")
    return rule_outcome(
        len({call.tool for call in calls}),
        (fault for call in calls for fault in _output_faults(call, declared[call.tool])),
    )


def _output_faults(call: RecordedCall, schema: Any) -> Iterator[Fault]:
    result = call.exchange.result or {}
    if schema_error(schema):
        return  # schemas.output-valid says so
    if "structuredContent" not in result:
        yield Fault("the tool declares an outputSchema but returned no structuredContent", call.tool, call.exchange)
        return
    problem = instance_error(result["structuredContent"], schema)
    if problem:
        yield Fault(f"structuredContent does not match the outputSchema: {problem}", call.tool, call.exchange)


def _read_only(evidence: Evidence) -> RuleOutcome:
    marked = {name: tool for name, tool in evidence.named_tools if hint(tool, "readOnlyHint") is True}
    if not evidence.with_cases:
        return not_applicable("without a stub upstream nobody sees what a tool sends")
    calls = [call for call in evidence.calls if call.tool in marked]
    return calls_or_reason(evidence) or rule_outcome(
        len({call.tool for call in calls}), (fault for call in calls for fault in _writes(call, marked[call.tool]))
    )


def _writes(call: RecordedCall, tool: Any) -> Iterator[Fault]:
    sent = [(str(request.get("method")), str(request.get("path", ""))) for request in call.requests]
    writing = [f"{method} {path}" for method, path in sent if not _reads(method, path, call, tool)]
    if writing:
        yield Fault(f"readOnlyHint is true, but the call sent {', '.join(writing)}", call.tool, call.exchange)


def _reads(method: str, path: str, call: RecordedCall, tool: Any) -> bool:
    """Return True if a request only reads, by its method, document or path, unless the tool declares otherwise."""
    if method in READING or call.question in {f"{method} {path}", f"{method} {unquote(path)}"}:
        return True
    texts = (str(tool.get(text) or "") for text in ("title", "description"))
    return is_question(method, path) and not sounds_like_change(call.tool, *texts)


def hint(tool: Any, name: str) -> Any:
    """Return an annotation of a tool, None when it is not given."""
    annotations = tool.get("annotations")
    return annotations.get(name) if isinstance(annotations, dict) else None


def _result_shape(evidence: Evidence) -> RuleOutcome:
    answered = [call for call in evidence.answers if call.exchange.result is not None]
    if not calls_or_reason(evidence) and not answered:
        return not_checked("no call was answered with a result")
    faults = (fault for call in answered for fault in _shape_faults(call))
    return calls_or_reason(evidence) or rule_outcome(len({call.tool for call in answered}), faults)


def _shape_faults(call: RecordedCall) -> Iterator[Fault]:
    result = call.exchange.result or {}
    if result.get("resultType") == "input_required":
        return
    content = result.get("content")
    if not isinstance(content, list):
        yield Fault("the result has no content list", call.tool, call.exchange)
    elif not all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in content):
        yield Fault("an entry of content is not an object with a type", call.tool, call.exchange)
    elif any(block["type"] == "text" and not isinstance(block.get("text"), str) for block in content):
        yield Fault("a text block has no text", call.tool, call.exchange)


def _errors_help(evidence: Evidence) -> RuleOutcome:
    failed = [call for call in evidence.calls if call.failed and call.exchange.result is not None]
    if not failed:
        return not_applicable("no call was answered with isError")
    return rule_outcome(len({call.tool for call in failed}), (fault for call in failed for fault in _help_faults(call)))


def _help_faults(call: RecordedCall) -> Iterator[Fault]:
    text = answer_text(call.exchange)
    if not text.strip():
        yield Fault("the error has no text", call.tool, call.exchange)
    elif "Traceback (most recent call last)" in text or re.search(r"^\s+at \S+ \(.+:\d+:\d+\)", text, re.MULTILINE):
        yield Fault("the error is a stack trace that contains paths of the machine", call.tool, call.exchange)


def _called(evidence: Evidence) -> int:
    return len({call.tool for call in evidence.calls})


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="behaviour.tools-work", severity=5, gate=True, ceiling=49, check=_tools_work,
        statement="At least one of the called tools succeeded.",
        source="a server whose every tool answers an error is of no use, however well it describes itself",
        hint="implement the tools; without cases, set readOnlyHint on tools that only read, so that they can be called",
    ),
    Rule(
        id="behaviour.answers", severity=5, gate=True, check=_answers,
        statement="Every call is answered, and the server keeps running.",
        source="JSON-RPC 2.0 §5; a client waits for the answer",
        hint="catch exceptions in the tool, limit its run time, and never end the process in a tool",
    ),
    Rule(
        id="behaviour.finished", severity=3, check=_finished,
        statement="No tool answers that it is not implemented.",
        source="a tool that is listed is a promise to the model",
        hint="implement the tool or do not list it",
    ),
    Rule(
        id="behaviour.cases", severity=5, gate=True, check=_cases_pass,
        statement="Every case, from the API document or supplied by you, is answered without an error.",
        source="cases are made from the document or given by who knows the server: correct arguments",
        hint="run the server's own tests; the evidence shows the call",
    ),
    Rule(
        id="behaviour.requests", severity=5, gate=True, check=_requests_match,
        statement="The requests that tools send upstream match the API document.",
        source="the API document: method, path, parameters, headers, body",
        hint="compare the operation record with the document",
    ),
    Rule(
        id="behaviour.validates", severity=3, gate=True, check=_validates,
        statement=("A call without a required argument, or with an object where the schema requires a string, number or "
                   "boolean, is answered with an error."),
        source="MCP server/tools, Security Considerations: servers must validate all tool inputs",
        hint="validate the arguments against the inputSchema before the tool runs",
    ),
    Rule(
        id="behaviour.argument-errors", severity=2, check=_argument_errors,
        statement=(f"Wrong arguments are answered with isError, or error {INVALID_PARAMS}, and an explanation for the "
                   "model."),
        source="MCP server/tools, Error Handling: input validation errors should be reported in the result",
        hint="say which argument is wrong, and what it must be",
    ),
    Rule(
        id="behaviour.failure-kind", severity=2, check=_failure_kind,
        statement="A tool that fails reports it by isError in its result, not by a protocol error.",
        source=("MCP schema, CallToolResult: errors that originate from the tool should be reported inside the "
                "result, or the model does not see them"),
        hint="catch exceptions in the tool, and return them as text with isError",
    ),
    Rule(
        id="behaviour.covered", severity=3, check=_covered,
        statement=("With cases, every tool is called: by a case of the API document, or by an evaluation case whose "
                   "answer depends on the API."),
        source="what was not called is not known to work",
        hint=("add a case for the tool, or an evaluation case in evals/ that defines what the answer contains "
              "(docs/how-to/evaluate.md)"),
    ),
    Rule(
        id="behaviour.evaluated", severity=5, gate=True, check=_evaluated,
        statement=("Every correct call of the evaluation cases gets the expected answer, and asks a person if its case "
                   "requires it."),
        source="what is right was said by somebody who knows the server",
        hint="mcpfactory evaluate NAME runs the same cases; fix the tool, or the case",
    ),
    Rule(
        id="behaviour.consent", severity=5, gate=True, check=_consent,
        statement="A tool that asks a person changes nothing if the person declines or cannot be asked.",
        source="MCP client/elicitation: a server must do what the user's answer says; decline and cancel are answers",
        hint="ask before anything is sent, and send nothing without consent",
    ),
    Rule(
        id="behaviour.output", severity=5, gate=True, since=STRUCTURED, check=_output_matches,
        statement="A tool with an outputSchema returns structuredContent that matches it.",
        source="MCP server/tools, Output Schema: servers must provide structured results that conform",
        hint="correct the schema or the result; clients may refuse the answer",
    ),
    Rule(
        id="behaviour.read-only", severity=5, gate=True, check=_read_only,
        statement=("A tool with readOnlyHint sends no write request; a POST that only queries, by its document or path, "
                   "is allowed."),
        source="MCP schema, ToolAnnotations.readOnlyHint: clients run such tools without asking",
        hint="remove the hint or the request",
    ),
    Rule(
        id="behaviour.result", severity=3, check=_result_shape,
        statement="Tool results have content: a list of blocks, each with a type.",
        source="MCP schema, CallToolResult",
        hint='return {"content": [{"type": "text", "text": …}]}',
    ),
    Rule(
        id="behaviour.errors", severity=2, check=_errors_help,
        statement="A tool error tells the model what went wrong, without a stack trace.",
        source="MCP server/tools, Error Handling: tool execution errors are for the model to act on",
        hint="name the wrong argument, the problem, and what to try",
    ),
)  # fmt: skip
