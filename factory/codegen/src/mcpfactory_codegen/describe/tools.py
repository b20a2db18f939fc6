"""Tools for models: name, description, input and output schema, annotations, difficulties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcpfactory_codegen.curation import ResponseOptions
from mcpfactory_codegen.describe.paging import UNCLEAR, recognize_paging
from mcpfactory_codegen.describe.schema_values import constant_value
from mcpfactory_codegen.describe.tool_schemas import OutputSchema, OutputSchemas, SharedDefinitions
from mcpfactory_codegen.effects import Effect, effect_of, tool_annotations
from mcpfactory_codegen.inputs import Input, Inputs, inputs
from mcpfactory_codegen.ir import Api, ApiOperation, JsonSchema, Problem, SkippedOperation
from mcpfactory_codegen.naming import Names, OperationNames
from mcpfactory_codegen.text import estimate_tokens, one_line, shorten_text, singular, words
from mcpfactory_runtime.schemas.satisfiability import is_unsatisfiable
from mcpfactory_runtime.schemas.walk import (
    COMBINATORS,
    definition,
    definitions_of,
    items_schema_of,
    properties_of,
    required_of,
    subschemas_of,
    types_of,
)
from mcpfactory_runtime.upstream.operation import Paging

# --- the tools ---


_DESCRIPTION: Final = 1024
_TITLE: Final = 80
_CHOICES_SHOWN: Final = 6
_ARTICLES: Final = frozenset({"a", "an", "the"})

FILE_PROPERTIES: Final[dict[str, Any]] = {
    "text": {"type": "string"},
    "base64": {"type": "string"},
    "filename": {"type": "string"},
    "content_type": {"type": "string"},
}
_FILE_SCHEMA: Final[dict[str, Any]] = {"type": ["object", "string"], "properties": FILE_PROPERTIES}
_FILE_NOTE: Final = "A file: its text, or an object with text or base64."
_WHOLE: Final = {  # descriptions of arguments that contain a whole body, form or query string
    "body": "The whole body of the request.",
    "form": "All fields of the form that is sent.",
    "querystring": "The whole query, behind the question mark of the address.",
}
_SELECT: Final[dict[str, Any]] = {
    "type": "string",
    "description": "JMESPath: only what it selects of the answer is returned, e.g. items[].{id: id, name: name}",
}


@dataclass(frozen=True, slots=True)
class ArgumentLocation:
    """Location of an argument in the request. `inspect --json` prints `place` under the name `in`."""

    place: str
    name: str


@dataclass(frozen=True, slots=True)
class MergedArgument:
    """Argument that replaces its `members`.

    `separator` splits the text of the argument into one part per member.
    """

    members: tuple[str, ...]
    kinds: tuple[str, ...]
    separator: str


@dataclass(frozen=True, slots=True)
class ApiTool:
    """A tool for one operation.

    `handler` is `<module>:<function>` below `_generated.tools`. `title` is "" if it would only repeat `name`.
    `defaults` has the values of omitted arguments. `fixed` has the values of hidden arguments. `merged` has the
    arguments that replace several others. `select` is the name of the argument that selects parts of a response.
    """

    key: str
    name: str
    title: str
    description: str
    input_schema: dict[str, Any]
    annotations: dict[str, Any]
    handler: str
    bindings: Mapping[str, ArgumentLocation]
    tokens: int = 0
    defaults: Mapping[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    merged: Mapping[str, MergedArgument] = field(default_factory=dict)
    output: OutputSchema = field(default_factory=OutputSchema)
    paging: Paging | None = None
    select: str = ""

    def listed(self) -> dict[str, Any]:
        """Return the Tool object of tools/list."""
        listed = {
            "name": self.name,
            **({"title": self.title} if self.title else {}),
            "description": self.description,
            "inputSchema": self.input_schema,
            "annotations": self.annotations,
        }
        if self.output.schema is not None:
            listed["outputSchema"] = self.output.schema
        return listed


@dataclass(frozen=True, slots=True)
class DescribedTools:
    """The tools, the operations without a tool, and the problems."""

    tools: tuple[ApiTool, ...]
    skipped: tuple[SkippedOperation, ...] = ()
    problems: tuple[Problem, ...] = ()


def make_api_tools(api: Api, names: Names, responses: ResponseOptions | None = None) -> DescribedTools:
    """Return the tools of an API, and report each operation that cannot become a tool."""
    library = SharedDefinitions(api.schemas)
    responses = responses or ResponseOptions()
    # with `select`, a tool returns a part of unknown structure, which no output schema can describe
    outputs = OutputSchemas(api.schemas, "none" if responses.select else responses.output, responses.output_tokens)
    tools: list[ApiTool] = []
    skipped: list[SkippedOperation] = []
    problems: list[Problem] = []
    done: set[str] = set()
    for operation in api.operations:
        reason = "method and path occur twice in the document" if operation.key in done else ""
        if not reason:
            done.add(operation.key)
            try:
                tool, assumed = _tool(operation, api, names.operations[operation.key], library, outputs)
            except RecursionError:
                reason = "its schemas are nested too deeply"
            else:
                reason = _impossible(tool)
            if not reason:
                tools.append(_selecting(tool) if responses.select and outputs.has_json_response(operation) else tool)
                problems += assumed
        if reason:
            skipped.append(operation.skipped(reason))
            hint = "correct the schemas of its parameters and body"
            problems.append(
                Problem("error", "operation-no-tool", operation.pointer, f"{operation.key}: {reason}", hint)
            )
    return DescribedTools(tuple(tools), tuple(skipped), tuple(problems))


def _impossible(tool: ApiTool) -> str:
    """Return the reason why no call can be valid, or ""."""
    properties, known = properties_of(tool.input_schema), definitions_of(tool.input_schema)
    for name in required_of(tool.input_schema):
        if is_unsatisfiable(properties[name], known):
            bound = tool.bindings[name]
            where = f"{bound.name!r} in the {bound.place}" if bound.name else f"the {bound.place}"
            return f"no value of {where} is valid, because its schema contradicts itself"
    return ""


def _selecting(tool: ApiTool) -> ApiTool:
    properties = tool.input_schema["properties"]
    name = next(name for name in ("select", "select_result", "select_of_the_result") if name not in properties)
    schema = {**tool.input_schema, "properties": {**properties, name: dict(_SELECT)}}
    done = replace(tool, input_schema=schema, select=name, output=OutputSchema(reason="its answer is selected from"))
    return replace(done, tokens=estimate_tokens(done.listed()))


def _cut(operation: ApiOperation, cut: tuple[str, ...]) -> Problem:
    shown = ", ".join(sorted(cut)[:_CHOICES_SHOWN]) + (", …" if len(cut) > _CHOICES_SHOWN else "")
    return Problem(
        "warning",
        "schema-cut",
        operation.pointer,
        f"{operation.key}: {len(cut)} definitions are too large for one tool and now accept any value: {shown}",
    )


def _tool(
    operation: ApiOperation, api: Api, named: OperationNames, library: SharedDefinitions, outputs: OutputSchemas
) -> tuple[ApiTool, list[Problem]]:
    operation_inputs = inputs(operation, api)
    fixed = _fixed(operation_inputs, api.schemas)
    asked = tuple(item for item in operation_inputs.items if item.slot not in fixed)
    schema, cut = library.close(_input_schema(asked, named, library))
    effect = effect_of(operation)
    doubtful = _doubtful(operation, effect)
    paging, unclear = recognize_paging(operation, operation_inputs, named, api, lambda: outputs.shape(operation))
    tool = ApiTool(
        key=operation.key,
        name=named.tool,
        title=_title(operation, named),
        description=_description(operation, operation_inputs, named),
        input_schema=schema,
        annotations=tool_annotations(effect, operation.method),
        handler=f"{named.module}:{named.function}",
        bindings={named.arguments[item.slot]: ArgumentLocation(item.place, item.name) for item in asked},
        fixed={named.arguments[slot]: value for slot, value in fixed.items()},
        output=outputs.of(operation),
        paging=paging,
    )
    problems = [_cut(operation, cut)] if cut else []
    problems += [doubtful] if doubtful is not None else []
    if unclear:
        problems.append(Problem("warning", UNCLEAR, operation.pointer, f"{operation.key}: {unclear}"))
    return replace(tool, tokens=estimate_tokens(tool.listed())), problems


def _fixed(operation_inputs: Inputs, schemas: dict[str, JsonSchema]) -> dict[tuple[str, str], str | int | float]:
    """Return the values of required inputs that have only one valid value, so that callers can omit these inputs."""
    # the caller, not the server, chooses one of the alternative inputs
    alternatives = {name for choice in operation_inputs.choices for name in choice}
    values = {
        item.slot: constant_value(item.schema, schemas)
        for item in operation_inputs.items
        if item.required and item.name and item.name not in alternatives
    }
    return {slot: value for slot, value in values.items() if value is not None}


def _input_schema(items: Sequence[Input], named: OperationNames, library: SharedDefinitions) -> dict[str, Any]:
    # required inputs come first; within each group, inputs are in the order of the document
    ordered = sorted(items, key=lambda item: not item.required)
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {named.arguments[item.slot]: _property(item, library) for item in ordered},
        "additionalProperties": False,
    }
    required = [named.arguments[item.slot] for item in ordered if item.required]
    if required:
        schema["required"] = required
    return schema


def _property(item: Input, library: SharedDefinitions) -> JsonSchema:
    if item.encoding is not None and item.encoding.file:
        return _file(item, library)
    cleaned = library.clean(item.schema, 0)
    if not isinstance(cleaned, dict):
        cleaned = {} if cleaned else {"not": {}}
    description = one_line(item.description, 400)
    if description and description != cleaned.get("description"):
        cleaned = {**cleaned, "description": description}
    elif not item.name and item.place in _WHOLE and not _is_described(cleaned, library):
        cleaned = {**cleaned, "description": _WHOLE[item.place]}
    if item.deprecated and not cleaned.get("deprecated"):
        cleaned = {**cleaned, "deprecated": True}
    return cleaned


def _is_described(schema: dict[str, Any], library: SharedDefinitions) -> bool:
    name = definition(schema.get("$ref"))
    target = library.definition(name) if name else {}
    return "description" in schema or (isinstance(target, dict) and "description" in target)


def _file(item: Input, library: SharedDefinitions) -> dict[str, Any]:
    cleaned = library.clean(item.schema, 0)
    own = cleaned if isinstance(cleaned, dict) else {}
    text = " ".join(filter(None, (one_line(item.description or str(own.get("description", "")), 300), _FILE_NOTE)))
    file = dict(_FILE_SCHEMA)
    kinds = [kind.strip() for kind in item.encoding.content_type.split(",")] if item.encoding is not None else []
    if len(kinds) > 1 and "*" not in "".join(kinds):
        file["properties"] = {**FILE_PROPERTIES, "content_type": {"type": "string", "enum": kinds}}
    if own.get("type") == "array":
        return {"type": "array", "description": text, "items": file}
    return {**file, "description": text}


def _title(operation: ApiOperation, named: OperationNames) -> str:
    title = one_line(operation.summary, _TITLE).rstrip(".")[:_TITLE]
    said = {singular(word) for word in words(title)} - _ARTICLES
    return title if said - {singular(word) for word in words(named.tool)} or not title.isascii() else ""


def _description(operation: ApiOperation, operation_inputs: Inputs, named: OperationNames) -> str:
    """Return a description of 1 to 1,024 characters, with purpose, requirements and deprecations."""
    notes = _notes(operation, operation_inputs, named)
    tail = "\n".join(notes)
    room = _DESCRIPTION - len(tail) - 1 if tail else _DESCRIPTION
    summary = one_line(operation.summary, 300)
    text = shorten_text(operation.description, max(room - len(summary) - 2, 80))
    if summary and text.lower().startswith(summary.lower().rstrip(".")):
        summary = ""
    if summary and summary[-1] not in ".!?…":
        summary += "."
    body = "\n".join(filter(None, (summary, text))) or f"{operation.method} {one_line(operation.path, 300)}"
    return "\n".join(filter(None, (body, tail)))[:_DESCRIPTION]


def _notes(operation: ApiOperation, operation_inputs: Inputs, named: OperationNames) -> list[str]:
    by_property = {
        item.name: named.arguments[item.slot] for item in operation_inputs.items if item.place in {"body", "form"}
    }
    notes = ["Deprecated."] if operation.deprecated else []
    sets = [" and ".join(by_property.get(name, name) for name in choice) for choice in operation_inputs.choices]
    if sets:
        more = " …" if len(sets) > _CHOICES_SHOWN else ""
        notes.append(f"Give at least one of: {'; '.join(sets[:_CHOICES_SHOWN])}{more}.")
    if operation_inputs.needed_with_body and len(by_property) > len(operation_inputs.needed_with_body):
        needed = ", ".join(by_property[name] for name in operation_inputs.needed_with_body[:_CHOICES_SHOWN])
        notes.append(f"When any of the body's values is given: {needed} too.")
    return notes


def _doubtful(operation: ApiOperation, effect: Effect) -> Problem | None:
    """Return a warning if the method is safe but the operation's text describes a change."""
    if not effect.contradicts:
        return None
    what = f"a change ({effect.verb})" if effect.verb else "a change"
    message = f"{operation.key}: the text describes {what}, which the method must not make; not marked as read-only"
    return Problem("warning", "hints-doubtful", operation.pointer, message, "change the method or the description")


_OPEN: Final = frozenset({"properties", "additionalProperties", "patternProperties", "items", "enum", "const", "$ref"})
"""Keywords that constrain a value, in addition to the combinators."""


def tool_difficulties(tool: ApiTool, operation: ApiOperation) -> list[str]:
    """Return the codes of a tool's difficulties, from `undescribed`, `free-form` and `nested`."""
    schema = tool.input_schema
    needed = [properties_of(schema)[name] for name in required_of(schema)]
    known = definitions_of(schema)
    found = {
        "undescribed": not (operation.summary or operation.description).strip(),
        "free-form": any(_is_open(one) for one in properties_of(schema).values()),
        "nested": any(_depth(one, known) > 1 for one in needed),
    }
    return [code for code, holds in found.items() if holds]


def _is_open(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return bool(schema)
    kinds = types_of(schema)
    return ("object" in kinds or not kinds) and not (_OPEN | {*COMBINATORS}) & schema.keys()


def _depth(schema: Any, known: Mapping[str, Any], seen: frozenset[str] = frozenset()) -> int:
    if not isinstance(schema, dict):
        return 0
    if name := definition(schema.get("$ref")):
        return 0 if name in seen else _depth(known.get(name), known, seen | {name})
    inner = [_depth(one, known, seen) for one in _needed(schema)]
    return max(inner, default=0) + ("properties" in schema)


def _needed(schema: Mapping[str, Any]) -> Iterator[Any]:
    properties = properties_of(schema)
    yield from (properties[name] for name in required_of(schema) if name in properties)
    yield items_schema_of(schema)
    yield from subschemas_of(schema, "allOf")
