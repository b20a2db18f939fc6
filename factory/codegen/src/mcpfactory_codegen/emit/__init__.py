"""Render the generated files of a server from the IR, its names and its tools.

Nothing from an API document reaches Python except as a literal or inside an escaped docstring.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field
from dataclasses import fields as fields_of
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.describe.workflows import EACH, Workflow, path_of
from mcpfactory_codegen.effects import SAFE_METHODS, effect_of, is_idempotent
from mcpfactory_codegen.emit.python import annotation, call, docstring, literal, sequence
from mcpfactory_codegen.inputs import Input, inputs
from mcpfactory_codegen.ir import (
    Api,
    ApiBody,
    ApiOperation,
    ApiSecurityScheme,
    Encoding,
    split_label,
)
from mcpfactory_codegen.naming import Names, OperationNames
from mcpfactory_codegen.text import json_lines, one_line, shorten_text
from mcpfactory_runtime.schemas.walk import definitions_of, properties_of, required_of
from mcpfactory_runtime.server.results import MAX_TEXT
from mcpfactory_runtime.upstream.encoding import is_json, media_type
from mcpfactory_runtime.upstream.operation import Xml

HANDLERS: Final = "workflows"
"""The module below `_generated`."""
_WORKFLOW_OWNER: Final = "Made by mcpfactory from mcpfactory.toml and rewritten whole: change [workflows.<name>] there."


def rows(workflows: Sequence[Workflow]) -> list[dict[str, Any]]:
    """Return their rows of manifest.json, which have `steps`."""
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
    helpers = [name for name in ("EACH", "pick", "step") if name == "step" or _uses(functions, name)]
    unset = "from mcpfactory_runtime.upstream import UNSET, Unset\n" if _uses(functions, "UNSET") else ""
    return (
        f"{docstring(['Tools that are made of several others.', _WORKFLOW_OWNER])}\n\n"
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


_INSTRUCTIONS: Final = 800
_OWNER: Final = "Made by mcpfactory from the API document and rewritten whole: changes belong in server.py."
# The API's own argument names and long sentences violate these rules.
_NOQA: Final = "# Argument names, and sentences longer than a line, are the API's own.\n# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100\n"


@dataclass(frozen=True, slots=True)
class Options:
    """Generator settings that the document does not contain.

    These are the server's name, its import package, its version and the size limit of a response. `offer` is copied
    into the manifest. `workflows` are the tools that combine others. `private` are the private hosts that the user
    allows.
    """

    server: str
    package: str
    version: str = "0.1.0"
    max_text: int = MAX_TEXT
    offer: Mapping[str, Any] = field(default_factory=dict)
    workflows: tuple[Workflow, ...] = ()
    private: tuple[str, ...] = ()


def emit(api: Api, names: Names, tools: Sequence[ApiTool], options: Options) -> dict[str, str]:
    """Return the machine-owned files by path. Python in them is valid but not formatted yet."""
    generated = f"src/{options.package}/_generated"
    files = {
        f"{generated}/__init__.py": f"{docstring(['What mcpfactory made from the API document.', _OWNER])}\n",
        f"{generated}/manifest.json": manifest(api, names, tools, options),
        f"{generated}/api.py": _api_module(api, names, options),
        f"{generated}/tools/__init__.py": f"{docstring(['One module for each group of operations.', _OWNER])}\n",
    }
    groups: dict[str, list[Function]] = defaultdict(list)
    operations = api.by_key()
    for tool in tools:
        operation = operations[tool.key]
        named = names.operations[tool.key]
        groups[named.module].append(Function(operation, named, tool, inputs(operation, api).items))
    for module, functions in sorted(groups.items()):
        files[f"{generated}/tools/{module}.py"] = _tools_module(api, functions)
    if options.workflows:
        files[f"{generated}/{HANDLERS}.py"] = workflows_module(options.workflows)
    return files


def manifest(api: Api, names: Names, tools: Sequence[ApiTool], options: Options) -> str:
    """Return manifest.json: the server, and its tools as tools/list shows them, one a line, with their handlers."""
    server = {
        "name": options.server,
        "version": options.version,
        "title": one_line(api.title, 100) or options.server,
        "instructions": shorten_text(api.description, _INSTRUCTIONS),
    }
    listed = [{**tool.listed(), "handler": tool.handler, "operation": split_label(tool.key)[1]} for tool in tools]
    if options.workflows:
        listed += rows(options.workflows)
    offer = dict(options.offer)
    if api.own_servers:  # the notice at the start needs them before api.py is loaded
        own = {one.name: one.url for one in api.own_servers}
        offer["addresses"] = {"prefix": names.prefix, "base_url": api.base_url, "servers": own}
    workflows = [one.name for one in options.workflows]
    if workflows and "profiles" in offer:  # every profile has the workflows, because the user wrote both
        offer["profiles"] = {name: [*members, *workflows] for name, members in offer["profiles"].items()}
    return json_lines("tools", listed, {"manifest": 1, "server": server, **offer})


def _api_module(api: Api, names: Names, options: Options) -> str:
    schemes = "".join(f"    {_scheme(scheme, api, names)},\n" for scheme in api.security_schemes)
    oauth = any(scheme.flows for scheme in api.security_schemes)
    more = f", name={literal(options.server)}" if oauth else ""  # the hint about logging in needs the name
    more += f", prefix={literal(names.prefix)}"
    more += f", private={literal(options.private)}" if options.private else ""
    title = one_line(api.title, 80) or "the API"
    servers = "".join(f"    {call('ServerAddress', literal(one.name), literal(one.url))},\n" for one in api.own_servers)
    used = (("OAuthFlow", oauth), ("SecurityScheme", schemes), ("ServerAddress", servers), ("Upstream", True))
    imported = ", ".join(name for name, needed in used if needed)
    more = f", servers=SERVERS{more}" if servers else more
    bounds = f", max_text={options.max_text}" if options.max_text != MAX_TEXT else ""
    return "\n".join(
        [
            docstring([f"How {title} is reached.", _OWNER]) + "\n",
            "from __future__ import annotations\n",
            "from functools import cache\n",
            f"from mcpfactory_runtime.upstream import {imported}\n",
            f"BASE_URL = {literal(api.base_url)}",
            f"SCHEMES = (\n{schemes})\n" if schemes else "SCHEMES = ()\n",
            *([f"SERVERS = (\n{servers})\n"] if servers else []),
            "",
            "@cache",
            "def upstream() -> Upstream:",
            docstring(
                [
                    f"The connection that all tools share; credentials and {names.prefix}_BASE_URL are in the environment."
                ],
                "    ",
            ),
            f"    return Upstream(BASE_URL, SCHEMES{more}{bounds})",
            "",
        ]
    )


def _scheme(scheme: ApiSecurityScheme, api: Api, names: Names) -> str:
    keywords = {}
    if scheme.kind == "apiKey":
        keywords = {"place": literal(scheme.place), "parameter": literal(scheme.parameter)}
    if scheme.service:
        keywords["service"] = literal(scheme.service)
    if scheme.flows:
        keywords["flows"] = sequence([call("OAuthFlow", literal(flow.grant), **_stated(flow)) for flow in scheme.flows])
        asked = {one for operation in api.operations for one in dict(operation.scopes).get(scheme.name, ())}
        keywords["scopes"] = literal(tuple(sorted(asked)))
    variables = literal(names.variables[scheme.name])
    return call("SecurityScheme", literal(scheme.name), literal(scheme.kind), variables, **keywords)


def _stated(record: Any, *omitted: str) -> dict[str, str]:
    """Return the optional fields of a record that differ from their defaults, as source code."""
    optional = [one for one in fields_of(record) if one.default is not MISSING and one.name not in omitted]
    given = {one.name: getattr(record, one.name) for one in optional if getattr(record, one.name) != one.default}
    return {name: literal(value) for name, value in given.items()}


def _tools_module(api: Api, functions: Sequence[Function]) -> str:
    tag = min((tag for one in functions for tag in one.operation.tags[:1]), default="")
    about = one_line(api.tag_descriptions.get(tag, "") or tag, 90).rstrip(".")
    constants = [constant(one) for one in functions]
    defined = [function(one) for one in functions]
    text = "\n\n\n".join(["\n".join(constants), *defined])
    typing = [name for name in ("Any", "Literal") if _uses(text, name)]
    upstream = [
        name
        for name in ("UNSET", "Body", "Field", "Operation", "Paging", "Parameter", "Unset", "Upstream", "Xml", "piece")
        if name == "Upstream" or _uses(text, name)
    ]
    title = one_line(api.title, 60) or "the API"
    lines = [
        docstring([f"{about}." if about else f"Operations of {title}.", _OWNER]),
        _NOQA,
        "from __future__ import annotations\n",
        f"from typing import {', '.join(typing)}\n" if typing else "",
        "from mcpfactory_runtime import ToolResult",
        f"from mcpfactory_runtime.upstream import {', '.join(upstream)}\n",
        text,
        "",
    ]
    return "\n".join(line for line in lines if line)


_MARKERS: Final = {
    "Any": ("Any]", "Any |", ": Any"),
    "EACH": ("EACH,", "EACH)"),
    "Literal": ("Literal[",),
    "UNSET": ("= UNSET",),
    "Unset": ("| Unset",),
    "piece": (": piece(",),
}
"""Forms in which generated code uses a name; other names are called."""


def _uses(text: str, name: str) -> bool:
    return any(marker in text for marker in _MARKERS.get(name, (f"{name}(",)))


# --- one operation as Python: the record that binds it, and the function that a tool call ends in ---


_JSON: Final = "application/json"
_REPEATED: Final = SAFE_METHODS | {"PUT", "DELETE"}
"""Methods that the runtime retries by default (RFC 9110 §9.2.2)."""


@dataclass(frozen=True, slots=True)
class Function:
    """Data needed to write the function of one operation."""

    operation: ApiOperation
    named: OperationNames
    tool: ApiTool
    items: Sequence[Input]


def constant(one: Function) -> str:
    """Return the record of an operation: `GET_BOOK = Operation(…)`."""
    operation = one.operation
    keywords: dict[str, str] = {}
    parameters = [item for item in one.items if item.parameter is not None]
    if parameters:
        keywords["parameters"] = sequence([_parameter(item, one.named) for item in parameters])
    if operation.body is not None:
        fields = [item for item in one.items if item.parameter is None]
        keywords["body"] = _body(operation.body, fields, one.named)
    if operation.security:
        keywords["security"] = literal(operation.security)
    if operation.scopes:
        keywords["scopes"] = literal(operation.scopes)
    if operation.server:
        keywords["server"] = literal(operation.server)
    if (accept := accepted(operation, structured=one.tool.output.schema is not None)) != _JSON:
        keywords["accept"] = literal(accept)
    paging = one.tool.paging
    if paging is not None and paging.argument in properties_of(one.tool.input_schema):  # a hidden argument cannot page
        keywords["paging"] = call("Paging", literal(paging.kind), literal(paging.argument), **_stated(paging))
    if one.tool.select:
        keywords["select"] = literal(one.tool.select)
    if lists := next((response.lists for response in operation.responses if response.content_type == accept), ()):
        keywords["lists"] = literal(lists)
    if operation.method in _REPEATED and not is_idempotent(effect_of(operation), operation.method):
        keywords["once"] = "True"
    record = call("Operation", literal(operation.method), literal(operation.path), **keywords)
    return f"{one.named.constant} = {record}"


def accepted(operation: ApiOperation, *, structured: bool = False) -> str:
    """Return the Accept header: JSON if the first success has it, else its media type, with JSON if others have it."""
    success = sorted((one for one in operation.responses if one.status.startswith("2")), key=lambda one: one.status)
    typed = [one for one in success if one.content_type]
    first = [one.content_type for one in typed if one.status == typed[0].status]
    if not first or _JSON in map(media_type, first):
        return _JSON
    other = structured and not is_json(first[0])
    return (
        f"{first[0]}, {_JSON};q=0.9"
        if other or any(media_type(one.content_type) == _JSON for one in typed)
        else first[0]
    )


_NOT_SENT: Final = ("required", "description", "deprecated", "example")
"""Fields of a parameter that the generated code does not need."""


def _parameter(item: Input, named: OperationNames) -> str:
    parameter = item.parameter
    assert parameter is not None
    texts = [literal(text) for text in (named.arguments[item.slot], parameter.place, parameter.name)]
    return call("Parameter", *texts, **_stated(parameter, *_NOT_SENT))


def _body(body: ApiBody, fields: Sequence[Input], named: OperationNames) -> str:
    keywords = {"required": "True"} if body.required else {}
    if body.xml is not None:
        keywords["xml"] = _xml(body.xml)
    if body.shapes:
        keywords["shapes"] = sequence([sequence([literal(name), _xml(shape)]) for name, shape in body.shapes])
    if body.graphql:
        keywords["graphql"] = literal(body.graphql)
    return call("Body", literal(body.content_type), sequence([_field(item, named) for item in fields]), **keywords)


def _xml(xml: Xml) -> str:
    keywords = _stated(xml, "members", "items")
    if xml.members:
        keywords["members"] = sequence([sequence([literal(name), _xml(member)]) for name, member in xml.members])
    if xml.items is not None:
        keywords["items"] = _xml(xml.items)
    return call("Xml", **keywords)


def _field(item: Input, named: OperationNames) -> str:
    encoding = item.encoding or Encoding()
    argument = literal(named.arguments[item.slot])
    if item.name:
        return call("Field", argument, literal((item.name,)), **_stated(encoding))
    return call("Field", argument, **_stated(Encoding(file=encoding.file)))


def function(one: Function) -> str:
    """Return the function of an operation: `async def get_book(api, /, *, …) -> ToolResult`."""
    properties = properties_of(one.tool.input_schema)
    required = required_of(one.tool.input_schema)
    defs = definitions_of(one.tool.input_schema)
    signature = ["api: Upstream", "/"]
    if properties:
        signature.append("*")
    for name, schema in properties.items():
        kind = annotation(schema, defs)
        if name in required:
            signature.append(f"{name}: {kind}")
        else:
            signature.append(f"{name}: {_optional(kind)} = UNSET")
    entries = [entry for name in properties for entry in _entries(name, one.tool)]
    entries += [f"{literal(name)}: {literal(value)}" for name, value in one.tool.fixed.items()]
    return (
        f"async def {one.named.function}({', '.join(signature)}) -> ToolResult:\n"
        f"{_docstring(one, properties)}\n"
        f"    return await api.send({one.named.constant}, {{{', '.join(entries)}}})"
    )


def _entries(name: str, tool: ApiTool) -> list[str]:
    """Return the entries sent for an argument: itself, or each of the arguments merged into it."""
    merged = tool.merged.get(name)
    if merged is None:
        value = f"{literal(tool.defaults[name])} if {name} is UNSET else {name}" if name in tool.defaults else name
        return [f"{literal(name)}: {value}"]
    if not merged.separator:
        return [f"{literal(member)}: {name}" for member in merged.members]
    count, cut = len(merged.members), literal(merged.separator)
    return [
        f"{literal(member)}: {call('piece', name, cut, str(index), str(count), literal(kind))}"
        for index, (member, kind) in enumerate(zip(merged.members, merged.kinds, strict=True))
    ]


def _optional(kind: str) -> str:
    if kind == "Any":
        return kind
    return f"{kind.removesuffix(' | None')} | Unset | None" if kind.endswith(" | None") else f"{kind} | Unset"


def _docstring(one: Function, properties: Mapping[str, Any]) -> str:
    operation = one.operation
    summary = one_line(operation.summary or one.tool.description, 90).rstrip(".")
    paragraphs = [f"{summary}.", f"{operation.method} {one_line(operation.path, 300)}"]
    if operation.deprecated:
        paragraphs.append("Deprecated.")
    if properties:
        described = [f"    {name}: {_about(name, schema, one.tool)}" for name, schema in properties.items()]
        paragraphs.append("\n".join(["Args:", "    api: the connection that the tools share.", *described]))
    return docstring(paragraphs, "    ")


def _about(name: str, schema: Any, tool: ApiTool) -> str:
    text = one_line(str(schema.get("description", "")), 160) if isinstance(schema, dict) else ""
    if text:
        return text
    binding = tool.bindings[name]
    where = "headers" if binding.place == "header" else binding.place
    return f"`{one_line(binding.name, 80)}` in the {where}." if binding.name else f"the whole {where}."
