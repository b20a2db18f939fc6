"""Rules about tool names, schemas and descriptions."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.text import estimate_tokens
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import DIALECT, FIRST_MODERN, LATEST_HANDSHAKE, STRUCTURED
from mcpfactory_pipeline.checks.jsonschemas import broken_references, is_known_dialect, schema_error
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, Scope, rule_outcome
from mcpfactory_pipeline.checks.rules.modern import has_per_request_metadata
from mcpfactory_pipeline.checks.rules.subjects import (
    missing_lifecycle_outcome,
    missing_tools_outcome,
    tools_as_subjects,
)
from mcpfactory_pipeline.checks.transport.header_arguments import header_annotations
from mcpfactory_runtime.schemas.walk import COMBINATORS, properties_of, required_of, subschemas_of

RULES: Final = RuleTable()
rule = RULES.rule
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_PORTABLE_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OLDER_DIALECT: Final = "http://json-schema.org/draft-07/schema#"
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class _Schema(NamedTuple):
    where: str
    schema: Any


def _each_schema(*fields: str) -> Scope[_Schema]:
    """Return a scope of the schemas in the given fields of tools; with several fields, each tool counts once."""

    def scope(evidence: Evidence) -> RuleSubjects[_Schema] | RuleOutcome:
        having = [
            _Schema(f"{name} {field}", tool[field])
            for name, tool in evidence.named_tools
            for field in fields
            if field in tool
        ]
        count = len(having) if len(fields) == 1 else len(evidence.named_tools)
        return missing_tools_outcome(evidence) or RuleSubjects(having, count)

    return scope


_INPUTS: Final = _each_schema("inputSchema")
_OUTPUTS: Final = _each_schema("outputSchema")
_SCHEMAS: Final = _each_schema("inputSchema", "outputSchema")


@rule("schemas.tool-shape", 5, gate=True,
      over=lambda evidence: missing_tools_outcome(evidence) or RuleSubjects(list(enumerate(evidence.tools))),
      statement="Every entry of tools/list is an object with a name and an inputSchema.",
      source="MCP server/tools, Data Types: Tool",
      hint="return each tool as the Tool object of the MCP schema")  # fmt: skip
def _shape(entry: tuple[int, Any]) -> Iterator[Fault]:
    index, tool = entry
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


@rule("schemas.names-valid", 5, gate=True, over=tools_as_subjects,
      statement="Tool names are 1 to 128 characters of A-Z a-z 0-9 _ - .",
      source="MCP server/tools, Tool Names; model APIs refuse the whole request for one bad name",
      hint="rename the tool")  # fmt: skip
def _name_valid(named: tuple[str, Any]) -> Iterator[Fault]:
    name, _ = named
    if not _NAME.fullmatch(name):
        yield Fault(f"{name!r} is not 1 to 128 characters of A-Z a-z 0-9 _ - .", name)


@rule("schemas.names-unique", 5, gate=True,
      statement="No two tools of a server have the same name.",
      source="MCP server/tools, Tool Names: names are unique within a server",
      hint="rename all but one of these tools; clients cannot distinguish tools with the same name")  # fmt: skip
def _names_unique(evidence: Evidence) -> RuleOutcome:
    counts = Counter(name for name, _ in evidence.named_tools)
    return missing_tools_outcome(evidence) or rule_outcome(
        len(counts), (Fault(f"{count} tools are named {name!r}", name) for name, count in counts.items() if count > 1)
    )


@rule("schemas.names-portable", 2, over=tools_as_subjects,
      statement="Tool names are at most 64 characters and have no dots.",
      source="function names of the common model APIs: 64 characters of A-Z a-z 0-9 _ -, client prefixes included",
      hint="shorten the name, and replace . with _")  # fmt: skip
def _name_portable(named: tuple[str, Any]) -> Iterator[Fault]:
    name, _ = named
    if _NAME.fullmatch(name) and not _PORTABLE_NAME.fullmatch(name):
        yield Fault(f"{name!r} is not 1 to 64 characters of A-Z a-z 0-9 _ -", name)


@rule("schemas.input-valid", 5, gate=True, over=_INPUTS,
      statement=("Every inputSchema is a valid JSON Schema of its dialect, by default 2020-12. If the server speaks no "
                 f"revision from {DIALECT} on, draft 7 is also accepted."),
      source="MCP basic, JSON Schema Usage",
      hint="check the schema against the 2020-12 meta-schema")  # fmt: skip
def _input_valid(one: _Schema, evidence: Evidence) -> Iterator[Fault]:
    """Check the schema of a tool.

    Draft 7 is also valid if the server's protocol revisions define no default dialect.
    """
    unsaid = max(evidence.revisions, default=DIALECT) < DIALECT
    older = unsaid and isinstance(one.schema, dict) and "$schema" not in one.schema
    if not older or schema_error({"$schema": _OLDER_DIALECT, **one.schema}):
        yield from _valid(one)


@rule("schemas.input-object", 5, gate=True, over=_INPUTS,
      statement='The root of every inputSchema has "type": "object".',
      source="MCP schema, Tool.inputSchema",
      hint="wrap the value: arguments are always an object")  # fmt: skip
@rule("schemas.output-object", 3, gate=True, since=STRUCTURED, until=LATEST_HANDSHAKE, over=_OUTPUTS,
      statement='For handshake clients, the root of every outputSchema has "type": "object".',
      source="MCP schema, Tool.outputSchema, until the per-request revisions allowed any schema",
      hint='wrap the value as {"result": …} for these clients')  # fmt: skip
def _object_root(one: _Schema) -> Iterator[Fault]:
    where, schema = one
    if not isinstance(schema, dict) or schema.get("type") != "object":
        found = schema.get("type") if isinstance(schema, dict) else schema
        yield Fault(f'the root must have "type": "object", but has {found!r}', where)


@rule("schemas.output-valid", 5, gate=True, since=STRUCTURED, over=_OUTPUTS,
      statement="Every outputSchema is a valid JSON Schema of its dialect, by default 2020-12.",
      source="MCP server/tools, Output Schema",
      hint="check the schema against the 2020-12 meta-schema")  # fmt: skip
def _valid(one: _Schema) -> Iterator[Fault]:
    where, schema = one
    problem = schema_error(schema)
    if problem:
        yield Fault(f"the schema is not valid: {problem}", where)
    elif isinstance(schema, dict) and not is_known_dialect(schema):
        yield Fault(f"$schema names a dialect that some clients do not support: {schema['$schema']!r}", where, lesser=2)


@rule("schemas.refs-resolve", 5, gate=True, over=_SCHEMAS,
      statement="Every local $ref of a tool's schemas points to a definition in the same schema.",
      source="JSON Schema 2020-12 core §8.2.3; each schema of a tool is a separate document",
      hint="put the definition under $defs of the same schema")  # fmt: skip
def _dangling(one: _Schema) -> Iterator[Fault]:
    for place, reference, remote in broken_references(one.schema):
        if not remote:
            yield Fault(f"{reference!r} points to no definition", f"{one.where}{place}")


@rule("schemas.refs-local", 5, gate=True, over=_SCHEMAS,
      statement="No $ref of a tool's schemas points to another document.",
      source="MCP basic, JSON Schema Usage: references over the network must not be dereferenced automatically",
      hint="copy the definition under $defs")  # fmt: skip
def _remote(one: _Schema) -> Iterator[Fault]:
    for place, reference, remote in broken_references(one.schema):
        if remote:
            words = f"{reference!r} points to another document, which clients must not fetch"
            yield Fault(words, f"{one.where}{place}")


@rule("schemas.required-declared", 2, over=_SCHEMAS,
      statement="Every required property is declared under properties.",
      source="a model cannot fill an argument if it knows only the name",
      hint="declare the property, or remove it from required")  # fmt: skip
def _required(one: _Schema) -> Iterator[Fault]:
    where, schema = one
    elsewhere = ("$ref", *COMBINATORS, "patternProperties")
    if not isinstance(schema, dict) or any(keyword in schema for keyword in elsewhere) or schema_error(schema):
        return
    declared = properties_of(schema)
    if missing := [key for key in required_of(schema) if key not in declared]:
        yield Fault(f"required but not declared: {', '.join(missing)}", f"{where}/required")


def _parameters(evidence: Evidence) -> RuleSubjects[tuple[str, str, Any]] | RuleOutcome:
    return missing_tools_outcome(evidence) or RuleSubjects(list(evidence.parameters()))


def _parameters_of_tools(evidence: Evidence) -> RuleSubjects[tuple[str, str, Any]] | RuleOutcome:
    return missing_tools_outcome(evidence) or RuleSubjects(list(evidence.parameters()), len(evidence.named_tools))


@rule("schemas.argument-names", 3, over=_parameters_of_tools,
      statement="Argument names are 1 to 64 characters of A-Z a-z 0-9 _ - .",
      source="model APIs refuse a tool with other property keys",
      hint="rename the argument and map it inside the server")  # fmt: skip
def _argument_key(parameter: tuple[str, str, Any]) -> Iterator[Fault]:
    tool, key, _ = parameter
    if not _KEY.fullmatch(key):
        words = f"the argument {key!r} is not 1 to 64 characters of A-Z a-z 0-9 _ - ."
        yield Fault(words, f"{tool} inputSchema/properties")


def _per_request_tools(evidence: Evidence) -> RuleSubjects[tuple[str, Any]] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "modern")) is not None:
        return reason
    asked = [one for one in evidence.traffic if one.method == "tools/list" and has_per_request_metadata(one)]
    lists = [(one.result or {}).get("tools") for one in asked]
    tools = [tool for listed in lists if isinstance(listed, list) for tool in listed if isinstance(tool, dict)]
    return RuleSubjects(list({str(tool.get("name")): tool for tool in tools}.items()))


@rule("schemas.header-arguments", 3, gate=True, since=FIRST_MODERN, over=_per_request_tools,
      statement=("Each x-mcp-header of an inputSchema is a different header name, on a string, integer or boolean that is "
                 "reached by `properties` alone. A type that also allows null, or no type, has severity 2."),
      source="MCP server/tools, x-mcp-header: constraints; clients over HTTP must leave out a tool that breaks them",
      hint="annotate only arguments with one of these types, and never below items, anyOf or $defs")  # fmt: skip
def _header_arguments(named: tuple[str, Any]) -> Iterator[Fault]:
    name, tool = named
    seen: set[str] = set()
    for one in header_annotations(tool.get("inputSchema")):
        where, words = f"{name} inputSchema", f"x-mcp-header {one.header!r}"[:100]
        if one.problem:
            yield Fault(f"{words} {one.problem}", where)
        elif one.header.lower() in seen:
            yield Fault(f"{words} is used twice", where)
        elif not one.has_one_type:
            yield Fault(f"{words} is on {'.'.join(one.path)}, which does not have one type", where, lesser=2)
        seen.add(str(one.header).lower())


# --- descriptions ---

TOOL_BUDGET: Final = 1_000
TOTAL_BUDGET: Final = 20_000
_FILLER: Final = frozenset({"a", "an", "one", "the", "tool", "function", "to", "for", "of"})


def count_tool_tokens(tool: Any) -> int:
    """Return the approximate number of tokens in the parts of a tool that clients pass to models."""
    return estimate_tokens({key: tool[key] for key in ("name", "description", "inputSchema") if key in tool})


@rule("descriptions.tool", 3, over=tools_as_subjects,
      statement="Every tool has a description.",
      source="a model chooses a tool by its description",
      hint="write one sentence: what the tool does and when to use it")  # fmt: skip
def _described(named: tuple[str, Any]) -> Iterator[Fault]:
    name, tool = named
    if not _text(tool.get("description", ""), other="not for this rule to say"):
        yield Fault("the tool has no description", name)


def _described_tools(evidence: Evidence) -> RuleSubjects[tuple[str, Any]] | RuleOutcome:
    having = [(name, tool) for name, tool in evidence.named_tools if _text(tool.get("description"))]
    return missing_tools_outcome(evidence) or RuleSubjects(having)


@rule("descriptions.more-than-name", 2, over=_described_tools,
      statement="A tool's description says more than its name.",
      source="'Get book' for get_book tells a model nothing new",
      hint="describe the result, the purpose and the limits")  # fmt: skip
def _more_than_name(named: tuple[str, Any]) -> Iterator[Fault]:
    name, tool = named
    if _words(tool["description"]) <= _words(name):
        proof = {"description": tool["description"]}
        yield Fault("the description says no more than the name", name, proof=proof)


@rule("descriptions.distinct", 2,
      statement="No two tools have the same description.",
      source="a model cannot distinguish tools with equal descriptions",
      hint="describe how the tool differs from similar tools")  # fmt: skip
def _duplicates(evidence: Evidence) -> RuleOutcome:
    by_text: dict[str, dict[str, None]] = defaultdict(dict)
    for name, tool in evidence.named_tools:
        if _text(tool.get("description")):
            by_text[" ".join(tool["description"].casefold().split())][name] = None
    shared = [names for names in by_text.values() if len(names) > 1]
    return missing_tools_outcome(evidence) or rule_outcome(
        len(evidence.named_tools),
        (
            Fault(f"same description as {', '.join(other for other in names if other != name)}", name)
            for names in shared
            for name in names
        ),
    )


@rule("descriptions.arguments", 2, over=_parameters,
      statement="Every argument has a description.",
      source="format, unit and meaning of an argument are not in its type",
      hint="describe the argument in the schema: meaning, format, an example")  # fmt: skip
def _described_argument(parameter: tuple[str, str, Any]) -> Iterator[Fault]:
    tool, key, schema = parameter
    if not _explained(schema):
        yield Fault("the argument has no description", f"{tool}.{key}")


def _explained(schema: Any) -> bool:
    parts = [part for part in (schema, *subschemas_of(schema, *COMBINATORS)) if isinstance(part, dict)]
    return any(_text(part.get("description")) or "$ref" in part or "const" in part for part in parts)


@rule("descriptions.tool-budget", 2, over=tools_as_subjects,
      statement=f"One tool costs at most {TOOL_BUDGET} tokens.",
      source="every tool costs tokens in every conversation, even if it is not used",
      hint="shorten descriptions, remove unused definitions, or split the tool")  # fmt: skip
def _tool_budget(named: tuple[str, Any]) -> Iterator[Fault]:
    name, tool = named
    if (cost := count_tool_tokens(tool)) > TOOL_BUDGET:
        yield Fault(f"about {cost} tokens, the budget is {TOOL_BUDGET}", name)


@rule("descriptions.total-budget", 2,
      statement=f"All tools together cost at most {TOTAL_BUDGET} tokens.",
      source="a tenth of a context of 200,000 tokens is a lot for one server",
      hint="select fewer operations, or serve the API in search mode")  # fmt: skip
def _total_budget(evidence: Evidence) -> RuleOutcome:
    count, total = len(evidence.named_tools), sum(count_tool_tokens(tool) for _, tool in evidence.named_tools)
    words = f"{count} tools cost about {total} tokens in every conversation, the budget is {TOTAL_BUDGET}"
    return missing_tools_outcome(evidence) or rule_outcome(1, [Fault(words)] if total > TOTAL_BUDGET else ())


def _text(value: Any, *, other: str = "") -> str:
    return value.strip() if isinstance(value, str) else other


def _words(text: str) -> frozenset[str]:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)  # split words in camel case: "getBook" becomes "get Book"
    return frozenset(re.findall(r"[^\W_]+", spaced.casefold())) - _FILLER
