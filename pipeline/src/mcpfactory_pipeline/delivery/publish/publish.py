"""Publication of servers: table of targets, checks for problems and secrets, and upload.

A publication records the event `publish.started` before the upload, and the event `published` afterwards. If the
process is killed between these events, `inbox` shows the unfinished publication. Another `publish` uploads the missing
files.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal

from mcpfactory_codegen.settings import Settings
from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.adoption.candidate import KINDS
from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord, NotFoundError, PublishError, StateError
from mcpfactory_pipeline.base.files import write_if_changed
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.base.ids import Clock, utc_now
from mcpfactory_pipeline.base.locks import file_lock
from mcpfactory_pipeline.build.factory_distributions import RUNTIME, cached_runtime_wheel
from mcpfactory_pipeline.build.secret_scan import find_secrets_in_files
from mcpfactory_pipeline.channels.candidate import channels_folder, find_artifact, verify_candidate_files
from mcpfactory_pipeline.channels.channel import offered_project_file
from mcpfactory_pipeline.channels.contract import stored_contract
from mcpfactory_pipeline.decisions.integrity import require_integrity
from mcpfactory_pipeline.delivery.publish import docker, mcpb, pypi, registry, sbom
from mcpfactory_pipeline.delivery.publish.bundle_program import LIBRARY, wheels
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease, read_adopted_release, read_release
from mcpfactory_pipeline.delivery.publish.target import PublishTarget, TargetSettings
from mcpfactory_pipeline.plan.policy import describe_decision, find_channel, read_channels
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import CONFIG, Workspace

_ROWS: Final = (
    pypi.TARGET,
    mcpb.TARGET,
    docker.TARGET,
    sbom.TARGET,
    registry.TARGET,  # must be last, because the registry entry refers to the other targets
)
TARGETS: Final[Mapping[str, PublishTarget]] = {row.id: row for row in _ROWS}


def targets_named(names: Iterable[str], table: Mapping[str, PublishTarget] = TARGETS) -> Sequence[PublishTarget]:
    """Return the targets with these names, in the order of the table."""
    wanted = set(names)
    if unknown := sorted(wanted - set(table)):
        raise NotFoundError(f"unknown target {unknown[0]!r}", hint=did_you_mean(unknown[0], table, "targets"))
    return [row for row in table.values() if row.id in wanted]


_INSTALLED: Final = f"server/{LIBRARY}/"  # folder with the installed files in a bundle


def find_published_secrets(release: CandidateRelease, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield descriptions of secrets in the files for a target.

    Third-party files in a bundle are skipped, because they are already public.
    """
    own = {member for name, wheel in wheels(release).items() for member, _ in _members(name, wheel, ())}
    found = [(name, *member) for name, content in files.items() for member in _members(name, content, own)]
    yield from find_secrets_in_files(found)


def _members(name: str, content: bytes, own: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the files in an archive and in its wheels. Any other file is yielded unchanged."""
    if name.endswith((".mcpb", ".whl")) and zipfile.is_zipfile(io.BytesIO(content)):
        for member, data in _zip_members(content):
            if not member.startswith(_INSTALLED) or member.removeprefix(_INSTALLED) in own:
                yield from _members(member, data, own)
    else:
        yield name, content


def _zip_members(content: bytes) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            yield info.filename, archive.read(info)


Mode = Literal["send", "dry-run", "check"]
_PATIENCE: Final = 900.0  # seconds; maximum time to wait while another process publishes the server
_PACKED: Final = "python"  # kind of adopted servers whose wheels were built on this machine


@dataclass(frozen=True, slots=True)
class PublishOutcome(JsonRecord):
    """Result of the publication of a release to one target.

    `outcome` has one of these values:

    - `published`: the release was uploaded.
    - `there`: the target already has the release.
    - `made`: the files were built for a target without upload.
    - `would`: in a dry run, the release would be uploaded.
    - `fit`: a check found no problems.
    - `refused`: `problems` has the reasons.
    """

    target: str
    outcome: str
    server: str
    version: str
    candidate: str
    digest: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    folder: str = ""
    evidence: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[Mapping[str, str], ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True)
class _Delivery:
    target: PublishTarget
    settings: TargetSettings
    files: Mapping[str, bytes]
    problems: tuple[Mapping[str, str], ...]


def publish(
    workspace: Workspace,
    server: str,
    targets: Sequence[str] = (),
    *,
    channel: str = "production",
    candidate: str = "",
    mode: Mode = "send",
    given: Mapping[str, Mapping[str, str]] | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Clock = utc_now,
    table: Mapping[str, PublishTarget] = TARGETS,
) -> list[PublishOutcome]:
    """Publish the candidate that a channel offers.

    If one target has a problem, nothing is sent to any target. `targets` defaults to `[publish] targets` in the
    candidate. `candidate` is the ID that the channel must offer, or "" for any candidate. `given` has options that
    override the workspace's options. In mode `dry-run`, the state of the targets is read, but nothing is sent. In mode
    `check`, the network is not used.

    Raises:
        NotFoundError: the server, the channel, a target, or the target of an option is unknown.
        ConfigError: a setting is invalid, or a token is not set.
        PublishError: the channel offers nothing, or a target refuses the release.
        TargetUnavailableError: a target cannot be reached.
        StateError: the candidate's files are not on this machine.
    """
    store, environ = Store(workspace, clock), os.environ if environ is None else environ
    named = targets_named(targets, table)
    targets_named(given or {}, table)  # raises an error for unknown targets
    with _lock_server(store, server, mode):
        release = find_release(workspace, server, channel)
        if candidate not in {"", release.candidate}:
            raise PublishError(
                f"{channel} offers candidate {release.candidate} of {server}, not {candidate}",
                hint=f"mcpfactory publish {server} --channel {channel} publishes the offered candidate",
            )
        chosen = named or targets_named(_requested_targets(release), table)
        deliveries = [_prepare(workspace, release, target, given or {}, environ, mode=mode) for target in chosen]
        if mode == "check" or any(delivery.problems for delivery in deliveries):
            return [_check_outcome(release, delivery, mode) for delivery in deliveries]
        _refuse_early(store, release, chosen)
        seen = [_inspect(release, delivery) for delivery in deliveries]
        if mode == "dry-run" or any(outcome.problems for outcome in seen):
            return seen
        return [_publish_to(store, release, delivery, found) for delivery, found in zip(deliveries, seen, strict=True)]


def find_release(workspace: Workspace, server: str, channel: str) -> CandidateRelease:
    """Return the server's release in a channel.

    Raises:
        PublishError: the channel offers nothing, or the server is retired or cannot be published.
        RefusedError: `verify` would refuse the server.
        StateError: the candidate's files are not on this machine.
    """
    adopted = workspace.server(server).adopted
    if adopted is not None and adopted.kind != _PACKED:
        whose = KINDS[adopted.kind].upstream or "its own project"
        raise PublishError(
            f"mcpfactory does not publish the adopted server {server}; {whose} publishes this server",
            hint=f"install the release of a channel for local users: 'mcpfactory install {server} --client CLIENT'",
        )
    find_channel(read_channels(workspace), channel)
    require_integrity(workspace, server)
    state = Store(workspace).state(server)
    if state.retired:
        raise PublishError(
            f"{server} is {describe_decision('retired', state.retired)}", hint=f"mcpfactory pipeline revive {server}"
        )
    offered = state.channels.get(channel)
    artifact = find_artifact(workspace, state, offered.candidate) if offered else None
    if artifact is None:
        raise PublishError(
            f"{channel} has no release of {server}: only promoted candidates are published",
            hint=f"mcpfactory pipeline promote {server} --channel {channel}",
        )
    try:
        verify_candidate_files(artifact)
    except StateError as error:
        hint = f"mcpfactory pipeline restore {server} --candidate {artifact.id}"
        raise StateError(f"candidate {artifact.id} of {server} cannot be published: {error}", hint=hint) from error
    known = stored_contract(artifact.folder)
    if adopted is not None:
        return read_adopted_release(server, channel, artifact, known.tools if known else ())
    # Use the channel's runtime, because other runtime wheels on this machine may come from different sources.
    runtime = offered_project_file(channels_folder(workspace), channel, RUNTIME) or cached_runtime_wheel(
        workspace.artifacts, build=False
    )
    return read_release(server, channel, artifact, known.tools if known else (), (runtime,) if runtime else ())


@contextmanager
def _lock_server(store: Store, server: str, mode: Mode) -> Iterator[None]:
    """Lock the publication of one server. Dry runs also take the lock, because they write the same files."""
    if mode == "check":
        yield
        return
    with file_lock(store.locks / f"{server}.publish.lock", timeout=_PATIENCE):
        yield


def _requested_targets(release: CandidateRelease) -> Sequence[str]:
    requested = release.config.publish.targets
    if not requested:
        raise ConfigError(
            f"candidate {release.candidate} of {release.server} has no publish targets",
            hint=(
                f"pass --target TARGET, or set [publish] targets = […] in servers/{release.server}/{CONFIG} and "
                "build a new candidate"
            ),
        )
    return requested


def resolve_target_settings(
    workspace: Workspace,
    release: CandidateRelease,
    target: PublishTarget,
    environ: Mapping[str, str],
    given: Mapping[str, str] = MappingProxyType({}),
) -> TargetSettings:
    """Return the settings of a target for a release."""
    table = getattr(workspace.settings.publish, target.id, Settings())
    folder = workspace.artifacts / release.server / release.candidate / "publish" / target.id
    return target.settings(table, environ, folder, given)


def _prepare(
    workspace: Workspace,
    release: CandidateRelease,
    target: PublishTarget,
    given: Mapping[str, Mapping[str, str]],
    environ: Mapping[str, str],
    *,
    mode: Mode,
) -> _Delivery:
    settings = resolve_target_settings(workspace, release, target, environ, given.get(target.id, {}))
    problems = tuple(
        {"rule": one.rule, "message": one.message, "hint": one.hint} for one in target.check(release, settings)
    )
    if mode == "check" or problems:  # do not build, because a build may download requirements
        return _Delivery(target, settings, {}, problems)
    files = target.build(release, settings)
    hint = "remove it from the server's sources, revoke the secret, and make a new candidate"
    leaks = tuple(
        {"rule": f"{target.id}/secret", "message": found, "hint": hint}
        for found in find_published_secrets(release, files)
    )
    return _Delivery(target, settings, files, leaks)


def _refuse_early(store: Store, release: CandidateRelease, chosen: Sequence[PublishTarget]) -> None:
    live = store.state(release.server).published
    there = {name for name, known in live.items() if known.candidate == release.candidate}
    for target in chosen:
        if missing := [name for name in target.needs(release) if name not in {*there, *(one.id for one in chosen)}]:
            raise PublishError(
                f"{target.id} requires {release.server} {release.version} to be published to {missing[0]} first",
                hint=f"mcpfactory publish {release.server} --target {missing[0]} --target {target.id}",
            )


def _outcome(release: CandidateRelease, delivery: _Delivery, outcome: str, **more: Any) -> PublishOutcome:
    files = {name: hash_bytes(data) for name, data in delivery.files.items()}
    return PublishOutcome(
        delivery.target.id, outcome, release.server, release.version, release.candidate, files=files, **more
    )


def _check_outcome(release: CandidateRelease, delivery: _Delivery, mode: Mode) -> PublishOutcome:
    if delivery.problems:
        message = f"{release.server} {release.version} cannot go to {delivery.target.id}"
        return _outcome(release, delivery, "refused", problems=delivery.problems, message=message)
    words = "fits" if mode == "check" else "fits, but another target refuses it"
    return _outcome(release, delivery, "fit", message=f"{release.server} {release.version} {words}")


def _inspect(release: CandidateRelease, delivery: _Delivery) -> PublishOutcome:
    about, target = f"{release.server} {release.version}", delivery.target
    if target.inspect is None:
        return _outcome(release, delivery, "would", message=f"{about} would be built")
    live = target.inspect(release, delivery.settings)
    if live.other:
        hint = f"set a new version of {release.server}, run and promote it, then publish again: published files stay"
        problem = {"rule": "", "message": live.other, "hint": hint}
        return _outcome(
            release, delivery, "refused", problems=(problem,), message=f"{target.id} already has a different {about}"
        )
    if live.same is not None:
        facts = {"digest": live.same.digest, "evidence": live.same.facts}
        message = f"{about} is at {target.id} already, byte for byte"
        return _outcome(release, delivery, "there", **facts, message=message)
    lacks = f": {', '.join(live.missing)}" if live.missing else ""
    return _outcome(release, delivery, "would", message=f"{about} would be sent to {target.id}{lacks}")


def _publish_to(store: Store, release: CandidateRelease, delivery: _Delivery, found: PublishOutcome) -> PublishOutcome:
    target, about = delivery.target, f"{release.server} {release.version}"
    if target.upload is None:
        folder = delivery.settings.folder  # folder `publish` of the candidate, separate from the release's own files
        for name, data in delivery.files.items():
            write_if_changed(folder / name, data)
        return _outcome(release, delivery, "made", folder=str(folder), message=f"{about} was built for {target.id}")
    common = {"target": target.id, "channel": release.channel}
    common |= {"candidate": release.candidate, "version": release.version}
    if found.outcome == "there":
        # Read the state in the transaction, because the state file may be stale after a crash.
        with store.transaction(release.server) as transaction:
            known = transaction.state.published.get(target.id)
            recorded = known and (known.candidate, known.digest, known.evidence)
            unfinished = target.id in transaction.state.publishing
            if unfinished or recorded != (release.candidate, found.digest, found.evidence):
                transaction.append("published", **common, digest=found.digest, evidence=dict(found.evidence))
        return found
    with store.transaction(release.server) as transaction:
        transaction.append("publish.started", **common)
    evidence = target.upload(release, delivery.settings)
    with store.transaction(release.server) as transaction:
        transaction.append("published", **common, digest=evidence.digest, evidence=dict(evidence.facts))
    facts = {"digest": evidence.digest, "evidence": evidence.facts}
    return _outcome(release, delivery, "published", **facts, message=f"{about} is at {target.id}")
