"""Application of the user's decisions about tools, and suggestions for large APIs.

`rename` runs before `describe`, so that descriptions use the new argument names.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from pydantic import JsonValue

from mcpfactory_codegen.curation import ArgumentCuration, ArgumentMergeCuration, ToolCuration
from mcpfactory_codegen.describe.tools import ApiTool, ArgumentLocation, MergedArgument
from mcpfactory_codegen.inputs import is_valid_argument_name
from mcpfactory_codegen.ir import Api, ApiOperation, Problem
from mcpfactory_codegen.naming import Names, OperationNames
from mcpfactory_codegen.naming.tools import is_valid_tool_name
from mcpfactory_codegen.text import VERSION, dump_json, estimate_tokens, strip_controls
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.schemas.value_validation import ArgumentError
from mcpfactory_runtime.schemas.walk import definitions_of, properties_of, reachable_definitions, required_of


@dataclass(frozen=True, slots=True)
class RenamedTools:
    """The new names of tools, and the remaining decisions with the new argument names.

    `uncurated` has the original names of the tools with decisions.
    """

    names: Names
    decisions: Mapping[str, ToolCuration] = field(default_factory=dict)
    uncurated: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class CuratedTools:
    """The tools to list, and the operation keys of `hidden` tools."""

    tools: tuple[ApiTool, ...]
    hidden: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def rename(names: Names, wanted: Mapping[str, ToolCuration]) -> RenamedTools:
    """Rename tools and arguments as the user wants, and report invalid and taken names."""
    problems: list[Problem] = []
    keys = {named.tool: key for key, named in names.operations.items()}
    decisions = {keys[tool]: one for tool, one in wanted.items() if tool in keys}
    problems += [_unknown(f"tools.{tool}", "there is no such tool") for tool in wanted if tool not in keys]
    uncurated = {key: names.operations[key].tool for key in decisions}
    now = {key: one.tool for key, one in names.operations.items() if not (key in decisions and decisions[key].hide)}
    new = {key: one.rename for key, one in decisions.items() if one.rename and key in now}
    refused = {key for key, name in new.items() if not is_valid_tool_name(name)}
    final, taken = _assigned(now, {key: name for key, name in new.items() if key not in refused})
    problems += [_name(f"tools.{uncurated[key]}", new[key], "1 to 64 of [A-Za-z0-9_-]") for key in sorted(refused)]
    problems += [_name(f"tools.{uncurated[key]}", new[key], "another tool has it") for key in sorted(taken)]
    operations = dict(names.operations)
    for key, one in decisions.items():
        named = replace(operations[key], tool=final.get(key, uncurated[key]))
        operations[key], moved, found = _arguments(named, uncurated[key], one.arguments)
        moves = {was: operations[key].arguments[slot] for slot, was in names.operations[key].arguments.items()}
        merge = {
            name: each.model_copy(update={"arguments": [moves.get(old, old) for old in each.arguments]})
            for name, each in one.merge.items()
        }
        decisions[key] = one.model_copy(update={"arguments": moved, "merge": merge})
        problems += found
    return RenamedTools(replace(names, operations=operations), decisions, uncurated, tuple(problems))


def _arguments(
    named: OperationNames, tool: str, wanted: Mapping[str, ArgumentCuration]
) -> tuple[OperationNames, dict[str, ArgumentCuration], list[Problem]]:
    slots = {argument: slot for slot, argument in named.arguments.items()}
    where = f"tools.{tool}.arguments"
    problems = [_unknown(f"{where}.{name}", "the tool has no such argument") for name in wanted if name not in slots]
    known = {name: one for name, one in wanted.items() if name in slots}
    new = {name: one.rename for name, one in known.items() if one.rename}
    refused = {name for name in new if not is_valid_argument_name(new[name]) or new[name] == named.constant}
    final, taken = _assigned({name: name for name in slots}, {name: new[name] for name in new if name not in refused})
    problems += [_name(f"{where}.{name}", new[name], "a Python name of 1 to 64 characters") for name in sorted(refused)]
    problems += [_name(f"{where}.{name}", new[name], "another argument has it") for name in sorted(taken)]
    arguments = {slot: final[argument] for slot, argument in named.arguments.items()}
    return replace(named, arguments=arguments), {final[name]: one for name, one in known.items()}, problems


def _assigned(now: Mapping[str, str], wanted: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """Return the new names, and the keys whose wanted name is taken."""
    granted, refused = dict(wanted), set[str]()
    while True:
        final = {**now, **granted}
        count = Counter(name.lower() for name in final.values())
        clashing = {key for key, name in granted.items() if count[name.lower()] > 1}
        if not clashing:
            return final, refused
        refused |= clashing
        granted = {key: name for key, name in granted.items() if key not in clashing}


def curate(tools: Iterable[ApiTool], renamed: RenamedTools) -> CuratedTools:
    """Apply the remaining curation: titles, descriptions, defaults and hidden arguments."""
    shown: list[ApiTool] = []
    hidden: list[str] = []
    problems: list[Problem] = []
    for tool in tools:
        decision = renamed.decisions.get(tool.key)
        if decision is None:
            shown.append(tool)
        elif decision.hide:
            hidden.append(tool.key)
        else:
            done, found = _decided(tool, decision, f"tools.{renamed.uncurated[tool.key]}.arguments")
            shown.append(done)
            problems += found
    return CuratedTools(tuple(shown), tuple(hidden), tuple(problems))


def _decided(tool: ApiTool, decision: ToolCuration, where: str) -> tuple[ApiTool, list[Problem]]:
    properties: dict[str, Any] = dict(properties_of(tool.input_schema))
    required = required_of(tool.input_schema)
    defaults: dict[str, JsonValue] = {}
    fixed: dict[str, JsonValue] = dict(tool.fixed)
    problems: list[Problem] = []
    for name, written in decision.arguments.items():
        if name in tool.fixed:
            if any(value not in (None, tool.fixed[name]) for value in (written.fix, written.default)):
                problems.append(_default(f"{where}.{name}", f"the API accepts only {dump_json(tool.fixed[name])}"))
            continue
        one = written if written.fix is None else written.model_copy(update={"hide": True, "default": written.fix})
        usable = one.default is not None and _fits(one.default, properties[name], tool.input_schema)
        if one.default is not None and not usable:
            problems.append(_default(f"{where}.{name}", f"{dump_json(one.default)} is not a value of {name}"))
        if one.hide and name in required and not usable:
            problems.append(
                _default(f"{where}.{name}", f"{name} is required and was not hidden: it has no valid default")
            )
        elif one.hide:
            del properties[name]
            fixed |= {name: one.default} if usable else {}
        elif usable:
            defaults[name] = one.default
            properties[name] = {**properties[name], "default": one.default}
        if one.description and name in properties:
            properties[name] = {**properties[name], "description": strip_controls(one.description)}
    required = [name for name in required if name in properties and name not in defaults]
    merged, bindings = _merged(tool, decision.merge, properties, required, _MergeContext(where, defaults, problems))
    done = replace(
        tool,
        title=strip_controls(decision.title) or tool.title,
        description=strip_controls(decision.description) or tool.description,
        input_schema=_schema(tool.input_schema, properties, required),
        bindings={name: binding for name, binding in bindings.items() if name in properties},
        merged=merged,
        defaults=defaults,
        fixed=fixed,
    )
    return replace(done, tokens=estimate_tokens(done.listed())), problems


class _MergeContext(NamedTuple):
    where: str
    defaults: Mapping[str, JsonValue]
    problems: list[Problem]


def _merged(
    tool: ApiTool,
    merge: Mapping[str, ArgumentMergeCuration],
    properties: dict[str, Any],
    required: list[str],
    context: _MergeContext,
) -> tuple[dict[str, MergedArgument], dict[str, ArgumentLocation]]:
    merged: dict[str, MergedArgument] = {}
    bindings = dict(tool.bindings)
    for name, one in merge.items():
        at = f"{context.where.removesuffix('arguments')}merge.{name}"
        gone = [member for member in one.arguments if member not in properties or member in context.defaults]
        if gone or len(set(one.arguments)) < len(one.arguments):
            context.problems.append(_unknown(at, f"{', '.join(gone) or 'an argument listed twice'} cannot be merged"))
            continue
        if not is_valid_argument_name(name) or (name in properties and name not in one.arguments):
            context.problems.append(_name(at, name, "a Python name of 1 to 64 characters that no other argument has"))
            continue
        schemas = [properties.pop(member) for member in one.arguments]
        needed = any(member in required for member in one.arguments)
        required[:] = [*(other for other in required if other not in one.arguments), *([name] if needed else [])]
        if one.separator:
            text = f"{', '.join(one.arguments)}, with {one.separator!r} between."
            properties[name] = {"type": "string", "description": text}
        else:
            properties[name] = dict(schemas[0])
        if one.description:
            properties[name]["description"] = strip_controls(one.description)
        kinds = tuple(str(schema.get("type", "string")) if isinstance(schema, dict) else "string" for schema in schemas)
        merged[name] = MergedArgument(tuple(one.arguments), kinds, one.separator)
        bindings[name] = bindings[one.arguments[0]]
    return merged, bindings


def _fits(value: JsonValue, schema: Any, whole: Mapping[str, Any]) -> bool:
    one = {"type": "object", "properties": {"value": schema}, "$defs": definitions_of(whole)}
    try:
        compile_schema(one).validate({"value": value})
    except ArgumentError:
        return False
    return True


def _schema(old: Mapping[str, Any], properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    ordered = sorted(properties, key=lambda name: name not in required)
    schema = {key: value for key, value in old.items() if key not in {"required", "$defs"}}
    schema["properties"] = {name: properties[name] for name in ordered}
    if required:
        schema["required"] = [name for name in ordered if name in required]
    definitions = definitions_of(old)
    if used := reachable_definitions([schema], definitions):
        schema["$defs"] = {name: value for name, value in definitions.items() if name in used}
    return schema


def check_pinned_names(names: Names, wanted: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return a problem for each entry of `[names]` that has no effect."""
    problems = []
    for key, name in wanted.items():
        named = names.operations.get(key)
        if named is None:
            problems.append(_unknown(f"names.{key}", "there is no tool of this operation"))
        elif named.tool != name:
            problems.append(_name(f"names.{key}", name, "1 to 64 of [A-Za-z0-9_-], which no other tool has"))
    return tuple(problems)


def _unknown(where: str, what: str) -> Problem:
    hint = "mcpfactory inspect lists the names; the API may have removed or renamed this one"
    return Problem("warning", "curation-unknown", where, f"[{where}] of mcpfactory.toml has no effect: {what}", hint)


def _name(where: str, name: str, why: str) -> Problem:
    message = f"[{where}] of mcpfactory.toml: the name {name!r} is not used: {why}"
    return Problem("warning", "curation-name", where, message, "choose another name, or leave out rename")


def _default(where: str, what: str) -> Problem:
    hint = "give a default that the API accepts, or leave out hide"
    return Problem("warning", "curation-default", where, f"[{where}] of mcpfactory.toml: {what}", hint)


BOUND: Final = 20_000
"""Maximum tokens of a tool list before groups are suggested. The limit is a tenth of common context windows."""

_MOST: Final = 15
_SHARE: Final = 0.9  # maximum share of all tools in a suggested group; a larger group is not a useful selection


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """A group of related tools: name, number of tools, tokens, and the option that selects the group."""

    name: str
    tools: int
    tokens: int
    flag: str


def suggest_tool_groups(api: Api, tools: Sequence[ApiTool], bound: int = BOUND) -> tuple[ToolGroup, ...]:
    """Return groups of tools, largest first.

    The groups are the document's tags if the tags cover at least half of the tools. If the tags cover fewer tools, the
    groups are path prefixes. Tools within `bound` tokens need no groups.
    """
    if sum(tool.tokens for tool in tools) <= bound:
        return ()
    cost = {tool.key: tool.tokens for tool in tools}
    operations = [operation for operation in api.operations if operation.key in cost]
    prefixes = _prefixes(operations)
    for names, flag in (
        (lambda operation: operation.tags, lambda tag: f"--include-tag {shlex.quote(tag)}"),
        (lambda operation: prefixes[operation.key], lambda path: f"--include-path {shlex.quote(f'{path}/**')}"),
    ):
        groups = _groups(operations, cost, names, flag)
        if len(groups) > 1 and sum(group.tools for group in groups) >= len(operations) / 2:
            return tuple(groups[:_MOST])
    return ()


def _groups(
    operations: Iterable[ApiOperation],
    cost: Mapping[str, int],
    names: Callable[[ApiOperation], Iterable[str]],
    flag: Callable[[str], str],
) -> list[ToolGroup]:
    count: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for operation in operations:
        for name in names(operation):
            count[name] += 1
            tokens[name] += cost[operation.key]
    found = [
        ToolGroup(name, count[name], tokens[name], flag(name)) for name in count if count[name] < _SHARE * len(cost)
    ]
    return sorted(found, key=lambda group: (-group.tokens, group.name))


def _prefixes(operations: Sequence[ApiOperation]) -> dict[str, tuple[str, ...]]:
    """Map each path to its prefix up to the first literal segment that splits the paths into groups."""
    paths = {operation.key: operation.path.strip("/").split("/") for operation in operations}
    sharing = Counter("/".join(path[:end]) for path in paths.values() for end in range(1, len(path) + 1))
    found: dict[str, tuple[str, ...]] = {}
    for key, path in paths.items():
        beginnings = (
            "/".join(path[:end])
            for end, segment in enumerate(path, 1)
            if not segment.startswith("{") and not VERSION.match(segment)
        )
        dividing = next((one for one in beginnings if sharing[one] < _SHARE * len(paths)), None)
        found[key] = () if dividing is None else (f"/{dividing}",)
    return found
