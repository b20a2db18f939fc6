"""Drift between a server and its sources, with the effect on callers and the command to run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.files import read_json
from mcpfactory_pipeline.base.hashing import ABSENT, hash_bytes, hash_file, shorten_hash
from mcpfactory_pipeline.decisions.drift import adopted_offer_commands, is_from_other_offer
from mcpfactory_pipeline.decisions.integrity import channel_state_faults
from mcpfactory_pipeline.state.state import ServerState, StageRecord
from mcpfactory_pipeline.workspace.adopted import Drift, read_known_drift
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceDocument, WorkspaceServer

_LOCK: Final = Path(".mcpfactory", "lock.json")
_MAX_NAMED: Final = 3  # maximum edited files that a message lists
_README_COUNT: Final = re.compile(r"^Made by mcpfactory from `[^`\n]*`: (\d{1,6}) tools?\b", re.MULTILINE)
_PARTS: Final = ("template", "codegen", "runtime")


@dataclass(frozen=True, slots=True)
class _DriftInputs:
    workspace: Workspace
    server: WorkspaceServer
    state: ServerState
    inputs: Mapping[str, Mapping[str, str]]

    @property
    def run(self) -> str:
        return f"mcpfactory pipeline run {self.server.name}"

    @property
    def update(self) -> str:
        return f"mcpfactory update {self.server.name}"

    @property
    def generated(self) -> StageRecord | None:
        record = self.state.stages.get("generate")
        return record if record and record.outcome == "passed" else None

    def now(self, name: str) -> str:
        return self.inputs.get("generate", {}).get(name, ABSENT)


def find_drift(
    workspace: Workspace,
    server: WorkspaceServer,
    state: ServerState,
    inputs: Mapping[str, Mapping[str, str]],
    *,
    refresh: bool = False,
    seen: Sequence[Drift] = (),
) -> list[Drift]:
    """Return all drift of a server.

    `inputs` are the current inputs of its stages. If `refresh` is True, the document's URL is read again. `seen` is the
    latest result of `refresh_adopted_drift`.
    """
    if state.retired:
        return []
    case = _DriftInputs(workspace, server, state, inputs)
    finders = (*_FINDERS, _upstream) if refresh else _FINDERS
    found = [drift for finder in finders for drift in finder(case)]
    return [*found, *(drift for drift in seen if drift not in found)]


def refresh_adopted_drift(server: WorkspaceServer) -> list[Drift]:
    """Check an adopted server for changes, and return all changes.

    Changes that stop the server are recorded as known drift. If the source does not respond, the known drift is kept.
    """
    if server.adopted is None:
        return []
    from mcpfactory_pipeline.adoption.drift_check import check_adopted_drift, record_known_drift  # noqa: PLC0415 - heavy

    seen = check_adopted_drift(server)
    with suppress(OSError):  # show the result even to users who cannot write the record
        record_known_drift(server, seen)
    return seen


def _document(case: _DriftInputs) -> Iterator[Drift]:
    now = case.inputs.get("generate", {}).get("document")
    if case.generated is None or now is None or case.generated.inputs.get("document") in {None, now}:
        return
    updated = case.generated.inputs.get("generated") != case.now("generated") and not any(_edited(case))
    if not updated:  # after `update`, the tools are those of the document
        what = "is gone" if now == ABSENT else "has changed since the tools were generated"
        yield Drift("document", f"the API document {what}", "tools may lack operations, or call removed ones", case.run)


def _edited(case: _DriftInputs) -> Iterator[Drift]:
    record, now = case.state.stages.get("generate"), case.now("generated")
    if now == ABSENT or (record is not None and record.inputs.get("generated") == now):
        return
    try:
        files = _lock(case)["files"]
        written = {path: entry["sha256"] for path, entry in files.items() if entry["owner"] == "machine"}
    except (KeyError, TypeError, AttributeError):
        return
    found = [
        path for path, digest in sorted(written.items()) if hash_file(case.server.folder / path) != f"sha256:{digest}"
    ]
    if found:
        more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
        message = f"edited by hand: {', '.join(found[:_MAX_NAMED])}{more}"
        means = "the next run rewrites them, and the edit is lost: move it to server.py"
        yield Drift("edited", message, means, f"git diff -- servers/{case.server.name}")


def _lock(case: _DriftInputs) -> Mapping[str, Any]:
    return read_json(case.server.folder / _LOCK)


def _readme(case: _DriftInputs) -> Iterator[Drift]:
    made = case.generated.summary.get("tools") if case.generated else None
    if made is None:
        return
    try:
        text = (case.server.folder / "README.md").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    count = _README_COUNT.search(text)
    if count is not None and int(count[1]) != made:
        means = "readers look for tools that do not exist, or do not find existing tools"
        yield Drift("readme", f"README.md says {count[1]} tools, there are {made}", means, case.update)


def _template(case: _DriftInputs) -> Iterator[Drift]:
    """Compare the template with the version that the user's files were made from or merged with."""
    now, before = case.now("template"), _merged_with(case)
    if ABSENT not in {now, before} and now != before:
        means = "a run regenerates only generated files; `update` merges the changes into your files"
        yield Drift("template", f"the template changed: {_short(before)} → {_short(now)}", means, case.update)


def _merged_with(case: _DriftInputs) -> str:
    """Return the version of the template that the user's files contain; `none` if unknown."""
    record, now = case.generated, case.inputs.get("generate", {}).get("generated")
    known = _lock(case) if record is None or record.inputs.get("generated") != now else record.summary
    return shorten_hash(str(known.get("template", ABSENT)))


def _moved(case: _DriftInputs) -> Iterator[Drift]:
    """Yield the parts of the factory that have changed since a stage used them."""
    moved: dict[str, str] = {}
    # `_template` reports a changed template, so it is left out here.
    own_line = _merged_with(case) != ABSENT
    for stage, now in case.inputs.items():
        record = case.state.stages.get(stage)
        for part in _PARTS:
            before = record.inputs.get(part) if record else None
            if before is not None and part in now and before != now[part] and not (own_line and part == "template"):
                moved.setdefault(part, f"{part} {_short(before)} → {_short(now[part])}")
    if not moved:
        return
    words = ", ".join(moved[part] for part in _PARTS if part in moved)
    means, command = "until the next run, callers get what older parts made", case.run
    # A run updates only generated files, but the suggested update also merges the template into other files.
    if "template" in moved:
        means, command = f"{means}; update also merges template changes into your files", case.update
    yield Drift("moved", f"the factory changed: {words}", means, command)


def _behind(case: _DriftInputs) -> Iterator[Drift]:
    state = case.state
    newest = state.candidates.get(state.candidate or "")
    for name, release in sorted(state.channels.items()):
        known = state.candidates.get(release.candidate)
        if newest is None or known is None or release.candidate == state.candidate:
            continue
        if is_from_other_offer(case.server, state, release.candidate):
            message = (
                f"{name} has {release.version} ({release.candidate}), and another offer of its URL was adopted since"
            )
            means = f"callers get an offer that {name} has not accepted; install refuses it from there"
            yield Drift("offers", message, means, adopted_offer_commands(case.workspace, case.server, state, name)[0])
            continue
        count = newest.number - known.number
        how = f"{count} behind" if count > 0 else "not"
        message = f"{name} offers {release.version} ({release.candidate}), which is {how} the newest candidate"
        means = f"callers of {name} do not have the changes since"
        yield Drift("behind", message, means, f"mcpfactory inbox {state.server}")


def _channel(case: _DriftInputs) -> Iterator[Drift]:
    """Compare each channel's folder on this machine with the state. A missing folder is not drift."""
    damaged, late = channel_state_faults(case.workspace, case.state)
    if faults := [*damaged, *late]:
        means = "installations from pipeline/channels on this machine get other files, or fail"
        yield Drift("channel", "; ".join(faults), means, f"mcpfactory pipeline restore {case.server.name}")


def _live(case: _DriftInputs) -> Iterator[Drift]:
    """Compare the last published release with the channel's release. Use only the state."""
    server = case.server.name
    for target, live in sorted(case.state.published.items()):
        offers = case.state.channels.get(live.channel)
        there = f"{target} has {live.version} ({live.candidate})"
        publish = f"mcpfactory publish {server} --target {target}"
        if offers is None:
            message = f"{there}, and {live.channel} offers nothing"
            means = f"{target} still offers a release that was rolled back"
            yield Drift("live", message, means, f"mcpfactory pipeline history {server}")
        elif offers.candidate != live.candidate:
            means = f"installations from {target} do not get the promoted release"
            if offers.version == live.version:
                means += "; the version is the same, so the release needs a new version"
            option = "" if live.channel == "production" else f" --channel {live.channel}"
            message = f"{there}, {live.channel} offers {offers.version} ({offers.candidate})"
            yield Drift("live", message, means, publish + option)
        elif newest := live.evidence.get("newest"):
            message = f"{target} also has {newest}, and {live.channel} offers {live.version}"
            means = f"{target} gives the rolled-back release as the newest: yank {newest} there, then publish again"
            yield Drift("live", message, means, publish)


def _upstream(case: _DriftInputs) -> Iterator[Drift]:
    for document in case.server.documents:
        if document.source.startswith(("http://", "https://")):
            yield from _refreshed(case, document)


def _refreshed(case: _DriftInputs, document: WorkspaceDocument) -> Iterator[Drift]:
    from mcpfactory_codegen.read.document import DocumentError, load  # noqa: PLC0415 - heavy
    from mcpfactory_codegen.servers.documents import collect_document_files  # noqa: PLC0415 - heavy; only for --refresh

    try:
        fresh = collect_document_files(load(document.source), document.label)
    except DocumentError as error:
        message, means = f"{document.source} cannot be read: {error}", "it is unknown if the API changed"
        yield Drift("source", message, means, f"mcpfactory inbox --refresh {case.server.name}")
        return
    changed = [path for path, data in fresh.files.items() if hash_file(case.server.folder / path) != hash_bytes(data)]
    if changed:
        message = f"{document.source} differs from {changed[0]}"
        update = f"{case.update} --api {document.label}" if document.label else case.update
        yield Drift("source", message, "the API changed, but the tools did not", update)


_FINDERS: Final[tuple[Callable[[_DriftInputs], Iterable[Drift]], ...]] = (
    _document, _edited, _readme, _template, _moved, _behind, _channel, _live,
    lambda case: read_known_drift(case.server.folder, case.server.adopted),
)  # fmt: skip
KINDS: Final = (
    "document", "edited", "readme", "template", "moved", "behind", "channel", "live", "source", "gone",
    "version", "replaced", "offers",
)  # fmt: skip


def _short(value: str) -> str:
    return value.removeprefix("sha256:")[:12] if value.startswith("sha256:") else value
