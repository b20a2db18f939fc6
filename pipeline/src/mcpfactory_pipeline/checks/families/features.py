"""Rules over resources, prompts, completion and logging: what they answer to what is right, and to what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks import eras
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.families.legacy import describe_answer, probe_check
from mcpfactory_pipeline.checks.questions import NOTHING_TO_ASK
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND

__all__ = ["RULES"]

_MOST_VALUES: Final = 100  # of one completion


def _asked(probe: str, find_faults: Callable[[WireExchange], Iterator[Fault]], capability: str, era: str = "") -> Check:
    """Return a check of one question's exchange, for servers that list what it is about."""
    judge = probe_check(probe, find_faults, era=era, capability=capability)

    def check(evidence: Evidence) -> RuleOutcome:
        if evidence.missing.get(probe) == NOTHING_TO_ASK:
            return not_applicable(NOTHING_TO_ASK)
        return judge(evidence)

    return check


def _refuses(what: str, *codes: int) -> Callable[[WireExchange], Iterator[Fault]]:
    """Return a check that something wrong is answered with one of `codes`; another error is tolerated."""

    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.code not in codes:
            words = f"expected error {' or '.join(map(str, codes))}, got {describe_answer(exchange)}"
            yield Fault(words, what, exchange, lesser=1 if exchange.error is not None else None)

    return find_faults


def _not_found(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code in (RESOURCE_NOT_FOUND, INVALID_PARAMS):
        return
    contents = (exchange.result or {}).get("contents")
    if exchange.result is not None and contents:
        return  # a template may stand for every URI
    what = "empty contents" if exchange.result is not None else describe_answer(exchange)
    words = f"expected error {RESOURCE_NOT_FOUND} or {INVALID_PARAMS}, got {what}"
    yield Fault(words, "unknown resource", exchange, lesser=1 if exchange.error is not None else None)


def _done(what: str) -> Callable[[WireExchange], Iterator[Fault]]:
    def find_faults(exchange: WireExchange) -> Iterator[Fault]:
        if exchange.result is None:
            yield Fault(f"{what} got {describe_answer(exchange)}", what, exchange)

    return find_faults


def _prompt(exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result
    if result is None:
        if exchange.error is None:  # the text that was made up may be none that the prompt takes
            yield Fault(f"the first prompt got {describe_answer(exchange)}", "prompts/get", exchange)
        return
    if result.get("resultType") == "input_required":
        return
    messages = result.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        yield Fault("the result has no list of messages", "prompts/get", exchange)
    elif any(message.get("role") not in ("user", "assistant") for message in messages):
        yield Fault("a message has a role that is neither user nor assistant", "prompts/get", exchange)
    elif any(not isinstance(message.get("content"), dict) for message in messages):
        yield Fault("the content of a message is no block", "prompts/get", exchange)


def _not_completed(exchange: WireExchange) -> Iterator[Fault]:
    found: Any = (exchange.result or {}).get("completion")
    if isinstance(found, dict) and found.get("values"):
        return  # it completes, and does not say so
    if exchange.code != METHOD_NOT_FOUND and exchange.received is not None:
        yield Fault(f"expected error {METHOD_NOT_FOUND}, got {describe_answer(exchange)}", "completion", exchange)


def _undeclared(evidence: Evidence) -> RuleOutcome:
    if "completions" in evidence.capabilities:
        return not_applicable("the server declares completions")
    return probe_check("complete-undeclared", _not_completed, era="")(evidence)


def _completion(exchange: WireExchange) -> Iterator[Fault]:
    found: Any = (exchange.result or {}).get("completion")
    values = found.get("values") if isinstance(found, dict) else None
    if exchange.result is None:
        yield Fault(
            f"the completion of a listed prompt's argument got {describe_answer(exchange)}", "completion", exchange
        )
    elif not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        yield Fault("completion.values is no list of texts", "completion", exchange)
    elif len(values) > _MOST_VALUES:
        yield Fault(f"{len(values)} values, at most {_MOST_VALUES} are allowed", "completion", exchange)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="features.unknown-resource", family="features", severity=3, gate=False, check=_asked("unknown-resource", _not_found, "resources"),
        statement=f"A resource that does not exist is answered with an error ({RESOURCE_NOT_FOUND}, or {INVALID_PARAMS} in the newest revision), never with empty contents.",
        source="MCP server/resources, Error Handling",
        hint="tell a client that nothing is there: an empty text looks like an answer",
    ),
    Rule(
        id="features.resource-uri", family="features", severity=3, gate=True, check=_asked("resource-uri", _refuses("a number as URI", INVALID_PARAMS), "resources"),
        statement=f"resources/read with a URI that is no text is answered with error {INVALID_PARAMS}.",
        source="MCP server/resources, Security Considerations: servers must validate all resource URIs",
        hint="check the type before the resource is looked up",
    ),
    Rule(
        id="features.subscribe", family="features", severity=3, gate=True, check=_asked("subscribe", _done("resources/subscribe"), "resources", "legacy"),
        statement="A server that declares resources.subscribe takes a subscription to a listed resource.",
        source="MCP server/resources, Subscriptions",
        hint="answer with an empty result, or do not declare it",
        until=eras.LATEST_HANDSHAKE,
    ),
    Rule(
        id="features.unsubscribe", family="features", severity=3, gate=True, check=_asked("unsubscribe", _done("resources/unsubscribe"), "resources", "legacy"),
        statement="And ends it again.",
        source="MCP schema, UnsubscribeRequest",
        hint="answer with an empty result",
        until=eras.LATEST_HANDSHAKE,
    ),
    Rule(
        id="features.prompt", family="features", severity=3, gate=True, check=_asked("get-prompt", _prompt, "prompts"),
        statement="The first listed prompt is filled in: messages, each with a role and one block of content.",
        source="MCP server/prompts, Getting a Prompt; schema, GetPromptResult",
        hint='answer {"messages": [{"role": "user", "content": {"type": "text", "text": …}}]}',
    ),
    Rule(
        id="features.unknown-prompt", family="features", severity=2, gate=False, check=_asked("unknown-prompt", _refuses("unknown prompt", INVALID_PARAMS), "prompts"),
        statement=f"A prompt that does not exist is answered with error {INVALID_PARAMS}.",
        source="MCP server/prompts, Error Handling",
        hint="look the name up before anything else",
    ),
    Rule(
        id="features.prompt-arguments", family="features", severity=2, gate=False, check=_asked("prompt-arguments", _refuses("missing argument", INVALID_PARAMS), "prompts"),
        statement=f"A prompt without an argument that it requires is answered with error {INVALID_PARAMS}.",
        source="MCP server/prompts, Error Handling: missing required arguments",
        hint="check the arguments before the prompt is filled in",
    ),
    Rule(
        id="features.completion", family="features", severity=3, gate=True, check=_asked("complete", _completion, "completions"),
        statement=f"A server that declares completions completes an argument of a listed prompt, with at most {_MOST_VALUES} texts.",
        source="MCP server/utilities/completion",
        hint="an empty list is a completion, too; say hasMore where there are more",
    ),
    Rule(
        id="features.unknown-completion", family="features", severity=2, gate=False, check=_asked("complete-unknown", _refuses("completion of an unknown prompt", INVALID_PARAMS), "completions"),
        statement=f"The completion for a prompt that does not exist is answered with error {INVALID_PARAMS}.",
        source="MCP server/utilities/completion, Error Handling",
        hint="look the reference up first",
    ),
    Rule(
        id="features.completion-argument", family="features", severity=2, gate=False, check=_asked("complete-nothing", _refuses("completion without an argument", INVALID_PARAMS), "completions"),
        statement=f"A request for a completion that names no argument is answered with error {INVALID_PARAMS}.",
        source="MCP server/utilities/completion, Error Handling: missing required arguments",
        hint="check the request against its schema first",
        since=eras.COMPLETIONS,
    ),
    Rule(
        id="features.no-completion", family="features", severity=1, gate=False, check=_undeclared,
        statement=f"A server that completes nothing answers requests for completions with error {METHOD_NOT_FOUND}.",
        source="MCP server/utilities/completion, Error Handling: method not found, where the capability is not supported",
        hint="leave the method out, or declare completions",
        since=eras.COMPLETIONS,
    ),
    Rule(
        id="features.log-level", family="features", severity=3, gate=True, check=_asked("set-level", _done("logging/setLevel"), "logging", "legacy"),
        statement="A server that declares logging takes each of the eight levels.",
        source="MCP server/utilities/logging, Setting Log Level",
        hint="answer logging/setLevel with an empty result",
        until=eras.LATEST_HANDSHAKE,
    ),
    Rule(
        id="features.unknown-log-level", family="features", severity=2, gate=False, check=_asked("unknown-level", _refuses("unknown level", INVALID_PARAMS), "logging", "legacy"),
        statement=f"A log level that does not exist is answered with error {INVALID_PARAMS}.",
        source="MCP server/utilities/logging, Error Handling",
        hint="compare with the eight levels of syslog",
        until=eras.LATEST_HANDSHAKE,
    ),
)  # fmt: skip
