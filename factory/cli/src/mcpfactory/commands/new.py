from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from mcpfactory import output
from mcpfactory.operations import command_of
from mcpfactory.options import trusted
from mcpfactory.output import print_addresses, print_overview, print_problems, progress
from mcpfactory_pipeline.operations.new import New
from mcpfactory_pipeline.operations.operation import OperationContext


def _new(wanted: New, context: OperationContext, *, as_json: bool) -> None:
    """Create the server, print it, and print the steps before the first call."""
    dry = replace(context, dry_run=True)
    sure = wanted.trust or context.dry_run
    trusted(wanted.template, lambda: wanted.carry_out(dry).files, trust=sure, as_json=as_json)
    with progress(quiet=as_json) as tell:
        created = wanted.carry_out(replace(context, notify=tell))
    if as_json:
        output.data(created.to_json(dry_run=context.dry_run))
    else:
        _print_text(created, context.workspace, wanted.template, dry_run=context.dry_run)


new = command_of(New, _new)


def _print_text(created: Any, workspace: Any, template: str, *, dry_run: bool) -> None:
    earlier = _earlier(workspace, created.server)
    print_problems(created.problems)
    what = f"from template {template}" if template else f"{created.tools} tools from {created.operations} operations"
    if created.recognised:
        output.line(f"read {created.recognised}")
    output.line(f"{'would make' if dry_run else 'made'} server {created.server}: {what}")
    output.line(f"  in {created.path}")
    if dry_run:
        for path in sorted(created.files):
            output.line(f"  {path}")
    else:
        revive = f"mcpfactory pipeline revive {created.server}; " if earlier else ""
        start = " --start" if template else ""
        output.note(
            f"next: {revive}mcpfactory inspect {created.server}{start}; mcpfactory pipeline run {created.server}"
        )
    _advise(created)


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


def _earlier(workspace: Any, name: str) -> bool:
    """Return True if an earlier server of this name was retired; its retirement must be reverted by hand."""
    from mcpfactory_pipeline.base.errors import StateError
    from mcpfactory_pipeline.state.store import Store

    store = Store(workspace)
    try:
        return name in store.servers() and store.state(name).retired is not None
    except StateError:
        return False
