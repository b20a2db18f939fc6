"""Rules about resources, prompts, completion and logging."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import COMPLETIONS, LATEST_HANDSHAKE, WireExchange
from mcpfactory_pipeline.checks.probes import describe_answer
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, not_applicable
from mcpfactory_pipeline.checks.rules.modern import has_per_request_metadata
from mcpfactory_pipeline.checks.rules.subjects import probed
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND

RULES: Final = RuleTable()
rule, row = RULES.rule, RULES.row
_MOST_VALUES: Final = 100  # maximum number of values of one completion


def _unknown_resources(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    first = probed("unknown-resource")(evidence)
    again = evidence.probes.get("modern-unknown-resource")
    if isinstance(first, RuleOutcome):
        return first
    # Other answers to a template with invented values can be right.
    empty = [read for read in evidence.unknown_items if (read.result or {}).get("contents") == []]
    return RuleSubjects([*filter(None, [again]), *first.items, *empty], 1, once=True)


@rule("features.unknown-resource", 3, gate=True, over=_unknown_resources,
      statement=(f"A resource that does not exist is answered with an error ({RESOURCE_NOT_FOUND}, or "
                 f"{INVALID_PARAMS} in the newest revision), never with empty contents. Empty contents close the gate "
                 "only in the newest revision."),
      source="MCP server/resources, Error Handling: servers must not return an empty contents array (newest revision)",
      hint="return an error: an empty text looks like an answer")  # fmt: skip
def _unknown_resource(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code in (RESOURCE_NOT_FOUND, INVALID_PARAMS):
        return  # the rule modern.error-codes reports the retired code
    contents = (exchange.result or {}).get("contents")
    if exchange.result is not None and contents:
        return  # the URI may match a resource template
    what = "empty contents" if exchange.result is not None else describe_answer(exchange)
    words = f"expected error {RESOURCE_NOT_FOUND} or {INVALID_PARAMS}, got {what}"
    strict = has_per_request_metadata(exchange) and contents == []
    yield Fault(words, "unknown resource", exchange, lesser=1 if exchange.error is not None else None if strict else 3)


row("features.resource-uri", 3, gate=True, over=probed("resource-uri"),
    statement=f"resources/read with a URI that is not a string is answered with error {INVALID_PARAMS}.",
    source="MCP server/resources, Security Considerations: servers must validate all resource URIs",
    hint="check the type of the URI before you look up the resource")  # fmt: skip

row("features.subscribe", 3, gate=True, until=LATEST_HANDSHAKE, over=probed("subscribe"),
    statement="A server that declares resources.subscribe accepts a subscription to a listed resource.",
    source="MCP server/resources, Subscriptions",
    hint="return an empty result, or do not declare resources.subscribe")  # fmt: skip

row("features.unsubscribe", 3, gate=True, until=LATEST_HANDSHAKE, over=probed("unsubscribe"),
    statement="A server that declares resources.subscribe also accepts resources/unsubscribe.",
    source="MCP schema, UnsubscribeRequest",
    hint="return an empty result")  # fmt: skip


@rule("features.prompt", 3, gate=True, over=probed("get-prompt"),
      statement="prompts/get for the first listed prompt is answered; an error about its arguments is allowed.",
      source="MCP server/prompts, Getting a Prompt",
      hint='return {"messages": [{"role": "user", "content": {"type": "text", "text": …}}]}')  # fmt: skip
def _prompt(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.received is None or exchange.code == METHOD_NOT_FOUND:
        yield Fault(f"the first prompt got {describe_answer(exchange)}", "prompts/get", exchange)


row("features.unknown-prompt", 2, over=probed("unknown-prompt"),
    statement=f"prompts/get for an unknown prompt is answered with error {INVALID_PARAMS}.",
    source="MCP server/prompts, Error Handling",
    hint="look up the name of the prompt before anything else")  # fmt: skip

row("features.prompt-arguments", 2, over=probed("prompt-arguments"),
    statement=f"prompts/get without a required argument is answered with error {INVALID_PARAMS}.",
    source="MCP server/prompts, Error Handling: missing required arguments",
    hint="check the arguments before you fill in the prompt")  # fmt: skip


def _completed_prompts(evidence: Evidence) -> RuleSubjects[tuple[WireExchange, WireExchange]] | RuleOutcome:
    if not evidence.completed_prompts:
        return not_applicable("no prompt failed without its optional arguments")
    return RuleSubjects(evidence.completed_prompts)


@rule("features.optional-arguments", 2, over=_completed_prompts,
      statement="A prompt succeeds without the arguments that prompts/list does not mark as required.",
      source="MCP schema, PromptArgument.required: whether this argument must be provided",
      hint="set required to true, or choose a default for the argument")  # fmt: skip
def _optional_arguments(pair: tuple[WireExchange, WireExchange]) -> Iterator[Fault]:
    failed, complete = pair
    if complete.result is not None:
        words = f"the prompt fails without its optional arguments, and succeeds with them: {describe_answer(failed)}"
        yield Fault(words, str(failed.params.get("name")), failed)


@rule("features.completion", 3, gate=True, over=probed("complete"),
      statement=("A server that declares completions completes an argument of a listed prompt, with at most "
                 f"{_MOST_VALUES} values."),
      source="MCP server/utilities/completion",
      hint="return an empty list if there are no values, and set hasMore if there are more")  # fmt: skip
def _completion(exchange: WireExchange) -> Iterator[Fault]:
    found: Any = (exchange.result or {}).get("completion")
    values = found.get("values") if isinstance(found, dict) else None
    if exchange.result is None:
        words = f"the completion of a listed prompt's argument got {describe_answer(exchange)}"
        yield Fault(words, "completion", exchange)
    elif isinstance(values, list) and len(values) > _MOST_VALUES:
        yield Fault(f"{len(values)} values, the maximum is {_MOST_VALUES}", "completion", exchange)


row("features.unknown-completion", 2, over=probed("complete-unknown"),
    statement=f"completion/complete for an unknown prompt is answered with error {INVALID_PARAMS}.",
    source="MCP server/utilities/completion, Error Handling",
    hint="look up the reference first")  # fmt: skip

row("features.completion-argument", 2, since=COMPLETIONS, over=probed("complete-without-argument"),
    statement=f"completion/complete without an argument is answered with error {INVALID_PARAMS}.",
    source="MCP server/utilities/completion, Error Handling: missing required arguments",
    hint="check the request against its schema first")  # fmt: skip


@rule("features.undeclared-completion", 1, since=COMPLETIONS, over=probed("complete-undeclared"),
      statement=f"A server without completions answers completion/complete with error {METHOD_NOT_FOUND}.",
      source="MCP server/utilities/completion, Error Handling: method not found, where the capability is not supported",
      hint="remove the method, or declare completions")  # fmt: skip
def _no_completion(exchange: WireExchange) -> Iterator[Fault]:
    found: Any = (exchange.result or {}).get("completion")
    if isinstance(found, dict) and found.get("values"):
        return  # completion works, although the server does not declare the capability
    if exchange.code != METHOD_NOT_FOUND and exchange.received is not None:
        yield Fault(f"expected error {METHOD_NOT_FOUND}, got {describe_answer(exchange)}", "completion", exchange)


row("features.log-level", 3, gate=True, until=LATEST_HANDSHAKE, over=probed("set-level"),
    statement="A server that declares logging accepts each of the eight levels.",
    source="MCP server/utilities/logging, Setting Log Level",
    hint="answer logging/setLevel with an empty result")  # fmt: skip

row("features.unknown-log-level", 2, until=LATEST_HANDSHAKE, over=probed("unknown-level"),
    statement=f"An unknown log level is answered with error {INVALID_PARAMS}.",
    source="MCP server/utilities/logging, Error Handling",
    hint="accept only the eight syslog levels")  # fmt: skip
