"""Every name that generated code needs, chosen in one pass over the whole API.

Rules, in this order:
1. Total and unique: every operation, argument, module and variable has a name, and no two share one.
2. A name depends on its own operation (operationId, method, path, summary) and on those that would have had the same name;
   never on the order of the document, and never on a counter. Reordering, adding or renaming elsewhere changes nothing.
   One that is too long depends on how common its words are in the API, too.
3. Nobody keeps a name by having come first: of operations that would share one, that one gets it whose operationId says
   just that, or whose path is the beginning of the others'. The others get longer ones, from words of their own
   path, their method, and in the end a digest of method and path.
4. `pinned` names win: a server that was published keeps the names that its callers know.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from mcpfactory_codegen.inputs import inputs
from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.naming.arguments import may_be_argument, name_arguments
from mcpfactory_codegen.naming.labels import name_labelled_modules, name_labelled_tools
from mcpfactory_codegen.naming.modules import MOST_OPERATIONS, name_modules
from mcpfactory_codegen.naming.tools import TOOL_LIMIT, may_be_tool, name_tools
from mcpfactory_codegen.naming.variables import environment_parts, name_variables, variable_prefix
from mcpfactory_codegen.text import identifier, snake

__all__ = [
    "MOST_OPERATIONS",
    "TOOL_LIMIT",
    "Names",
    "OperationNames",
    "environment_parts",
    "may_be_argument",
    "may_be_tool",
    "name_api",
    "name_arguments",
    "name_modules",
    "name_tools",
    "name_variables",
    "variable_prefix",
]


# Names that mean something else inside a generated module.
_RESERVED_FUNCTIONS: Final = frozenset(
    {"api", "str", "int", "float", "bool", "list", "dict", "tuple", "type", "print", "object"}
)
_RESERVED_CONSTANTS: Final = frozenset({"UNSET"})


@dataclass(frozen=True, slots=True)
class OperationNames:
    """The names of one operation. `arguments` maps (place, wire name) to the tool's argument."""

    tool: str
    module: str
    function: str
    constant: str
    arguments: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Names:
    """`operations` by `Operation.key`; `variables`: the environment variables of each security scheme, by its name.

    `prefix` leads them all, and those of the server's settings.
    """

    server: str
    operations: Mapping[str, OperationNames]
    variables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    prefix: str = ""


def name_api(api: Api, *, server: str = "", pinned: Mapping[str, str] | None = None) -> Names:
    """Name everything in `api`.

    `server` leads the names of environment variables ("" takes the API's title); `pinned` maps operation keys
    ("GET /books/{id}") to tool names that must stay. A pinned name that no tool may have is ignored.
    """
    operations = _unique(api.operations)
    tools = name_labelled_tools(operations, pinned or {})
    modules = name_labelled_modules(operations)
    functions = _functions(tools, modules)
    named = {}
    for operation in operations:
        key = operation.key
        named[key] = OperationNames(
            tool=tools[key],
            module=modules[key],
            function=functions[key],
            constant=_constant(functions[key]),
            arguments=name_arguments(inputs(operation, api).items, [_constant(functions[key])]),
        )
    server = server or snake(api.title).replace("_", "-") or "api"
    return Names(server, named, name_variables(api.security_schemes, server), variable_prefix(server))


def _unique(operations: Iterable[ApiOperation]) -> tuple[ApiOperation, ...]:
    """Return the first operation of each identity: a second one cannot be called apart from it."""
    return tuple({operation.key: operation for operation in reversed(tuple(operations))}.values())[::-1]


def _functions(tools: Mapping[str, str], modules: Mapping[str, str]) -> dict[str, str]:
    """Return a Python function for each tool: its name made an identifier, unique within its module."""
    plain = {key: identifier(tool, prefix="tool", reserved=_RESERVED_FUNCTIONS) for key, tool in tools.items()}
    claims: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key, name in plain.items():
        claims[modules[key], name].append(key)
    for (_, name), keys in claims.items():
        if len(keys) > 1:  # only names that were pinned differ in more than their identifier shows
            for key in keys:
                plain[key] = name if tools[key] == name else identifier(f"{name} {key}", prefix="tool")
    return plain


def _constant(function: str) -> str:
    name = function.upper()
    return name + "_" if name in _RESERVED_CONSTANTS else name
