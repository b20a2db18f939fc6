"""Base URLs of a server's APIs, and credentials for them, from environment variables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.naming.environment_variables import variable_prefix
from mcpfactory_codegen.servers.report_file import read_published_names
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.files import read_json
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.oauth.steps_and_metadata import OAuthError
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.auth import unset_variables
from mcpfactory_runtime.upstream.operation import OAuthFlow, SecurityScheme, ServerAddress
from mcpfactory_runtime.upstream.secrets import SHARED, Settings, is_variable_set
from mcpfactory_runtime.upstream.servers import Addresses
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS, has_environment_grant, has_login
from mcpfactory_runtime.urls import host_port_of, private_target_kind


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """An address that the server calls.

    `url` is "" if the API's address is unknown. `set_by` is the variable that sets the address; "" for an address from
    the document. `private_kind` describes why the address is private; "" for a public address. `is_usable` is False if
    every call to the address fails. `hint` is the remedy. The remedy is also set if a variable changes the API's base
    URL but not this address.
    """

    url: str
    set_by: str
    private_kind: str
    is_usable: bool
    message: str
    hint: str = ""


def api_addresses(
    data: Mapping[str, Any], environ: Mapping[str, str], *, server: str, setting: str = "export"
) -> list[ApiAddress]:
    """Return all addresses, the API's base URL first. Host names are not resolved.

    Args:
        data: `address` of the server's report.
        environ: environment variables of the server.
        server: name of the server, for hints.
        setting: command that sets an environment variable, for hints.
    """
    settings = Settings(environ, data["prefix"])
    beside = [*data.get("servers", ()), *({"name": url, "url": url, "tools": 0} for url in data.get("further", ()))]
    addresses = Addresses(
        settings, data["base_url"], [ServerAddress(one["name"], one["url"]) for one in data.get("servers", ())]
    )
    unmoved = {one.name for one in addresses.unchanged_servers()}
    found = []
    root = [] if data.get("rootless") else [("", "the API is")]
    for name, whose in [*root, *((one["name"], _whose(one)) for one in beside)]:
        url, said_by = addresses.of(name), addresses.set_by(name)
        way = f"{setting} {addresses.variable(name)}=https://…"
        what, place = private_target_kind(url), host_port_of(url)
        by = "" if said_by or not what else _permitted(settings, addresses, place, data["allow_private"])
        said = f"{whose} at {url}" + (f", by {said_by}" if said_by else "")
        if not url:
            message = "nothing says where " + ("the API lives" if not name else whose) + ", so calls of it fail"
            found.append(ApiAddress("", "", "", False, message, way))
        elif not place:
            message = f"{said}, which is not an http or https URL, so calls to it fail"
            found.append(ApiAddress(url, said_by, "", False, message, way))
        elif what and not said_by and not by:
            table = "in its [[api]]" if data.get("several") else "below [api]"
            permit = f"{table} in servers/{server}/mcpfactory.toml and `mcpfactory update {server}`"
            found.append(_refused(url, said, what, permit, f"{setting} {settings.variable('ALLOW_PRIVATE')}=1"))
        else:
            said += (f", on {what}" if what else "") + (f"; permitted by {by}" if by else "")
            said += f"; {addresses.set_by('')} does not change this address" if name in unmoved else ""
            found.append(ApiAddress(url, said_by, what, True, said, way if name in unmoved else ""))
    return found


def _whose(server: Mapping[str, Any]) -> str:
    """Describe the tools at an API server."""
    tools = server["tools"]
    return f"{tools} tools are" if tools > 1 else "1 tool is" if tools else "some operations are"


def _permitted(settings: Settings, addresses: Addresses, place: str, private: Sequence[str]) -> str:
    if settings.value("ALLOW_PRIVATE") == "1":
        return settings.set_by("ALLOW_PRIVATE")
    if place in private or place.rpartition(":")[0] in private:
        return "allow_private in mcpfactory.toml"
    return "the variable of another address there" if place in addresses.chosen() else ""


def _refused(url: str, said: str, what: str, permit: str, way: str) -> ApiAddress:
    """Return a private address that is refused, because only the document contains it."""
    hint = f'if this is intended: allow_private = ["{host_port_of(url)}"] {permit}, or {way}'
    message = f"{said}, on {what}, and only the API document says so: calls to it are refused"
    return ApiAddress(url, "", what, False, message, hint)


@dataclass(frozen=True, slots=True)
class SecuritySchemeStatus:
    """Status of one security scheme.

    `missing` describes the missing credentials; "" if none are missing. `hint` is the remedy, with a link to the
    provider. `tools` is the number of tools that accept this scheme but lack credentials.
    """

    scheme: str
    missing: str
    hint: str
    tools: int


def security_scheme_statuses(
    server: str, data: Mapping[str, Any], environ: Mapping[str, str]
) -> list[SecuritySchemeStatus]:
    """Return the status of each security scheme, in the order of the report.

    `data` is `credentials` of the server's report. `environ` are the environment variables of the server.
    """
    schemes = {row["name"]: _scheme(row) for row in data["schemes"]}
    missing = {name: _missing(scheme, data["base_url"], environ) for name, scheme in schemes.items()}
    statuses = []
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
        statuses.append(SecuritySchemeStatus(name, missing[name], hint, stuck))
    return statuses


def describe_need(report: Mapping[str, Any], variable: Mapping[str, Any]) -> str:
    """Return the need of a variable in a server's report: "required", "needed by 7 of 11 tools" or "optional"."""
    if variable.get("required"):
        return "required"
    credentials, tools = report.get("credentials") or {}, len(report.get("tools", ()))
    of = {row["name"] for row in credentials.get("schemes", ()) if variable.get("name") in row["variables"][:1]}
    alone = [one for one in credentials.get("tools", ()) if all(of & {*each} for each in one["any"])]
    needed = sum(one["tools"] for one in alone)
    return f"needed by {needed} of {tools} tools" if needed else "optional"


def _scheme(row: Mapping[str, Any]) -> SecurityScheme:
    flows = tuple(OAuthFlow(**flow) for flow in row["flows"])
    return SecurityScheme(row["name"], row["kind"], tuple(row["variables"]), flows=flows)


def _missing(scheme: SecurityScheme, base_url: str, environ: Mapping[str, str]) -> str:
    try:
        unset = unset_variables(scheme, environ)
        if scheme.kind != "oauth2" or not unset:
            return f"{' and '.join(unset)} not set" if unset else ""
        grants = {flow.grant for flow in scheme.flows}
        if grants & {"clientCredentials", "discovery"} and all(
            is_variable_set(name, environ) for name in scheme.variables[1:]
        ):
            return ""
        if has_environment_grant(scheme, environ):
            return ""
        return "" if has_login(base_url, scheme, environ) else "no access token, and no login to get one"
    except (ToolError, OAuthError) as error:
        return str(error).partition("\nhint: ")[0]


def _way(server: str, scheme: SecurityScheme, environ: Mapping[str, str]) -> str:
    if scheme.kind != "oauth2":
        needed = scheme.variables[:2] if scheme.kind == "awsSigV4" else scheme.variables
        return f"export {' '.join(f'{name}=…' for name in needed)} before `mcpfactory run {server}`"
    token, client_id, client_secret, *further = scheme.variables
    grants = {flow.grant for flow in scheme.flows}
    ways = []
    if grants & set(LOGIN_GRANTS):
        first = "" if is_variable_set(client_id, environ) else f"export {client_id}=… and "
        ways.append(f"{first}run `mcpfactory login {server}`")
    if grants & {"clientCredentials", "discovery"}:
        ways.append(f"export {client_id}=… {client_secret}=…")
    if further:
        ways.append(f"export {client_id}=… {client_secret}=… {further[0]}=…")
    ways += [f"export {name}_FILE=… (the JSON key of a service account)" for name in further[1:2]]
    return ", or ".join([*ways, f"export {token}=…"])


SHARED_ADDRESS: Final = f"{SHARED}_BASE_URL"
_NAMED: Final = 3  # maximum servers that a message lists


def address_variable(server: WorkspaceServer) -> str:
    """Return the variable for the API address of this server only."""
    return f"{server_variable_prefix(server)}_BASE_URL"


def server_variable_prefix(server: WorkspaceServer) -> str:
    """Return the prefix of a server's variables.

    The prefix of an existing server never changes.
    """
    return read_published_names(server.folder).prefix or variable_prefix(server.name)


def refuse_shared_address(servers: Sequence[WorkspaceServer], environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` if these servers would share one address.

    The API at the shared address would get the credentials of all servers.
    """
    if not environ.get(SHARED_ADDRESS):
        return
    concerned = [one for one in servers if one.document is not None and not environ.get(address_variable(one))]
    if not concerned:
        return
    named = ", ".join(one.name for one in concerned[:_NAMED]) + (" …" if len(concerned) > _NAMED else "")
    variables = " ".join(f"{address_variable(one)}=https://…" for one in concerned[:_NAMED])
    raise ConfigError(
        f"{SHARED_ADDRESS} applies to all servers, so the API at that address would receive the credentials of {named}",
        hint=f"unset {SHARED_ADDRESS}; to set the address of a single API, run 'export {variables}'",
    )


def refuse_shared_in_workspace(workspace: Workspace, server: WorkspaceServer, environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` if `server` would share one address with other servers of the workspace."""
    if environ.get(SHARED_ADDRESS) and sum(one.document is not None for one in workspace.servers()) > 1:
        refuse_shared_address([server], environ)


def shared_variables(servers: Sequence[WorkspaceServer]) -> dict[tuple[str, ...], list[str]]:
    """Return the variables that several servers read, by the names of these servers.

    A value for one API also reaches the other APIs. For example, the server `shop` with a scheme called eu and the
    server `shop-eu` both read MCPF_SHOP_EU_TOKEN. Servers without a readable report are left out.
    """
    readers: dict[str, list[str]] = defaultdict(list)
    for server in servers:
        for name in set(reported_variables(server)):
            readers[name].append(server.name)
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, names in sorted(readers.items()):
        if len(names) > 1:
            found[tuple(names)].append(name)
    return dict(found)


def reported_variables(server: WorkspaceServer) -> Iterator[str]:
    """Yield the variables in a server's report: credentials, and addresses of its APIs."""
    try:
        report = read_json(server.report)
        yield from (str(row["name"]) for row in report["environment"])
        yield from (str(row["variable"]) for row in report.get("address", {}).get("servers", ()))
    except (KeyError, TypeError):
        return
    if server.document is not None:
        yield address_variable(server)
