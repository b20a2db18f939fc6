"""The one address that may not stand for several: `MCPFACTORY_BASE_URL` means whichever server reads it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from mcpfactory_codegen.naming import variable_prefix
from mcpfactory_codegen.servers.report import published
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer
from mcpfactory_runtime.upstream.settings import SHARED

__all__ = [
    "SHARED_ADDRESS",
    "address_variable",
    "refuse_among_many",
    "refuse_shared",
    "reported_variables",
    "server_prefix",
    "shared_variables",
]

SHARED_ADDRESS: Final = f"{SHARED}_BASE_URL"
_NAMED: Final = 3  # servers that a message names


def address_variable(server: WorkspaceServer) -> str:
    """Return the variable that says where the API of this server lives, and of no other."""
    return f"{server_prefix(server)}_BASE_URL"


def server_prefix(server: WorkspaceServer) -> str:
    """Return what the variables of a server begin with: an existing server keeps the names that people have set."""
    return published(server.folder).prefix or variable_prefix(server.name)


def refuse_shared(servers: Sequence[WorkspaceServer], environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` where one address would be that of all these servers: one would send its credentials to another's API."""
    if not environ.get(SHARED_ADDRESS):
        return
    concerned = [one for one in servers if one.document is not None and not environ.get(address_variable(one))]
    if not concerned:
        return
    named = ", ".join(one.name for one in concerned[:_NAMED]) + (" …" if len(concerned) > _NAMED else "")
    variables = " ".join(f"{address_variable(one)}=https://…" for one in concerned[:_NAMED])
    raise ConfigError(
        f"{SHARED_ADDRESS} is set, which is no server's own: {named} would send credentials to whatever API is there",
        hint=f"unset {SHARED_ADDRESS}; where an API is not at its document's address: export {variables}",
    )


def refuse_among_many(workspace: Workspace, server: WorkspaceServer, environ: Mapping[str, str]) -> None:
    """Raise `ConfigError` as the above, for one server of a workspace where others have an API, too."""
    if environ.get(SHARED_ADDRESS) and sum(one.document is not None for one in workspace.servers()) > 1:
        refuse_shared([server], environ)


def shared_variables(servers: Sequence[WorkspaceServer]) -> dict[tuple[str, ...], list[str]]:
    """Variables that several servers read, by the names of those: one's value goes to the others' APIs, too.

    `shop` with a scheme called eu and `shop-eu` both have MCPF_SHOP_EU_TOKEN. Servers without a readable report are left out.
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
    """Yield the names of the variables that a server reads, by its report: credentials, and addresses of its APIs."""
    try:
        report = json.loads((server.folder / ".mcpfactory/report.json").read_bytes())
        yield from (str(row["name"]) for row in report["environment"])
        yield from (str(row["variable"]) for row in report.get("address", {}).get("servers", ()))
    except (OSError, ValueError, KeyError, TypeError):
        return
    if server.document is not None:
        yield address_variable(server)
