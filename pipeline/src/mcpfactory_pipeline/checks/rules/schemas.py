"""Rules about tool names, schemas and descriptions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from mcpfactory_codegen.text import count_tokens
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import DIALECT, LATEST_HANDSHAKE, STRUCTURED, has_member
from mcpfactory_pipeline.checks.jsonschemas import broken_references, known_dialect, schema_error
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome

_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_PORTABLE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OLDER_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def tools_or_reason(evidence: Evidence) -> RuleOutcome | None:
    """Return None when there are tools to check; else the outcome of every rule about tools."""
    if evidence.tools:
        return None
    listing = evidence.lists.get("tools/list")
    if listing is None:
        why = evidence.missing.get("tools/list")
        return not_checked(why) if why else not_applicable("the server declares no tools")
    return not_checked(listing.problem) if listing.problem else not_applicable("the server lists no tools")


def each_tool(find_faults: Callable[[str, Any], Iterator[Fault]]) -> Check:
    """Return a check of every named tool; the tool is the subject."""

    def check(evidence: Evidence) -> RuleOutcome:
        tools = evidence.named_tools
        return tools_or_reason(evidence) or rule_outcome(
            len(tools), (fault for name, tool in tools for fault in find_faults(name, tool))
        )

    return check


def _each_schema(field: str, find_faults: Callable[[str, Any], Iterator[Fault]]) -> Check:
    def check(evidence: Evidence) -> RuleOutcome:
        having = [(name, tool[field]) for name, tool in evidence.named_tools if field in tool]
        return tools_or_reason(evidence) or rule_outcome(
            len(having), (fault for name, schema in having for fault in find_faults(f"{name} {field}", schema))
        )

    return check


def _each_both(find_faults: Callable[[str, Any], Iterator[Fault]]) -> Check:
    """Return a check of the input and output schema of every tool; the tool is the subject."""

    def both(name: str, tool: Any) -> Iterator[Fault]:
        for field in ("inputSchema", "outputSchema"):
            if field in tool:
                yield from find_faults(f"{name} {field}", tool[field])

    return each_tool(both)


def _shape(evidence: Evidence) -> RuleOutcome:
    return tools_or_reason(evidence) or rule_outcome(
        len(evidence.tools),
        (fault for index, tool in enumerate(evidence.tools) for fault in _shape_of(index, tool, evidence.revisions)),
    )


def _shape_of(index: int, tool: Any, revisions: Sequence[str]) -> Iterator[Fault]:
    if not isinstance(tool, dict):
        yield Fault(f"entry {index} of tools/list is {type(tool).__name__}, not an object", f"tools/{index}")
        return
    if not isinstance(tool.get("name"), str):
        yield Fault(f"entry {index} of tools/list has no name that is a string", f"tools/{index}")
        return
    if "inputSchema" not in tool:
        yield Fault(
            "the tool has no inputSchema", tool["name"], hint='declare {"type": "object"} for a tool without arguments'
        )
    known = {field: value for field, value in tool.items() if has_member(field, revisions)}
    texts = [field for field in ("title", "description") if not isinstance(known.get(field, ""), str)]
    yield from (Fault(f"{field} is not a string", f"{tool['name']} {field}") for field in texts)
    if not isinstance(known.get("annotations", {}), dict):
        yield Fault("annotations is not an object", f"{tool['name']} annotations")


def _valid_inputs(evidence: Evidence) -> RuleOutcome:
    """Judge each inputSchema; where no revision says which dialect it has without `$schema`, the one that clients read then will do."""
    unsaid = max(evidence.revisions, default=DIALECT) < DIALECT

    def find_faults(where: str, schema: Any) -> Iterator[Fault]:
        older = unsaid and isinstance(schema, dict) and "$schema" not in schema
        if not older or schema_error({"$schema": _OLDER_DIALECT, **schema}):
            yield from _valid(where, schema)

    return _each_schema("inputSchema", find_faults)(evidence)


def _valid(where: str, schema: Any) -> Iterator[Fault]:
    problem = schema_error(schema)
    if problem:
        yield Fault(f"the schema is not valid: {problem}", where)
    elif isinstance(schema, dict) and not known_dialect(schema):
        yield Fault(f"$schema names a dialect that some clients do not support: {schema['$schema']!r}", where, lesser=2)


def _object_root(where: str, schema: Any) -> Iterator[Fault]:
    if not isinstance(schema, dict) or schema.get("type") != "object":
        found = schema.get("type") if isinstance(schema, dict) else schema
        yield Fault(f'the root must have "type": "object", but has {found!r}', where)


def _dangling(where: str, schema: Any) -> Iterator[Fault]:
    for place, reference, remote in broken_references(schema):
        if not remote:
            yield Fault(f"{reference!r} points to no definition", f"{where}{place}")


def _remote(where: str, schema: Any) -> Iterator[Fault]:
    for place, reference, remote in broken_references(schema):
        if remote:
            yield Fault(f"{reference!r} points to another document, which clients must not fetch", f"{where}{place}")


def _required(where: str, schema: Any) -> Iterator[Fault]:
    if not isinstance(schema, dict):
        return
    required, properties = schema.get("required"), schema.get("properties", {})
    elsewhere = any(keyword in schema for keyword in ("$ref", "allOf", "anyOf", "oneOf", "patternProperties"))
    if isinstance(required, list) and isinstance(properties, dict) and not elsewhere:
        missing = [key for key in required if isinstance(key, str) and key not in properties]
        if missing:
            yield Fault(f"required but not declared: {', '.join(missing)}", f"{where}/required")


def _name_valid(name: str, _tool: Any) -> Iterator[Fault]:
    if not _NAME.fullmatch(name):
        yield Fault(f"{name!r} is not 1 to 128 characters of A-Z a-z 0-9 _ - .", name)


def _name_portable(name: str, _tool: Any) -> Iterator[Fault]:
    if _NAME.fullmatch(name) and not _PORTABLE_NAME.fullmatch(name):
        yield Fault(f"{name!r} is not 1 to 64 characters of A-Z a-z 0-9 _ -", name)


def _names_unique(evidence: Evidence) -> RuleOutcome:
    counts = Counter(name for name, _ in evidence.named_tools)
    return tools_or_reason(evidence) or rule_outcome(
        len(counts), (Fault(f"{count} tools are named {name!r}", name) for name, count in counts.items() if count > 1)
    )


def _keys(evidence: Evidence) -> RuleOutcome:
    return tools_or_reason(evidence) or rule_outcome(
        len(evidence.named_tools),
        (
            Fault(
                f"the argument {key!r} is not 1 to 64 characters of A-Z a-z 0-9 _ - .", f"{tool} inputSchema/properties"
            )
            for tool, key, _ in evidence.parameters()
            if not _KEY.fullmatch(key)
        ),
    )


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="schemas.tool-shape", severity=5, gate=True, check=_shape,
        statement=("Every entry of tools/list is an object with a name and an inputSchema; title and description are "
                   "strings."),
        source="MCP server/tools, Data Types: Tool",
        hint="return each tool as the Tool object of the MCP schema",
    ),
    Rule(
        id="schemas.names-valid", severity=5, gate=True, check=each_tool(_name_valid),
        statement="Tool names are 1 to 128 characters of A-Z a-z 0-9 _ - .",
        source="MCP server/tools, Tool Names; model APIs refuse the whole request for one bad name",
        hint="rename the tool",
    ),
    Rule(
        id="schemas.names-unique", severity=5, gate=True, check=_names_unique,
        statement="No two tools of a server have the same name.",
        source="MCP server/tools, Tool Names: names are unique within a server",
        hint="rename all but one; clients cannot distinguish them",
    ),
    Rule(
        id="schemas.names-portable", severity=2, check=each_tool(_name_portable),
        statement="Tool names are at most 64 characters and have no dots.",
        source="function names of the common model APIs: 64 characters of A-Z a-z 0-9 _ -, client prefixes included",
        hint="shorten the name, and replace . with _",
    ),
    Rule(
        id="schemas.input-valid", severity=5, gate=True, check=_valid_inputs,
        statement=("Every inputSchema is a valid JSON Schema of its dialect, 2020-12 unless it says otherwise (of a "
                   f"server that speaks no revision from {DIALECT} on draft 7 will do)."),
        source="MCP basic, JSON Schema Usage",
        hint="check the schema against the 2020-12 meta-schema",
    ),
    Rule(
        id="schemas.input-object", severity=5, gate=True, check=_each_schema("inputSchema", _object_root),
        statement='The root of every inputSchema has "type": "object".',
        source="MCP schema, Tool.inputSchema",
        hint="wrap the value: arguments are always an object",
    ),
    Rule(
        id="schemas.output-valid", severity=5, gate=True, since=STRUCTURED, check=_each_schema("outputSchema", _valid),
        statement="Every outputSchema is a valid JSON Schema of its dialect, by default 2020-12.",
        source="MCP server/tools, Output Schema",
        hint="check the schema against the 2020-12 meta-schema",
    ),
    Rule(
        id="schemas.output-object", severity=3, check=_each_schema("outputSchema", _object_root),
        statement='For handshake clients, the root of every outputSchema has "type": "object".',
        source="MCP schema, Tool.outputSchema, until the per-request revisions allowed any schema",
        hint='wrap the value as {"result": …} for these clients', since=STRUCTURED, until=LATEST_HANDSHAKE,
    ),
    Rule(
        id="schemas.refs-resolve", severity=5, gate=True, check=_each_both(_dangling),
        statement="Every local $ref of a tool's schemas points to a definition in the same schema.",
        source="JSON Schema 2020-12 core §8.2.3; each schema of a tool is a document of its own",
        hint="put the definition under $defs of the same schema",
    ),
    Rule(
        id="schemas.refs-local", severity=5, gate=True, check=_each_both(_remote),
        statement="No $ref of a tool's schemas points to another document.",
        source="MCP basic, JSON Schema Usage: references over the network must not be dereferenced automatically",
        hint="copy the definition under $defs",
    ),
    Rule(
        id="schemas.required-declared", severity=2, check=_each_both(_required),
        statement="Every required property is declared under properties.",
        source="a model cannot fill an argument of which it only knows the name",
        hint="declare the property, or remove it from required",
    ),
    Rule(
        id="schemas.argument-keys", severity=3, check=_keys,
        statement="Argument names are 1 to 64 characters of A-Z a-z 0-9 _ - .",
        source="model APIs refuse a tool with other property keys",
        hint="rename the argument and map it inside the server",
    ),
)  # fmt: skip


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
            f"{len(evidence.named_tools)} tools cost about {total} tokens in every conversation, the budget is "
            f"{TOTAL_BUDGET}"
        )


def _text(value: Any, *, other: str = "") -> str:
    return value.strip() if isinstance(value, str) else other


def _words(text: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)  # getBook is two words
    return frozenset(re.findall(r"[^\W_]+", spaced.casefold())) - _FILLER


DESCRIPTION_RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="descriptions.tool", severity=3, check=each_tool(_described),
        statement="Every tool has a description.",
        source="the description is all that a model has to choose by",
        hint="write one sentence: what the tool does and when to use it",
    ),
    Rule(
        id="descriptions.more-than-name", severity=2, check=_not_the_name,
        statement="A tool's description says more than its name.",
        source="'Get book' for get_book tells a model nothing that it did not know",
        hint="describe the result, the purpose and the limits",
    ),
    Rule(
        id="descriptions.distinct", severity=2, check=_duplicates,
        statement="No two tools have the same description.",
        source="a model cannot tell such tools apart",
        hint="describe how the tool differs from similar tools",
    ),
    Rule(
        id="descriptions.arguments", severity=2, check=_parameters,
        statement="Every argument has a description.",
        source="format, unit and meaning of an argument are not in its type",
        hint="describe the argument in the schema: meaning, format, an example",
    ),
    Rule(
        id="descriptions.tool-budget", severity=2, check=each_tool(_tool_budget),
        statement=f"One tool costs at most {TOOL_BUDGET} tokens.",
        source="every tool is paid for in every conversation, used or not",
        hint="shorten descriptions, remove unused definitions, or split the tool",
    ),
    Rule(
        id="descriptions.total-budget", severity=2, check=_total_budget,
        statement=f"All tools together cost at most {TOTAL_BUDGET} tokens.",
        source="a tenth of a context of 200,000 tokens is much for one server",
        hint="select fewer operations, or serve the API in search mode",
    ),
)  # fmt: skip
