from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from mcpfactory import output
from mcpfactory.operations import command_of
from mcpfactory.options import workspace_in
from mcpfactory.output import print_addresses, print_overview, print_problems
from mcpfactory_pipeline.operations.new import New, ServerResult


def _show(done: ServerResult) -> None:
    """Print the server that was created, and the steps before the first call."""
    created = done.record
    print_problems(created.problems)
    if created.recognised:
        output.line(f"read {created.recognised}")
    output.line(done.message)
    output.line(f"  in {created.path}")
    if done.dry_run:
        for path in sorted(created.files):
            output.line(f"  {path}")
    else:
        revive = f"mcpfactory pipeline revive {created.server}; " if _was_retired(created.server) else ""
        start = "" if created.operations else " --start"
        output.note(f"next: {revive}mcpfactory inspect {created.server}{start}; {done.next}")
    _advise(created)


new = command_of(New, _show)


def _advise(created: Any) -> None:
    """Print advice to read before the first call: the address of the API, and decisions to consider."""
    print_addresses(created.server, created.address)
    if created.alike:
        names = ", ".join(created.alike)
        output.note(f"several documents have the security scheme {names}, each with separate variables")
        output.note("  hint: if they use one account, --shared-credentials merges them")
    print_overview(created.overview)
    if created.overview is not None:
        _print_set_variables(created.overview.credentials, created.address)


def _print_set_variables(credentials: Iterable[str], address: Mapping[str, Any]) -> None:
    """Warn about variables of the new server that are already set: their values may belong to another API."""
    from mcpfactory_runtime.upstream.secrets import SETTINGS

    settings = (f"{address['prefix']}_{name}" for name in SETTINGS)
    names = (*credentials, *settings, *(one["variable"] for one in address["servers"]))
    there = [one for name in names for one in (name, f"{name}_FILE") if os.environ.get(one)]
    if there:
        output.warning(f"already set in this environment: {', '.join(there)}")
        output.note("  hint: unset variables of other APIs; this server would use them")


def _was_retired(name: str) -> bool:
    """Return True if an earlier server of this name was retired; its retirement must be reverted by hand."""
    from mcpfactory_pipeline.base.errors import StateError
    from mcpfactory_pipeline.state.store import Store

    store = Store(workspace_in())
    try:
        return name in store.servers() and store.state(name).retired is not None
    except StateError:
        return False
