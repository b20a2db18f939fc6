"""Rules over what the model reads: descriptions of tools and arguments, and what the list costs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_codegen.text import count_tokens
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.families.schemas import each_tool, tools_or_reason
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, rule_outcome

__all__ = ["RULES"]

TOOL_BUDGET: Final = 1_000
TOTAL_BUDGET: Final = 20_000
_FILLER: Final = frozenset({"a", "an", "one", "the", "tool", "function", "to", "for", "of"})


def tokens(tool: Any) -> int:
    """About how many tokens a model pays for a tool: the part that clients pass to it."""
    return count_tokens({key: tool[key] for key in ("name", "description", "inputSchema") if key in tool})


def _described(name: str, tool: Any) -> Iterator[Fault]:
    if not _text(tool.get("description", ""), other="not for this rule to say"):
        yield Fault("the tool has no description", name)


def _not_the_name(evidence: Evidence) -> RuleOutcome:
    having = [(name, tool) for name, tool in evidence.named_tools if _text(tool.get("description"))]
    return tools_or_reason(evidence) or rule_outcome(
        len(having),
        (
            Fault("the description says no more than the name", name, proof={"description": tool["description"]})
            for name, tool in having
            if _words(tool["description"]) <= _words(name)
        ),
    )


def _duplicates(evidence: Evidence) -> RuleOutcome:
    by_text: dict[str, dict[str, None]] = defaultdict(dict)
    for name, tool in evidence.named_tools:
        if _text(tool.get("description")):
            by_text[" ".join(tool["description"].casefold().split())][name] = None
    shared = [names for names in by_text.values() if len(names) > 1]
    return tools_or_reason(evidence) or rule_outcome(
        len(evidence.named_tools),
        (
            Fault(f"same description as {', '.join(other for other in names if other != name)}", name)
            for names in shared
            for name in names
        ),
    )


def _parameters(evidence: Evidence) -> RuleOutcome:
    parameters = list(evidence.parameters())
    return tools_or_reason(evidence) or rule_outcome(
        len(parameters),
        (
            Fault("the argument has no description", f"{tool}.{key}")
            for tool, key, schema in parameters
            if not _explained(schema)
        ),
    )


def _explained(schema: Any) -> bool:
    """Return a description, a title that is more than nothing, or a reference to something that is explained elsewhere."""
    if not isinstance(schema, dict):
        return False
    parts = [
        schema,
        *(part for key in ("allOf", "anyOf", "oneOf") for part in schema.get(key) or [] if isinstance(part, dict)),
    ]
    return any(_text(part.get("description")) or "$ref" in part or "const" in part for part in parts)


def _tool_budget(name: str, tool: Any) -> Iterator[Fault]:
    if (cost := tokens(tool)) > TOOL_BUDGET:
        yield Fault(f"about {cost} tokens, the budget is {TOOL_BUDGET}", name)


def _total_budget(evidence: Evidence) -> RuleOutcome:
    return tools_or_reason(evidence) or rule_outcome(1, _total(evidence))


def _total(evidence: Evidence) -> Iterator[Fault]:
    total = sum(tokens(tool) for _, tool in evidence.named_tools)
    if total > TOTAL_BUDGET:
        yield Fault(
            f"{len(evidence.named_tools)} tools cost about {total} tokens in every conversation, the budget is {TOTAL_BUDGET}"
        )


def _text(value: Any, *, other: str = "") -> str:
    return value.strip() if isinstance(value, str) else other


def _words(text: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)  # getBook is two words
    return frozenset(re.findall(r"[^\W_]+", spaced.casefold())) - _FILLER


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="descriptions.tool", family="descriptions", severity=3, gate=False, check=each_tool(_described),
        statement="Every tool has a description.",
        source="the description is all that a model has to choose by",
        hint="one sentence: what it does and when to use it",
    ),
    Rule(
        id="descriptions.more-than-name", family="descriptions", severity=2, gate=False, check=_not_the_name,
        statement="A tool's description says more than its name.",
        source="'Get book' for get_book tells a model nothing that it did not know",
        hint="say what comes back, what it is for, and its limits",
    ),
    Rule(
        id="descriptions.distinct", family="descriptions", severity=2, gate=False, check=_duplicates,
        statement="No two tools have the same description.",
        source="a model cannot tell such tools apart",
        hint="say what distinguishes the tool from its neighbours",
    ),
    Rule(
        id="descriptions.arguments", family="descriptions", severity=2, gate=False, check=_parameters,
        statement="Every argument has a description.",
        source="format, unit and meaning of an argument are not in its type",
        hint="describe the argument in the schema: meaning, format, an example",
    ),
    Rule(
        id="descriptions.tool-budget", family="descriptions", severity=2, gate=False, check=each_tool(_tool_budget),
        statement=f"One tool costs at most {TOOL_BUDGET} tokens.",
        source="every tool is paid for in every conversation, used or not",
        hint="shorten descriptions, drop unused definitions, split the tool",
    ),
    Rule(
        id="descriptions.total-budget", family="descriptions", severity=2, gate=False, check=_total_budget,
        statement=f"All tools together cost at most {TOTAL_BUDGET} tokens.",
        source="a tenth of a context of 200,000 tokens is much for one server",
        hint="select fewer operations, or serve the API in search mode",
    ),
)  # fmt: skip
