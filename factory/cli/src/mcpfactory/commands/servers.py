"""Printing of the results of the commands new, adopt, update, diff and install."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from mcpfactory import output
from mcpfactory.operations import make_typer_command, print_result
from mcpfactory.options import AsJson, Name, selected_workspace
from mcpfactory_pipeline.operations.install import ClientsResult, Install
from mcpfactory_pipeline.operations.new import Adopt, AdoptResult, New, ServerResult, Update
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.adoption.proposal import AdoptionProposal

_LONGEST: Final = 60  # maximum lines of a printed diff; a longer diff is replaced by its number of lines
_QUIET: Final = ("same", "keep", "deleted")  # actions of an update that leave a file unchanged


def _show_new(done: ServerResult) -> None:
    created = done.record
    output.print_document_problems(created.problems)
    if created.recognised:
        output.line(f"read {created.recognised}")
    output.line(done.message)
    output.line(f"  in {created.path}")
    if done.dry_run:
        for path in sorted(created.files):
            output.line(f"  {path}")
    _advise(created)
    if not done.dry_run:
        revive = f"mcpfactory pipeline revive {created.server}; " if _was_retired(created.server) else ""
        start = "" if created.operations else " --start"
        output.note(f"next: {revive}mcpfactory inspect {created.server}{start}; {done.next}")


new = make_typer_command(New, _show_new)


def _advise(created: Any) -> None:
    output.print_address_warnings(created.server, created.address)
    if created.alike:
        names = ", ".join(created.alike)
        output.note(f"several documents have the security scheme {names}, each with separate variables")
        output.note("  hint: if they use one account, --shared-credentials merges them")
    output.print_server_overview(created.overview)
    if created.overview is not None:
        _print_set_variables(created.overview.credentials, created.address)


def _print_set_variables(credentials: Iterable[str], address: Mapping[str, Any]) -> None:
    """Warn about variables of the new server that are already set, because they may belong to another API."""
    from mcpfactory_runtime.upstream.secrets import SETTINGS

    settings = (f"{address['prefix']}_{name}" for name in SETTINGS)
    names = (*credentials, *settings, *(one["variable"] for one in address["servers"]))
    there = [one for name in names for one in (name, f"{name}_FILE") if os.environ.get(one)]
    if there:
        output.warning(f"already set in this environment: {', '.join(there)}")
        output.note("  hint: unset variables of other APIs; this server would use them")


def _was_retired(name: str) -> bool:
    from mcpfactory_pipeline.base.errors import StateError
    from mcpfactory_pipeline.state.store import Store

    store = Store(selected_workspace())
    try:
        return name in store.servers() and store.state(name).retired is not None
    except StateError:
        return False


def _print_proposal(proposal: AdoptionProposal) -> None:
    from mcpfactory_pipeline.base.text import pluralize

    for sentence in proposal.recognised.found:
        output.line(sentence)
    for note in proposal.recognised.notes:
        output.note(f"note: {note}")
    for one in proposal.files:
        output.line()
        lines = one.diff().splitlines()
        output.line(
            f"{one.path}: {one.change}" + (f", {one.after.count(chr(10))} lines" if one.change == "new" else "")
        )
        shown = one.after.splitlines() if one.change == "new" else lines[2:]
        if one.path.endswith(".toml") or (one.change == "changed" and len(shown) <= _LONGEST):
            for text in shown:
                output.line(f"  {text}")
        elif one.change == "changed":
            added, gone = (sum(text.startswith(sign) for text in shown) for sign in "+-")
            output.line(f"  {added} lines added, {gone} removed")
    if proposal.copies:
        output.line()
        output.line(f"servers/{proposal.server}/: {pluralize(len(proposal.copies), 'file')} copied")


def _show_adopt(done: AdoptResult) -> None:
    """Print the result, and the proposal unless the user has already confirmed it."""
    if done.record:
        _print_proposal(done.record)
    if done.written or not (done.dry_run or done.record.changes):
        output.line()
        output.line(done.message)
    if done.next:
        output.note(f"next: {done.next}")


adopt = make_typer_command(Adopt, _show_adopt)


def _show_update(done: ServerResult) -> None:
    updated = done.record
    output.print_document_problems(updated.problems)
    output.print_address_warnings(updated.server, updated.address)
    if updated.moved:
        output.warning(updated.moved)
    files = [file for file in updated.files if file.action not in _QUIET or file.note]
    if not files and not updated.changes:
        output.line(f"{updated.server} is up to date")
        if updated.stored:
            copies = ", ".join(str(updated.path / path) for path in updated.stored)
            output.note(f"note: the document is the copy {copies}; after a change of another file, give that file:")
            output.note(f"  hint: mcpfactory update {updated.server} --from-openapi FILE")
        return
    has_document = bool(updated.operations or updated.tools or updated.changes)
    # without an API document, only the running server can list its tools
    tools = f": {updated.tools} tools" if has_document else ""
    output.line(f"{done.message}{tools}")
    for file in files:
        bad = file.action in {"conflict", "collision"}
        action = output.styled(file.action.ljust(9), "bad" if bad else "dim")
        output.line(f"  {action} {file.path}" + (f"  ({file.note})" if file.note else ""))
    if has_document:
        output.print_contract_changes(updated.changes)
    if updated.conflicts:
        output.note(
            f"hint: resolve the conflicts in {', '.join(updated.conflicts)}, remove the markers, and run the tests"
        )
    elif not done.dry_run:
        output.note(f"next: {done.next}")


update = make_typer_command(Update, _show_update)


def diff(
    name: Name,
    against: Annotated[
        str,
        typer.Option(
            metavar="BASE",
            help="Compare with this channel, candidate or file [default: the last channel in mcpfactory.toml that offers the server]",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Compare a server's tools with the tools that callers use.

    The command proposes the required version.
    """
    from mcpfactory_pipeline.channels.contract import compare_source_contract

    found = asyncio.run(compare_source_contract(selected_workspace(), name, against))
    if as_json:
        output.data({"server": name, **found.to_json()})
    else:
        output.line(f"{name} {found.after.version or '(no version)'} compared with {found.before.source}")
        output.print_contract_changes(found.changes)
        _print_version(found)
    if found.stale:
        output.warning(f"generate is due, so changes are missing: {found.stale[0]} would change")
        output.note(f"  hint: mcpfactory pipeline run {name} --until generate")
        raise typer.Exit(Exit.STALE)
    if not found.kept:
        raise typer.Exit(Exit.NEGATIVE)


def _print_version(found: Any) -> None:
    if found.needed == "none":
        return
    before, after = found.before.version or "0", found.after.version or "0"
    if found.proposed == found.after.version:
        output.line(f"version {before} → {after} reflects the changes")
    else:
        output.line(
            f"version {before} → {after} does not reflect the changes; proposed: {found.proposed} ({found.needed})"
        )


def _show_install(done: ClientsResult) -> None:
    if done.installed:
        output.table(
            ("CLIENT", "SCOPE", "NAME", "SERVER", "FROM", "VERSION", "STATE"),
            [
                (
                    *(one["client"], one["scope"]),
                    *(one[name] or "-" for name in ("name", "server", "source", "version")),
                    ": ".join(filter(None, (one["state"], one["message"]))),
                )
                for one in done.installed
            ],
        )
    else:
        print_result(done)


install = make_typer_command(Install, _show_install)
