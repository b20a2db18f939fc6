"""Where the API of a server lives and who said so: as data in its report, and what an environment makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.naming import Names
from mcpfactory_runtime.upstream.addresses import nature, place_of
from mcpfactory_runtime.upstream.settings import Settings

__all__ = ["Place", "address", "places"]


@dataclass(frozen=True, slots=True)
class Place:
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


def address(api: Api, names: Names, private: Sequence[str]) -> dict[str, Any]:
    """Return what `places` reads: the document's base URL, the hosts of operations with a server of their own, and what is permitted."""
    root = api.servers[0] if api.servers else ""
    further = sorted({one.server for one in api.operations if one.server and place_of(one.server) != place_of(root)})
    return {"base_url": root, "prefix": names.prefix, "allow_private": list(private), "further": further}


def places(data: Mapping[str, Any], environ: Mapping[str, str], *, server: str, setting: str = "export") -> list[Place]:
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
    permitted = {place_of(chosen), *data["allow_private"]} - {""}
    found = []
    for url, whose in ((root, "the API is"), *((one, "some operations are") for one in data["further"])):
        said_by = settings.set_by("BASE_URL") if url == chosen else ""
        what, place = nature(url), place_of(url)
        told = f"{whose} at {url}" + (f", by {said_by}" if said_by else "")
        if not url:
            message = "nothing says where the API lives, so calls of it fail"
            found.append(Place("", "", "", False, message, f"{setting} {variable}=https://…"))
        elif not place:
            message = f"{told}, which is no http or https URL, so calls of it fail"
            found.append(Place(url, said_by, "", False, message, f"{setting} {variable}=https://…"))
        elif not what:
            found.append(Place(url, said_by, "", True, told))
        elif everywhere or place in permitted or place.rpartition(":")[0] in permitted:
            by = settings.set_by("ALLOW_PRIVATE") if everywhere else "allow_private in mcpfactory.toml"
            found.append(
                Place(url, said_by, what, True, f"{told}, on {what}" + ("" if said_by else f"; permitted by {by}"))
            )
        else:
            found.append(_refused(url, told, what, server, f"{setting} {settings.variable('ALLOW_PRIVATE')}=1"))
    return found


def _refused(url: str, told: str, what: str, server: str, way: str) -> Place:
    """Return a private address that only the document names."""
    toml = f'allow_private = ["{place_of(url)}"] below [api] in servers/{server}/mcpfactory.toml'
    hint = f"if that is meant: {toml} and `mcpfactory update {server}`, or {way}"
    message = f"{told}, on {what}, and only the API document says so: calls to it are refused"
    return Place(url, "", what, False, message, hint)
