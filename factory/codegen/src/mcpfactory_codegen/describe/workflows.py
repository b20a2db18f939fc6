"""Workflows: several tools combined into one tool by `[workflows.<name>]` in `mcpfactory.toml`. Pure.

In `arguments` and `result`, a string that starts with `$` is a JSONPath into `inputs` and earlier results. `$$` is a
literal `$`. A JSONPath can contain names, indexes and `[*]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from mcpfactory_codegen.curation import WorkflowConfig
from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.inputs import is_valid_argument_name
from mcpfactory_codegen.ir import Problem
from mcpfactory_codegen.text import strip_controls
from mcpfactory_runtime.schemas.references import UnusableSchemaError
from mcpfactory_runtime.schemas.validation import compile_schema

EACH: Final = "*"
_TOKEN: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\['([^'\\]*)'\]|\[(-?\d{1,6})\]|(\[\*\]|\.\*)")
_TAKEN: Final = frozenset({"ctx", "step", "pick", "inputs", "Any", "Context", "EACH", "UNSET", "Unset"})


@dataclass(frozen=True, slots=True)
class Workflow:
    """A valid workflow with its Tool object of tools/list."""

    name: str
    config: WorkflowConfig
    listed: dict[str, Any]


def parse_json_path(text: str) -> tuple[str | int, ...] | None:
    """Return the keys of a JSONPath, with EACH for a wildcard, or None for an unsupported JSONPath."""
    keys: list[str | int] = []
    at = 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            return None
        name, quoted, index, _ = found.groups()
        keys.append(
            int(index) if index is not None else name if name is not None else EACH if quoted is None else quoted
        )
        at = found.end()
    return tuple(keys) if keys and isinstance(keys[0], str) else None


def check_workflows(
    configs: Mapping[str, WorkflowConfig], tools: Sequence[ApiTool]
) -> tuple[tuple[Workflow, ...], tuple[Problem, ...]]:
    """Return the valid workflows, and a problem for each invalid workflow."""
    known = {tool.name: tool for tool in tools}
    usable: list[Workflow] = []
    problems: list[Problem] = []
    for name, config in configs.items():
        wrong = _wrong(name, config, known)
        if wrong:
            where = f"workflows.{name}"
            hint = "mcpfactory inspect lists tools and arguments; see docs/reference/generated-server.md for workflows"
            message = f"[{where}] of mcpfactory.toml was left out: {wrong}"
            problems.append(Problem("error", "workflow-invalid", where, message, hint))
        else:
            usable.append(Workflow(name, config, _listed(name, config, known)))
    return tuple(usable), tuple(problems)


def _wrong(name: str, config: WorkflowConfig, known: Mapping[str, ApiTool]) -> str:
    if not is_valid_argument_name(name) or name in _TAKEN or name.lower() in {one.lower() for one in known}:
        return "its name must be a Python name of 1 to 64 characters that no tool has"
    names = [*config.inputs, *(step.id for step in config.steps)]
    for one in names:
        if not is_valid_argument_name(one) or one in _TAKEN or names.count(one) > 1 or one == name:
            return f"{one!r} is not a valid name of an input or a step: use unique Python names"
    for one, schema in config.inputs.items():
        if isinstance(schema.get("default"), dict | list) or not _usable(schema):
            return f"the schema of the input {one!r} must have no references, and only a scalar default"
    if unknown := sorted(set(config.optional) - set(config.inputs)):
        return f"optional contains {unknown[0]!r}, which is not an input"
    answered: set[str] = set()
    for step in config.steps:
        tool = known.get(step.tool)
        if tool is None:
            return f"the step {step.id!r} calls the unknown tool {step.tool!r}"
        properties = tool.input_schema["properties"]
        if unknown := sorted(set(step.arguments) - set(properties)):
            return f"the step {step.id!r} passes the unknown argument {unknown[0]!r} to {step.tool}"
        if missing := [one for one in tool.input_schema.get("required", ()) if one not in step.arguments]:
            return f"the step {step.id!r} lacks the required argument {missing[0]!r} of {step.tool}"
        if wrong := _wrong_paths(dict(step.arguments), config, answered):
            return f"the step {step.id!r}: {wrong}"
        answered.add(step.id)
    return _wrong_paths(config.result, config, answered)


def _usable(schema: Mapping[str, Any]) -> bool:
    try:
        compile_schema({"type": "object", "properties": {"value": schema}})
    except UnusableSchemaError:
        return False
    return True


def _wrong_paths(value: JsonValue, config: WorkflowConfig, answered: set[str]) -> str:
    if isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return next((wrong for one in inside if (wrong := _wrong_paths(one, config, answered))), "")
    if not isinstance(value, str) or not value.startswith("$") or value.startswith("$$"):
        return ""
    keys = parse_json_path(value)
    if keys is None:
        return (
            f"{value!r} is not supported: use names, indexes and [*], such as $.found.items[0].id; $$ for a literal $"
        )
    if keys[0] == "inputs":
        return "" if len(keys) > 1 and keys[1] in config.inputs else f"unknown input in {value!r}"
    return "" if keys[0] in answered else f"{value!r} does not refer to an earlier step"


def _listed(name: str, config: WorkflowConfig, known: Mapping[str, ApiTool]) -> dict[str, Any]:
    """Return the Tool object of a workflow.

    A workflow is read-only if all steps are read-only. A workflow is destructive if a write step may be destructive.
    """
    required = [one for one, schema in config.inputs.items() if "default" not in schema and one not in config.optional]
    schema: dict[str, Any] = {"type": "object", "properties": dict(config.inputs), "additionalProperties": False}
    hints = [known[step.tool].annotations for step in config.steps]
    reads = all(one.get("readOnlyHint") is True for one in hints)
    annotations: dict[str, Any] = {"readOnlyHint": reads, "openWorldHint": True}
    if not reads:
        annotations["destructiveHint"] = any(
            one.get("destructiveHint", True) is not False for one in hints if one.get("readOnlyHint") is not True
        )
    return {
        "name": name,
        "title": strip_controls(config.title) or name.replace("_", " ").capitalize(),
        "description": strip_controls(config.description),
        "inputSchema": schema | ({"required": required} if required else {}),
        "annotations": annotations,
    }
