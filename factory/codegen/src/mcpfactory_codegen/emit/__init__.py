"""From the IR, its names and its tools to the machine's files of a server: pure, `{path: text}`.

Nothing from an API document reaches Python except as a literal or inside an escaped docstring.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_codegen.describe.tools import ApiTool
from mcpfactory_codegen.describe.workflows import Workflow
from mcpfactory_codegen.emit.functions import Function, constant, function
from mcpfactory_codegen.emit.python import call, docstring, literal, sequence
from mcpfactory_codegen.emit.workflows import HANDLERS, rows, workflows_module
from mcpfactory_codegen.inputs import inputs
from mcpfactory_codegen.ir import Api, ApiOAuthFlow, ApiSecurityScheme, split_label
from mcpfactory_codegen.naming import Names
from mcpfactory_codegen.text import fit, json_lines, one_line
from mcpfactory_runtime.upstream.settings import MAX_TEXT

__all__ = ["Options", "emit"]


_INSTRUCTIONS: Final = 800
_OWNER: Final = "Made by mcpfactory from the API document and rewritten whole: changes belong in server.py."
# Arguments are called as the API calls them, and its sentences are as long as they are.
_NOQA: Final = "# Argument names, and sentences longer than a line, are the API's own.\n# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100\n"


@dataclass(frozen=True, slots=True)
class Options:
    """What the document does not say: the server's name, its import package and its version, and the bound of one answer.

    `offer` is copied into the manifest. `workflows` are the tools that consist of others. `private` are the hosts that
    the person permits although they are private.
    """

    server: str
    package: str
    version: str = "0.1.0"
    max_text: int = MAX_TEXT
    offer: Mapping[str, Any] = field(default_factory=dict)
    workflows: tuple[Workflow, ...] = ()
    private: tuple[str, ...] = ()


def emit(api: Api, names: Names, tools: Sequence[ApiTool], options: Options) -> dict[str, str]:
    """Return the machine's files, by path below the server's folder. Python in them is valid but not yet formatted."""
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
    """manifest.json: the server, and its tools as tools/list shows them, one a line, with their handlers."""
    server = {
        "name": options.server,
        "version": options.version,
        "title": one_line(api.title, 100) or options.server,
        "instructions": fit(api.description, _INSTRUCTIONS),
    }
    listed = [{**tool.listed(), "handler": tool.handler, "operation": split_label(tool.key)[1]} for tool in tools]
    if options.workflows:
        listed += rows(options.workflows)
    offer = dict(options.offer)
    if api.own_servers:  # for the notice at the start, where api.py is not loaded yet
        own = {one.name: one.url for one in api.own_servers}
        offer["addresses"] = {"prefix": names.prefix, "base_url": api.base_url, "servers": own}
    workflows = [one.name for one in options.workflows]
    if workflows and "profiles" in offer:  # what the person wrote is in all that the person chose
        offer["profiles"] = {name: [*members, *workflows] for name, members in offer["profiles"].items()}
    return json_lines("tools", listed, {"manifest": 1, "server": server, **offer})


def _api_module(api: Api, names: Names, options: Options) -> str:
    schemes = "".join(f"    {_scheme(scheme, api, names)},\n" for scheme in api.security_schemes)
    oauth = any(scheme.flows for scheme in api.security_schemes)
    more = f", name={literal(options.server)}" if oauth else ""  # for the hint that shows how to log in
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
        keywords["flows"] = sequence([_flow(flow) for flow in scheme.flows])
        asked = {one for operation in api.operations for one in dict(operation.scopes).get(scheme.name, ())}
        keywords["scopes"] = literal(tuple(sorted(asked)))
    variables = literal(names.variables[scheme.name])
    return call("SecurityScheme", literal(scheme.name), literal(scheme.kind), variables, **keywords)


def _flow(flow: ApiOAuthFlow) -> str:
    urls = {field.name: getattr(flow, field.name) for field in dataclasses.fields(flow)[1:]}
    return call("OAuthFlow", literal(flow.grant), **{name: literal(url) for name, url in urls.items() if url})


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
    "Literal": ("Literal[",),
    "UNSET": ("= UNSET",),
    "Body": ("Body(",),
    "Field": ("Field(",),
    "Operation": ("Operation(",),
    "Paging": ("Paging(",),
    "Parameter": ("Parameter(",),
    "Unset": ("| Unset",),
    "Xml": ("Xml(",),
    "piece": (": piece(",),
}


def _uses(text: str, name: str) -> bool:
    return any(marker in text for marker in _MARKERS[name])
