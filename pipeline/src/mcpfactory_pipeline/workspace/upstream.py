"""What an environment makes of the API behind a server: each address that it calls, and each security scheme, from its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcpfactory_runtime.oauth.model import OAuthError
from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream.addresses import describe_private, host_port_of
from mcpfactory_runtime.upstream.auth import unset_variables
from mcpfactory_runtime.upstream.operation import OAuthFlow, SecurityScheme
from mcpfactory_runtime.upstream.secrets import holds
from mcpfactory_runtime.upstream.settings import Settings
from mcpfactory_runtime.upstream.tokens import LOGIN_GRANTS, has_login

__all__ = ["ApiAddress", "SchemeStatus", "api_addresses", "scheme_statuses"]


@dataclass(frozen=True, slots=True)
class ApiAddress:
    """An address that the server calls.

    `url` is "" when nobody says where the API is. `said_by` is the variable that it comes from, "" for the document. `nature`
    says in words what is private about it, "" when nothing is. `works` is False when each call of it fails; `hint` then says
    what to do.
    """

    url: str
    said_by: str
    nature: str
    works: bool
    message: str
    hint: str = ""


def api_addresses(
    data: Mapping[str, Any], environ: Mapping[str, str], *, server: str, setting: str = "export"
) -> list[ApiAddress]:
    """Every address, the API's own first. Pure: names are not resolved.

    Args:
        data: `address` of the server's report.
        environ: what the server would be started with.
        server: its name, for hints.
        setting: how variables are set there, for hints.
    """
    settings = Settings(environ, data["prefix"])
    variable, chosen = settings.variable("BASE_URL"), settings.value("BASE_URL")
    root = chosen or data["base_url"]
    everywhere = settings.value("ALLOW_PRIVATE") == "1"
    permitted = {host_port_of(chosen), *data["allow_private"]} - {""}
    found = []
    for url, whose in ((root, "the API is"), *((one, "some operations are") for one in data["further"])):
        said_by = settings.set_by("BASE_URL") if url == chosen else ""
        what, place = describe_private(url), host_port_of(url)
        said = f"{whose} at {url}" + (f", by {said_by}" if said_by else "")
        if not url:
            message = "nothing says where the API lives, so calls of it fail"
            found.append(ApiAddress("", "", "", False, message, f"{setting} {variable}=https://…"))
        elif not place:
            message = f"{said}, which is no http or https URL, so calls of it fail"
            found.append(ApiAddress(url, said_by, "", False, message, f"{setting} {variable}=https://…"))
        elif not what:
            found.append(ApiAddress(url, said_by, "", True, said))
        elif everywhere or place in permitted or place.rpartition(":")[0] in permitted:
            by = settings.set_by("ALLOW_PRIVATE") if everywhere else "allow_private in mcpfactory.toml"
            found.append(
                ApiAddress(url, said_by, what, True, f"{said}, on {what}" + ("" if said_by else f"; permitted by {by}"))
            )
        else:
            found.append(_refused(url, said, what, server, f"{setting} {settings.variable('ALLOW_PRIVATE')}=1"))
    return found


def _refused(url: str, said: str, what: str, server: str, way: str) -> ApiAddress:
    """Return a private address that only the document names."""
    toml = f'allow_private = ["{host_port_of(url)}"] below [api] in servers/{server}/mcpfactory.toml'
    hint = f"if that is meant: {toml} and `mcpfactory update {server}`, or {way}"
    message = f"{said}, on {what}, and only the API document says so: calls to it are refused"
    return ApiAddress(url, "", what, False, message, hint)


@dataclass(frozen=True, slots=True)
class SchemeStatus:
    """What is known of one scheme. `missing` is "" when nothing is; `hint` says what to set or run, and where to get it.

    `tools` is how many tools cannot be called for want of it: 0 when every tool has another way.
    """

    scheme: str
    missing: str
    hint: str
    tools: int


def scheme_statuses(server: str, data: Mapping[str, Any], environ: Mapping[str, str]) -> list[SchemeStatus]:
    """Return one status for each scheme, in the order of the report.

    Args:
        server: its name, for the command that hints show.
        data: `credentials` of its report.
        environ: what the server would be started with.
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
        statuses.append(SchemeStatus(name, missing[name], hint, stuck))
    return statuses


def _scheme(row: Mapping[str, Any]) -> SecurityScheme:
    flows = tuple(OAuthFlow(**flow) for flow in row["flows"])
    return SecurityScheme(row["name"], row["kind"], tuple(row["variables"]), flows=flows)


def _missing(scheme: SecurityScheme, base_url: str, environ: Mapping[str, str]) -> str:
    try:
        unset = unset_variables(scheme, environ)
        if scheme.kind != "oauth2" or not unset:
            return f"{' and '.join(unset)} not set" if unset else ""
        grants = {flow.grant for flow in scheme.flows}
        if grants & {"clientCredentials", "discovery"} and all(holds(name, environ) for name in scheme.variables[1:]):
            return ""
        return "" if has_login(base_url, scheme, environ) else "no access token, and no login to get one with"
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
