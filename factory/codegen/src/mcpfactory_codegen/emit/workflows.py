"""Workflows as Python: a function for each, a line for each step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mcpfactory_codegen.describe.workflows import EACH, Workflow, path_of
from mcpfactory_codegen.emit.python import annotation, call, docstring, literal

__all__ = ["HANDLERS", "rows", "workflows_module"]

HANDLERS: Final = "workflows"
"""The module below `_generated`."""
_OWNER: Final = "Made by mcpfactory from mcpfactory.toml and rewritten whole: change [workflows.<name>] there."


def rows(workflows: Sequence[Workflow]) -> list[dict[str, Any]]:
    """Their rows of manifest.json; `steps` marks them."""
    return [
        {
            **one.listed,
            "handler": f"{HANDLERS}:{one.name}",
            "operation": "",
            "steps": [step.tool for step in one.config.steps],
        }
        for one in workflows
    ]


def workflows_module(workflows: Sequence[Workflow]) -> str:
    """Return the module's text."""
    functions = "\n\n\n".join(map(_function, workflows))
    helpers = [
        name
        for name in ("EACH", "pick", "step")
        if name == "step" or f"{name}(" in functions or f"{name}," in functions or f"{name})" in functions
    ]
    unset = "from mcpfactory_runtime.upstream import UNSET, Unset\n" if "= UNSET" in functions else ""
    return (
        f"{docstring(['Tools that are made of several others.', _OWNER])}\n\n"
        "# ruff: noqa: A002, D301, D402, D403, E501, RUF100\n\n"
        "from __future__ import annotations\n\nfrom typing import Any\n\n"
        "from mcpfactory_runtime import Context\n"
        f"from mcpfactory_runtime.server.workflow import {', '.join(helpers)}\n{unset}\n\n{functions}\n"
    )


def _function(workflow: Workflow) -> str:
    config = workflow.config
    required = workflow.listed["inputSchema"].get("required", [])
    signature = ["ctx: Context"]
    for name in sorted(config.inputs, key=lambda name: name not in required):
        schema: Any = config.inputs[name]
        kind = annotation(schema, {})
        if name in required:
            signature.append(f"{name}: {kind}")
        elif "default" in schema and not isinstance(schema["default"], dict | list):
            signature.append(f"{name}: {kind} = {literal(schema['default'])}")
        else:
            signature.append(f"{name}: {kind} | Unset = UNSET" if kind != "Any" else f"{name}: Any = UNSET")
    lines = []
    last = config.steps[-1].id
    for step in config.steps:
        arguments = {name: _value(value) for name, value in step.arguments.items()}
        lines.append(f"    {step.id} = await {call('step', 'ctx', literal(step.tool), **arguments)}")
    result = last if config.result is None else _value(config.result)
    about = [f"    {name}: {one.get('description', 'see the list.')}" for name, one in config.inputs.items()]
    paragraphs = [str(config.description), "\n".join(["Args:", "    ctx: the call.", *about])]
    body = "\n".join(lines)
    return f"async def {workflow.name}(*, {', '.join(signature)}) -> Any:\n{docstring(paragraphs, '    ')}\n{body}\n    return {result}"


def _value(value: Any) -> str:
    """Return an argument as source code: paths become variables and picks, everything else is a literal."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{literal(key)}: {_value(one)}' for key, one in value.items())}}}"
    if not isinstance(value, str) or not value.startswith("$"):
        return literal(value)
    if value.startswith("$$"):
        return literal(value[1:])
    keys = path_of(value)
    assert keys is not None
    root, rest = (str(keys[1]), keys[2:]) if keys[0] == "inputs" else (str(keys[0]), keys[1:])
    return call("pick", root, *("EACH" if key == EACH else literal(key) for key in rest)) if rest else root
