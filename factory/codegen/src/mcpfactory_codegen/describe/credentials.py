"""The credentials that a server's tools need: as data in its report, and what is missing of them in an environment."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpfactory_codegen.describe.tools import Tool
from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.naming import Names
from mcpfactory_codegen.text.prose import one_line
from mcpfactory_runtime.oauth.model import OAuthError
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.auth import lacking
from mcpfactory_runtime.upstream.operation import OAuthFlow, SecurityScheme
from mcpfactory_runtime.upstream.secrets import holds
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS, logged_in

__all__ = ["Finding", "credentials", "diagnose"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of one scheme. `missing` is "" when nothing is; `hint` says what to set or run, and where to get it.

    `tools` is how many tools cannot be called for want of it: 0 when every tool has another way.
    """

    scheme: str
    missing: str
    hint: str
    tools: int


def credentials(api: Api, names: Names, tools: Sequence[Tool]) -> dict[str, Any]:
    """Return what `diagnose` reads: the base URL, the schemes with variables, flows and links, and which alternatives tools have."""
    operations = {operation.key: operation for operation in api.operations}
    ways = Counter(operations[tool.key].security for tool in tools)
    used = {name for security in ways for alternative in security for name in alternative}
    schemes = []
    for scheme in api.security_schemes:
        if scheme.name not in used:
            continue
        pages = [flow.authorization_url for flow in scheme.flows if flow.authorization_url.startswith("http")]
        docs = [api.external_docs] if api.external_docs.startswith("http") else []
        schemes.append(
            {
                "name": scheme.name,
                "kind": scheme.kind,
                "variables": list(names.variables[scheme.name]),
                "flows": [dataclasses.asdict(flow) for flow in scheme.flows],
                "links": [one_line(link, 300) for link in (scheme.links or docs or pages)],
            }
        )
    rows = [{"any": [list(one) for one in security], "tools": count} for security, count in ways.items() if security]
    return {"base_url": api.servers[0] if api.servers else "", "schemes": schemes, "tools": rows}


def diagnose(server: str, data: Mapping[str, Any], environ: Mapping[str, str]) -> list[Finding]:
    """One finding for each scheme, in the order of the report.

    Args:
        server: its name, for the command that hints show.
        data: `credentials` of its report.
        environ: what the server would be started with.
    """
    schemes = {row["name"]: _scheme(row) for row in data["schemes"]}
    missing = {name: _missing(scheme, data["base_url"], environ) for name, scheme in schemes.items()}
    findings = []
    for row in data["schemes"]:
        name = row["name"]
        stuck = sum(
            one["tools"]
            for one in data["tools"]
            if any(name in alternative for alternative in one["any"])
            and all(any(missing.get(each) for each in alternative) for alternative in one["any"])
        )
        where = f" (see {', '.join(row['links'])})" if row["links"] else ""
        hint = f"{_way(server, schemes[name], environ)}{where}" if missing[name] else ""
        findings.append(Finding(name, missing[name], hint, stuck))
    return findings


def _scheme(row: Mapping[str, Any]) -> SecurityScheme:
    flows = tuple(OAuthFlow(**flow) for flow in row["flows"])
    return SecurityScheme(row["name"], row["kind"], tuple(row["variables"]), flows=flows)


def _missing(scheme: SecurityScheme, base_url: str, environ: Mapping[str, str]) -> str:
    try:
        unset = lacking(scheme, environ)
        if scheme.kind != "oauth2" or not unset:
            return f"{' and '.join(unset)} not set" if unset else ""
        grants = {flow.grant for flow in scheme.flows}
        if grants & {"clientCredentials", "discovery"} and all(holds(name, environ) for name in scheme.variables[1:]):
            return ""
        return "" if logged_in(base_url, scheme, environ) else "no access token, and no login to get one with"
    except (ToolError, OAuthError) as error:
        return str(error).partition("\nhint: ")[0]


def _way(server: str, scheme: SecurityScheme, environ: Mapping[str, str]) -> str:
    """Return what to set or run."""
    if scheme.kind != "oauth2":
        return f"export {' '.join(f'{name}=…' for name in scheme.variables)} before `mcpfactory run {server}`"
    token, client_id, client_secret = scheme.variables
    grants = {flow.grant for flow in scheme.flows}
    ways = []
    if grants & set(LOGIN_GRANTS):
        first = "" if holds(client_id, environ) else f"export {client_id}=… and "
        ways.append(f"{first}run `mcpfactory login {server}`")
    if grants & {"clientCredentials", "discovery"}:
        ways.append(f"export {client_id}=… {client_secret}=…")
    return ", or ".join([*ways, f"export {token}=…"])
