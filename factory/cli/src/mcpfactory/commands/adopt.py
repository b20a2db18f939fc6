from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcpfactory import output
from mcpfactory.operations import command_of
from mcpfactory_pipeline.operations.adopt import Adopt, AdoptResult

if TYPE_CHECKING:
    from mcpfactory_pipeline.adoption.proposal import AdoptionProposal

_LONGEST: Final = 60  # lines of a file that are shown


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


def _show(done: AdoptResult) -> None:
    """Print the proposal, if the person did not see it before, and what was written."""
    if done.record:
        _print_proposal(done.record)
    if done.written or not (done.dry_run or done.record.changes):
        output.line()
        output.line(done.message)
    if done.next:
        output.note(f"next: {done.next}")


adopt = command_of(Adopt, _show)
