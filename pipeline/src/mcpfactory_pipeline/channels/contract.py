"""The contract with callers of a server: the tool list of the candidate that a channel offers.

The stage `validate` stores the tool list of each candidate as `tools.json`. A comparison of two tool lists returns the
breaking changes and the required version step.
"""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.servers.manifest_diff import Change, diff
from mcpfactory_pipeline.base.errors import NotFoundError, ServerError, StateError
from mcpfactory_pipeline.base.text import join_lines, truncate
from mcpfactory_pipeline.base.versions import Step, ensure_sufficient_version, is_sufficient_step, version_step
from mcpfactory_pipeline.plan.gates import count_breaking_changes
from mcpfactory_pipeline.plan.policy import read_channels
from mcpfactory_pipeline.state.state import Release, ServerState
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.adopted import adopted_version
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

FILE: Final = "tools.json"
_SHOWN: Final = 5  # maximum number of changes in a message
_WIDTH: Final = 200  # maximum characters of a change in a message
_RECORDED: Final = 50  # maximum number of breaking changes that an approval records
_LARGEST: Final = 50_000_000  # maximum bytes of a manifest in a wheel
_MANIFEST: Final = re.compile(r"(?:.*/)?_generated/manifest\.json")
_VERSION: Final = re.compile(r"""^__version__\s*=\s*["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Contract:
    """Tool list with the version of its server ("" if unknown) and a description of the list's source."""

    tools: tuple[Mapping[str, Any], ...]
    version: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ContractComparison:
    """Changes between two tool lists, and their effects on callers.

    `stale` has the generated files that differ from the document and the configuration, so that changes are missing.
    """

    changes: tuple[Change, ...]
    before: Contract
    after: Contract
    stale: tuple[str, ...] = ()

    @property
    def needed(self) -> Step:
        """Return the version step that the changes require."""
        kinds = {change.kind for change in self.changes}
        return "major" if "breaking" in kinds else "minor" if "additive" in kinds else "patch" if kinds else "none"

    @property
    def kept(self) -> bool:
        """Return True if no change breaks callers, or if the major version was increased."""
        return self.needed != "major" or is_sufficient_step(self.before.version, self.after.version, "major")

    @property
    def proposed(self) -> str:
        """Return the version of `after` if its step is large enough, else the next sufficient version."""
        return ensure_sufficient_version(self.before.version, self.after.version, self.needed)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "against": self.before.source,
            "before": self.before.version,
            "after": self.after.version,
            "needed": self.needed,
            "step": version_step(self.before.version, self.after.version),
            "proposed": self.proposed,
            "kept": self.kept,
            "stale": self.stale,
            "changes": [asdict(change) for change in self.changes],
        }


def compare_contracts(before: Contract, after: Contract) -> ContractComparison:
    """Return the effects on callers if the contract `after` replaces the contract `before`."""
    return ContractComparison(diff({"tools": before.tools}, {"tools": after.tools}), before, after)


async def compare_source_contract(workspace: Workspace, server: str, against: str = "") -> ContractComparison:
    """Compare the tools of a server's sources with a released contract. `find_contract` explains `against`.

    Raise a CreateError if the document of the server is unusable.
    """
    from mcpfactory_codegen.servers.create import stale_files  # noqa: PLC0415 - heavy; only this command generates

    known = workspace.server(server)
    before = find_contract(workspace, Store(workspace).state(server), against)
    stale = stale_files(known.folder) if known.document else ()
    return replace(compare_contracts(before, await source_contract(known)), stale=stale)


async def source_contract(server: WorkspaceServer) -> Contract:
    """Start a server from its sources, and return all its tools and its version.

    The tools do not depend on the default profile.
    """
    from mcpfactory_pipeline.launch.server_connection import connect_server  # noqa: PLC0415 - heavy
    from mcpfactory_runtime import McpError  # noqa: PLC0415 - heavy; only commands that compare sources start a server

    offer = {"MCPFACTORY_MODE": "full", "MCPFACTORY_PROFILE": "full", "MCPFACTORY_DIALECT": "standard"}
    offer |= {"MCPFACTORY_DEMO": "1"}  # `validate` also sets this variable when it lists tools
    try:
        async with connect_server(server, offer) as client:
            return Contract(tuple(await client.list_tools()), read_source_version(server), "source")
    except McpError as error:
        raise ServerError(
            f"the tools of {server.name} cannot be listed: {error}", hint=f"mcpfactory inspect {server.name} --start"
        ) from error


def contract_to_text(tools: Sequence[Any], version: str = "") -> str:
    """Return the text to store for a tool list: one tool per line, sorted by name."""
    rows = sorted((tool["name"], tool) for tool in tools if _is_tool(tool))
    lines = ",\n".join(json.dumps(tool, sort_keys=True, ensure_ascii=False) for _, tool in rows)
    return f'{{"contract": 1, "version": {json.dumps(version)}, "tools": [\n{lines}\n]}}\n'


def stored_contract(folder: Path, version: str = "", source: str = "", *, manifest: bool = False) -> Contract | None:
    """Return the contract of the candidate with the files in `folder`; None if the files are missing.

    Use the tool list that `validate` stored. If the tool list is missing, or if `manifest` is True, use the manifest in
    the wheel.
    """
    kept = folder / "validate" / FILE
    try:
        if kept.is_file() and not manifest:
            return Contract(_tools(json.loads(kept.read_bytes())), version, source)
        for wheel in sorted(folder.glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                if (found := wheel_manifest(archive)) is not None:
                    return Contract(_tools(found), version, source)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, zipfile.BadZipFile) as error:
        raise StateError(
            f"the contract in {folder} cannot be read: {error}", hint="mcpfactory pipeline run NAME --force"
        ) from error
    return None


def wheel_manifest(wheel: zipfile.ZipFile) -> Any:
    """Return the generated manifest in a wheel, or None if the wheel has no manifest."""
    for entry in wheel.infolist():
        if _MANIFEST.fullmatch(entry.filename) and entry.file_size <= _LARGEST:
            return json.loads(wheel.read(entry))
    return None


def breaking_changes_by_candidate(tools: Sequence[Any], folder: Path, own: str) -> dict[str, int]:
    """Return the number of breaking changes since each candidate below `folder`, by candidate; 0 for `own`.

    A candidate is omitted if its tool list is unreadable or not on this machine.
    """
    after = Contract(tuple(tool for tool in tools if _is_tool(tool)))
    found = {own: 0}
    for other in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            before = stored_contract(other) if other.name != own else None
        except StateError:
            continue
        if before is not None:
            found[other.name] = sum(change.kind == "breaking" for change in compare_contracts(before, after).changes)
    return found


@dataclass(frozen=True, slots=True)
class BreakingChanges:
    """Changes that break callers of a release.

    If a tool list is not on this machine, `messages` is empty. If the number is also unknown, `count` is None.
    """

    count: int | None = 0
    messages: tuple[str, ...] = ()

    @property
    def recorded(self) -> tuple[str, ...]:
        """The messages that an approval records."""
        return self.messages[:_RECORDED]

    @property
    def named(self) -> str:
        """The first messages after a colon, as the end of a sentence; "" without messages."""
        more = f" and {len(self.messages) - _SHOWN} more" if len(self.messages) > _SHOWN else ""
        return f": {'; '.join(self.messages[:_SHOWN])}{more}" if self.messages else ""


def find_breaking_changes(
    workspace: Workspace, state: ServerState, candidate: str, offered: Release | None
) -> BreakingChanges:
    """Return the changes of a candidate that break callers of a release.

    `validate` records their number. Without this record, the tool lists on this machine are compared.
    """
    if offered is None or (count := count_breaking_changes(state.candidates[candidate], offered)) == 0:
        return BreakingChanges()
    folder = workspace.artifacts / state.server
    with suppress(StateError):
        before, after = (stored_contract(folder / name) for name in (offered.candidate, candidate))
        if before and after:
            changes = compare_contracts(before, after).changes
            messages = tuple(truncate(join_lines(one.message), _WIDTH) for one in changes if one.kind == "breaking")
            return BreakingChanges(len(messages) if count is None else count, messages)
    return BreakingChanges(count)


def find_contract(workspace: Workspace, state: ServerState, against: str = "") -> Contract:
    """Return the contract of a channel, a candidate or a file. A prefix of a candidate's ID is enough.

    If `against` is empty, return the contract of the last channel that offers the server.

    Raises:
        NotFoundError: unknown channel, candidate or file.
        StateError: the contract is not available on this machine, or cannot be read.
    """
    if not against and not state.channels:
        raise NotFoundError(
            f"{state.server} has no contract yet: no channel offers the server",
            hint=f"run 'mcpfactory pipeline run {state.server}', or select a file with --against",
        )
    name = against or _last_channel(workspace, state)
    if name in state.channels:
        release = state.channels[name]
        return _of_candidate(workspace, state, release.candidate, f"{name} ({release.version}, {release.candidate})")
    found = [candidate for candidate in state.candidates if candidate.startswith(name)]
    if len(found) == 1:
        return _of_candidate(workspace, state, found[0], f"candidate {found[0]}")
    file = Path(name)
    if not file.is_file():
        raise NotFoundError(
            f"{name!r} is neither a channel that offers {state.server}, nor a candidate of {state.server}, nor a file",
            hint=(
                f"choose from the channels: {', '.join(sorted(state.channels)) or 'none'}; candidates: "
                f"{', '.join(state.candidates) or 'none'}"
            ),
        )
    try:
        text = file.read_bytes()
    except OSError as error:
        raise StateError(f"{file} cannot be read: {error.strerror}", hint="make the file readable") from error
    return parse_contract(text, str(file))


def parse_contract(text: bytes, source: str) -> Contract:
    """Parse a contract from a file's content: a manifest, the output of `validate`, or a tools/list result."""
    try:
        data = json.loads(text)
        version = data.get("version") or data.get("server", {}).get("version", "") if isinstance(data, dict) else ""
        return Contract(_tools(data), str(version), source)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StateError(
            f"{source} is not a tool list: {error!r}",
            hint='use a manifest, or {"tools": [...]} as returned by tools/list',
        ) from error


def read_source_version(server: WorkspaceServer) -> str:
    """Return the version in a server's sources; "" if unknown.

    The version is `project.version`, else `__version__` of the package. For an adopted server, return the adopted
    version.
    """
    if server.adopted is not None:
        return adopted_version(server.adopted, server.folder)
    try:
        project = tomllib.loads((server.folder / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
        if isinstance(version := project.get("version"), str):
            return version
        init = server.folder / "src" / server.package.replace(".", "/") / "__init__.py"
        found = _VERSION.search(init.read_text(encoding="utf-8"))
    except (OSError, ValueError, AttributeError):
        return ""
    return found[1] if found else ""


def _last_channel(workspace: Workspace, state: ServerState) -> str:
    order = [channel.name for channel in read_channels(workspace)]
    return max(state.channels, key=lambda name: order.index(name) if name in order else -1)


def _of_candidate(workspace: Workspace, state: ServerState, candidate: str, source: str) -> Contract:
    known = state.candidates.get(candidate)
    folder = workspace.artifacts / state.server / candidate
    found = stored_contract(folder, known.version if known else "", source)
    if found is None:
        raise StateError(
            f"the tool list of {source} is not on this machine",
            hint=f"run 'mcpfactory pipeline restore {state.server} --candidate {candidate}' or 'mcpfactory pipeline run {state.server}'",
        )
    return found


def _tools(data: Any) -> tuple[Mapping[str, Any], ...]:
    tools = data["tools"] if isinstance(data, dict) else data
    if not isinstance(tools, list) or not all(_is_tool(tool) for tool in tools):
        raise ValueError("the text is not a list of tools with names")
    return tuple({key: value for key, value in tool.items() if key != "handler"} for tool in tools)


def _is_tool(tool: Any) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)
