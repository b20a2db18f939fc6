"""`.mcpfactory/report.json` of a server: tools, arguments, tokens, skipped operations, credentials, URLs, problems."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from mcpfactory_codegen.describe.tools import ApiTool, tool_difficulties
from mcpfactory_codegen.ir import Api, ApiOperation, Problem, SkippedOperation, operation_key
from mcpfactory_codegen.naming import Names
from mcpfactory_codegen.naming.environment_variables import credential_parts
from mcpfactory_codegen.servers.manifest_diff import CHANGES, Change
from mcpfactory_codegen.sources.translation_helpers import iterate_objects, table, without_empty
from mcpfactory_codegen.text import one_line
from mcpfactory_runtime.upstream.secrets import server_url_setting

REPORT: Final = ".mcpfactory/report.json"
_VERSION: Final = 1
_PARTS: Final = {
    "API_KEY": "API key",
    "USERNAME": "user name",
    "PASSWORD": "password",
    "TOKEN": "bearer token",
    "CLIENT_ID": "OAuth client id",
    "CLIENT_SECRET": "OAuth client secret",
    "CLIENT_CERT": "path of the client certificate (PEM)",
    "CLIENT_KEY": "path of its key, if not in the same file",
    "REFRESH_TOKEN": "OAuth refresh token, which with the client's id and secret replaces a login",
    "SERVICE_ACCOUNT": "JSON key of a service account (or its path, in the variable that ends in _FILE)",
    "ACCESS_KEY_ID": "AWS access key id",
    "SECRET_ACCESS_KEY": "AWS secret access key",
    "SESSION_TOKEN": "AWS session token, of temporary credentials",
    "REGION": "AWS region, where the API's address does not name it",
}
# parts of a credential that are not secret
_OPEN: Final = frozenset({"USERNAME", "CLIENT_ID", "CLIENT_CERT", "CLIENT_KEY", "ACCESS_KEY_ID", "REGION"})
_OPTIONAL: Final = frozenset({"CLIENT_KEY", "SESSION_TOKEN", "REGION"})


def report(
    api: Api,
    names: Names,
    tools: Sequence[ApiTool],
    skipped: Iterable[SkippedOperation],
    problems: Iterable[Problem],
    *,
    uncurated: Mapping[str, str] | None = None,
    private: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the report as plain JSON types.

    `uncurated` has the tool names before the user's curation, by operation.
    """
    operations = api.operations_by_key()
    return {
        "report": _VERSION,
        "tools": [_tool(tool, operations[tool.key]) for tool in tools],
        "tokens": sum(tool.tokens for tool in tools),
        "skipped": [{**_named(one), "pointer": one.pointer, "reason": one.reason} for one in skipped],
        "environment": environment(api, names, tools),
        "credentials": _credentials(api, names, tools),
        "address": _address(api, names, tools, private),
        "problems": [one.to_json() for one in problems],
        "names": dict(sorted((uncurated or {}).items())),
    }


def _tool(tool: ApiTool, operation: ApiOperation) -> dict[str, Any]:
    return {
        "name": tool.name,
        "operation": _named(operation),
        "arguments": {name: {"in": bound.place, "name": bound.name} for name, bound in tool.bindings.items()},
        **without_empty(fixed=dict(tool.fixed)),
        "tokens": tool.tokens,
        "effect": _effect(tool.annotations),
        **without_empty(
            hard=tool_difficulties(tool, operation),
            paging={"kind": tool.paging.kind, "argument": tool.paging.argument} if tool.paging else None,
            output=f"no output schema: {tool.output.reason}" if tool.output.reason else "",
        ),
    }


def _effect(annotations: Mapping[str, Any]) -> str:
    if annotations.get("readOnlyHint") is True:
        return "reads"
    return "destroys" if annotations.get("destructiveHint") is True else "writes"


def _named(operation: ApiOperation | SkippedOperation) -> dict[str, Any]:
    label = {"document": operation.label} if operation.label else {}
    return {**label, "method": operation.method, "path": operation.path, "operationId": operation.operation_id or None}


def reported_operation_key(operation: Mapping[str, Any]) -> str:
    """Return the identity of an operation of a report."""
    return operation_key(operation["method"], operation["path"], operation.get("document", ""))


def environment(api: Api, names: Names, tools: Sequence[ApiTool]) -> list[dict[str, Any]]:
    """Return the variables that the server reads, as `{name, required, secret, description}`.

    A variable is required if no tool works without it. OAuth variables are never required, because other flows may
    exist.
    """
    operations = api.operations_by_key()
    security = [operations[tool.key].security for tool in tools]
    rows = []
    if tools and not api.servers and has_root_url(api, tools):
        text = "where the API lives, such as https://api.example.com/v1; its document names no server"
        rows.append(_row(f"{names.prefix}_BASE_URL", text, required=True))
    for server in _servers(api, names, tools):
        text = f"address of {server['tools']} of {len(tools)} tools, "
        text += f"in place of {server['url']}" if server["url"] else "which their document does not contain"
        required = not server["url"] and server["tools"] == len(tools)
        rows.append(_row(server["variable"], text, required=required))
    for scheme in api.security_schemes:
        using = [one for one in security if any(scheme.name in alternative for alternative in one)]
        if not using:
            continue
        needing = [one for one in using if all(scheme.name in alternative for alternative in one)]
        about = one_line(scheme.note or scheme.description, 160)
        for variable, part in zip(names.variables[scheme.name], credential_parts(scheme), strict=True):
            text = f"{_PARTS[part]} for {len(using)} of {len(tools)} tools ({one_line(scheme.name, 60)})"
            text = f"{text}: {about}" if about else text
            required = len(needing) == len(tools) and not scheme.flows and part not in _OPTIONAL
            rows.append(_row(variable, text, required=required, secret=part not in _OPEN))
    return rows


def _row(name: str, description: str, *, required: bool, secret: bool = False) -> dict[str, Any]:
    return {"name": name, "required": required, "secret": secret, "description": description}


def _credentials(api: Api, names: Names, tools: Sequence[ApiTool]) -> dict[str, Any]:
    """Return the credentials section: base URL, schemes with variables, flows and links, and the alternatives."""
    operations = api.operations_by_key()
    ways = Counter(operations[tool.key].security for tool in tools)
    used = {name for security in ways for alternative in security for name in alternative}
    schemes = []
    for scheme in api.security_schemes:
        if scheme.name not in used:
            continue
        pages = [flow.authorization_url for flow in scheme.flows if flow.authorization_url.startswith("http")]
        docs = [api.external_docs] if api.external_docs.startswith("http") else []
        row: dict[str, Any] = {
            "name": scheme.name,
            "kind": scheme.kind,
            "variables": list(names.variables[scheme.name]),
        }
        row["flows"] = [dataclasses.asdict(flow) for flow in scheme.flows]
        schemes.append(row | {"links": [one_line(link, 300) for link in (scheme.links or docs or pages)]})
    rows = [{"any": [list(one) for one in security], "tools": count} for security, count in ways.items() if security]
    return {"base_url": api.base_url, "schemes": schemes, "tools": rows}


def _address(api: Api, names: Names, tools: Sequence[ApiTool], private: Sequence[str]) -> dict[str, Any]:
    """Return the address section: the root's URL, the other servers, and the allowed private hosts.

    `rootless` means that no tool uses the root. `several` means that the server has several documents.
    """
    servers = _servers(api, names, tools)
    address: dict[str, Any] = {
        "base_url": api.base_url,
        "prefix": names.prefix,
        "allow_private": list(private),
        "servers": servers,
    }
    address |= {"several": True} if any(operation.label for operation in api.operations) else {}
    return address if has_root_url(api, tools) else {**address, "rootless": True}


def has_root_url(api: Api, tools: Sequence[ApiTool]) -> bool:
    """Return True if the server has a root URL, which `MCPF_<SERVER>_BASE_URL` overrides."""
    operations = api.operations_by_key()
    return not tools or bool(api.servers) or any(not operations[tool.key].server for tool in tools)


def _servers(api: Api, names: Names, tools: Sequence[ApiTool]) -> list[dict[str, Any]]:
    operations = api.operations_by_key()
    counts = Counter(operations[tool.key].server for tool in tools)
    rows = []
    for one in api.own_servers:
        variable = f"{names.prefix}_{server_url_setting(one.name)}"
        rows.append({"name": one.name, "url": one.url, "variable": variable, "tools": counts[one.name]})
    return rows


def render_report(data: Mapping[str, Any]) -> str:
    """Return the canonical text, with one tool per line."""
    lines = []
    for key, value in data.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(_compact(row) for row in value)
            lines.append(f"{_compact(key)}: [\n{rows}\n]")
        else:
            lines.append(f"{_compact(key)}: {_compact(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


@dataclasses.dataclass(frozen=True, slots=True)
class PublishedNames:
    """Published names of a server, from its report. Regeneration keeps these names.

    `names` has the tool name of each operation by its key, before the user's curation. `servers` maps each server's
    name to its URL, with the name "" for the root. `prefix` is the prefix of the variables, or "" for a new server.
    """

    names: Mapping[str, str] = dataclasses.field(default_factory=dict)
    servers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    prefix: str = ""


def read_json_object(file: Path) -> dict[str, Any]:
    """Return the object in a machine-owned file, or {} for a missing or damaged file, which will be regenerated."""
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report of the server in a directory, or {}."""
    return read_json_object(folder / REPORT)


def list_report_variables(report: Mapping[str, Any]) -> list[str]:
    """Return the variables in the order of the report, without invalid rows such as after a manual merge."""
    return [str(row["name"]) for _, row in iterate_objects(report, "environment") if "name" in row]


def read_published_names(folder: Path) -> PublishedNames:
    """Return the published names of the server in a directory, or no names without a valid report."""
    data = read_report(folder)
    try:
        names = {
            reported_operation_key(tool["operation"]): str(tool["name"]) for tool in data["tools"] if tool["operation"]
        }
        names |= {str(key): str(name) for key, name in data.get("names", {}).items()}
    except (KeyError, TypeError, AttributeError):
        return PublishedNames()
    try:
        address = data["address"]
        servers = {str(one["name"]): str(one["url"]) for one in address["servers"]}
        return PublishedNames(names, servers | {"": str(address.get("base_url", ""))}, str(address["prefix"]))
    except (KeyError, TypeError, AttributeError):  # reports of earlier versions contain no addresses
        return PublishedNames(names)


# --- origins that receive a server's credentials, and their changes in an update ---


ORIGIN_CHANGED: Final = "origin-changed"


def credential_origin_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], added: Collection[str] = ()
) -> tuple[Change, ...]:
    """Return a change for each origin that receives credentials only after an update.

    Reports of earlier versions have no URLs and are not compared. New documents (labels `added`) are ignored, because
    their credentials have not been set.
    """
    known = {origin for _, _, origin in _destinations(before)}
    if not known:
        return ()
    known |= {f"https://{one[7:-3]}:443" for one in known if one.startswith("http://") and one.endswith(":80")}
    new = {
        origin: what
        for what, owner, origin in _destinations(after)
        if origin not in known
        and not any(owner == one or owner.startswith((f"{one}.", f"{one}-", f"{one}_")) for one in added)
    }
    was = ", ".join(sorted(known))
    return tuple(
        Change(
            CHANGES[ORIGIN_CHANGED],
            ORIGIN_CHANGED,
            "",
            what,
            f"{what} is now at {origin} (until now: {was}), which would receive the server's credentials",
        )
        for origin, what in new.items()
    )


def _destinations(report: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """For each destination, yield its description, its owner (a server or scheme) and its origin."""
    address, credentials = table(report, "address"), table(report, "credentials")
    base = str(address.get("base_url") or "")
    if not address.get("rootless") and (origin := _origin(base)):
        yield "the base URL", "", origin
    for _, one in iterate_objects(address, "servers"):
        if origin := _origin(str(one.get("url") or "")):
            yield f"the address of {one.get('name')}", str(one.get("name")), origin
    for _, scheme in iterate_objects(credentials, "schemes"):
        for _, flow in iterate_objects(scheme, "flows"):
            for key, url in flow.items():
                if key.endswith("_url") and url and (origin := _origin(urljoin(base, str(url)))):
                    yield f"the {key} of {scheme.get('name')}", str(scheme.get("name")), origin


def _origin(url: str) -> str:
    """Return the normalized scheme, host and port of a URL, "" without a host, or an invalid URL unchanged."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname.rstrip('.')}:{port}" if parts.hostname else ""
