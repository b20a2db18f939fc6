"""Table of all rules, in the order of reports and of docs/reference/rules.md."""

from __future__ import annotations

from itertools import groupby
from typing import Final

from mcpfactory_codegen.text import closest_match
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.checks.report import RULES_VERSION
from mcpfactory_pipeline.checks.rule import Rule
from mcpfactory_pipeline.checks.rules import (
    api_failures,
    authorization,
    content,
    features,
    http,
    legacy,
    lists,
    modern,
    packaging,
    placeholder_answers,
    process,
    repeated_calls,
    schemas,
    security,
    server_messages,
    tasks,
    tool_calls,
)

RULES: Final[tuple[Rule, ...]] = (
    *process.RULES,
    *legacy.RULES,
    *modern.RULES,
    *http.RULES,
    *http.MODERN,
    *authorization.RULES,
    *lists.RULES,
    *features.RULES,
    *server_messages.RULES,
    *schemas.RULES,
    *tool_calls.RULES,
    *repeated_calls.RULES,
    *tasks.RULES,
    *content.RULES,
    *placeholder_answers.RULES,
    *api_failures.RULES,
    *security.RULES,
    *packaging.RULES,
    *process.PERFORMANCE,
)

FAMILIES: Final = {
    "process": "Process: start, stdout, exit",
    "legacy": "Legacy: the handshake lifecycle, and JSON-RPC requirements for every request",
    "modern": "Modern: the per-request lifecycle",
    "http": "HTTP: origins, sessions, statuses and headers of servers at a URL",
    "authorization": "Authorization: servers at a URL that need credentials",
    "lists": "Lists: what the server offers",
    "features": "Features: resources, prompts, completion and logging",
    "server-messages": "Server messages: what the server sends without a request",
    "schemas": "Schemas: names, input and output",
    "descriptions": "Descriptions: what the model reads, and what it costs",
    "tool-calls": "Tool calls: what the tools do",
    "tasks": "Tasks: tool calls that continue after their answer (last handshake revision)",
    "content": "Content: blocks of results, prompts and resources",
    "placeholder-answers": "Placeholder answers: successful answers without content",
    "api-failures": "API failures: what the tools do while the API fails",
    "packaging": "Packaging: what others install",
    "security": "Security: what the server might do to its readers",
    "performance": "Performance: what it costs to run, where policy sets limits",
}

_HEAD: Final = f"""# Rules of `mcpfactory validate`

Rules version {RULES_VERSION}, {len(RULES)} rules.

The severity is the weight of a rule in the score: 5 the server cannot be used, 3 a requirement is broken, 2 a
disadvantage for the model, 1 a recommendation. A failed **gate** makes the server not promotable at any score. How the
score is made up: [Checks](../explanation/checks.md).
"""


def rules_reference() -> str:
    """Return the reference page of all rules, as Markdown."""
    parts = [_HEAD]
    for family, rules in groupby(RULES, key=lambda rule: rule.family):
        parts.append(f"\n## {FAMILIES[family]}\n")
        parts += [_entry(rule) for rule in rules]
    return "".join(parts)


def rule_to_json(rule: Rule) -> dict[str, object]:
    """Return the requirement of a rule as JSON."""
    names = ("statement", "severity", "gate", "since", "until", "source", "hint")
    return {"rule": rule.id, **{name: getattr(rule, name) for name in names}}


def find_rule(name: str) -> Rule:
    """Return a rule by its id.

    Raises:
        NotFoundError: the id is unknown; the hint contains a similar id, if one exists.
    """
    known = {rule.id: rule for rule in RULES}
    if name not in known:
        near = closest_match(name, known)
        hint = (
            f"did you mean {near!r}?"
            if near
            else "copy an id from a report, for example: mcpfactory validate --explain descriptions.tool"
        )
        raise NotFoundError(f"unknown rule {name!r}", hint=hint)
    return known[name]


def explain_rule(rule: Rule) -> str:
    """Describe a rule's requirement for a terminal."""
    grade = f"severity {rule.severity}" + (", gate: a server that fails it is not promotable" if rule.gate else "")
    lines = [rule.id, f"  {rule.statement}", f"  {grade}"]
    if rule.since or rule.until:
        lines.append(f"  revisions: {rule.since or 'the first'} to {rule.until or 'the latest'}")
    return "\n".join([*lines, f"  source: {rule.source}", f"  hint: {rule.hint}"]) + "\n"


def _entry(rule: Rule) -> str:
    grade = f"severity {rule.severity}" + (", **gate**" if rule.gate else "")
    span = (
        f"\n- Applies to revisions {rule.since or 'from the first'} to {rule.until or 'the latest'}."
        if rule.since or rule.until
        else ""
    )
    return f"\n### `{rule.id}`\n\n{rule.statement}\n\n- {grade.capitalize()}.{span}\n- Source: {rule.source}.\n- Hint: {rule.hint}.\n"
