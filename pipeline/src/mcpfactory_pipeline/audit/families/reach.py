"""Rules over what a server reaches of this machine: containers that are no walls, and folders that hold everything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.audit.rule import AuditedServer, AuditRule, Said, each_server

__all__ = ["RULES"]

_SOCKETS: Final = re.compile(r"(docker|podman|containerd|crio)[\w.-]*\.sock\b|docker_engine")
_ROOMS: Final = (  # folders that hold what is not meant for a server
    (re.compile(r"/+|[A-Za-z]:[\\/]*"), "the whole disk"),
    (re.compile(r"(~|\$\{?HOME\}?|%USERPROFILE%|\$\{?env:HOME\}?|\$\{userHome\})[\\/]*"), "the whole home folder"),
    (re.compile(r"(/home|/Users|[A-Za-z]:[\\/]Users)([\\/][^\\/]+)?[\\/]*|/root/*", re.IGNORECASE), "a whole home folder"),
    (re.compile(r"(/private)?/(etc|var|proc|sys|dev|boot|run)/*"), "a folder of the system"),
    (re.compile(r".*[\\/]\.(ssh|aws|gnupg|kube|docker|azure|gcloud|config|mozilla|password-store)([\\/].*)?"), "keys and settings of other programs"),
    (re.compile(r".*[\\/](\.env(\.\w+)?|\.netrc|\.npmrc|\.pypirc|id_(rsa|ed25519)|credentials)"), "a file of secrets"),
)  # fmt: skip
_POWERS: Final = {
    "--cap-add": re.compile(r"(CAP_)?(ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE|NET_ADMIN|DAC_READ_SEARCH|SYS_RAWIO)", re.IGNORECASE),
    "--security-opt": re.compile(r"(seccomp|apparmor|systempaths)[=:]unconfined|label[=:]disable", re.IGNORECASE),
    "--pid": re.compile(r"host"), "--ipc": re.compile(r"host"), "--userns": re.compile(r"host"), "--uts": re.compile(r"host"),
    "--cgroupns": re.compile(r"host"), "--device": re.compile(r"/dev/(mem|kmem|sd|nvme|kvm|disk)\S*"),
}  # fmt: skip


def _privileged(one: AuditedServer) -> Iterator[Said]:
    run = one.server.origin.run
    if run is None:
        return
    if "--privileged" in run.options:
        yield "--privileged gives the container this machine"
    for name, pattern in _POWERS.items():
        for value in run.options.get(name, ()):
            if pattern.fullmatch(value):
                yield f"{name} {value} takes a wall of the container away"


def _host_network(one: AuditedServer) -> Iterator[Said]:
    run = one.server.origin.run
    if run is not None and "host" in run.options.get("--network", ()):
        yield "the container is in the network of this machine, and reaches what listens for it alone"


def _engine(one: AuditedServer) -> Iterator[Said]:
    run = one.server.origin.run
    for mount in run.mounts if run else ():
        if _SOCKETS.search(mount.source):
            yield f"{mount.source} lets it start containers that have this machine"


def _room(path: str) -> str:
    """Return what of this machine a folder holds that is more than a server should have; "" for others."""
    return next((says for pattern, says in _ROOMS if pattern.fullmatch(path)), "")


def _mount(one: AuditedServer) -> Iterator[Said]:
    run = one.server.origin.run
    for mount in run.mounts if run else ():
        if (room := _room(mount.source)) and not _SOCKETS.search(mount.source):
            yield f"the container {'writes' if mount.writable else 'reads'} {mount.source}: {room}"


def _wide(one: AuditedServer) -> Iterator[Said]:
    server = one.server
    if server.origin.run is not None:
        return
    for word in server.words[1:]:
        path = word.partition("=")[2] if word.startswith("-") else word
        if path and path not in server.origin.scripts and (room := _room(path)):
            yield f"it is given {path}: {room}"


RULES: Final[tuple[AuditRule, ...]] = (
    AuditRule(
        "container.privileged", 5,
        statement="A container keeps its walls.",
        reason="what runs in it can do what the administrator of this machine can",
        hint="leave the option out, or give the one capability that is needed", check=each_server(_privileged),
    ),
    AuditRule(
        "container.host-network", 3,
        statement="A container has a network of its own.",
        reason="it reaches databases and consoles that trust whoever is on this machine",
        hint="leave --network host out, and name the host that it needs: --add-host", check=each_server(_host_network),
    ),
    AuditRule(
        "container.engine-socket", 5,
        statement="No container controls the engine of containers.",
        reason="who may start containers may read and write this whole machine",
        hint="put a proxy between them that lets through only what is needed, or start it without the socket", check=each_server(_engine),
    ),
    AuditRule(
        "container.mount", 3,
        statement="A container sees the folder that it works on.",
        reason="keys, histories and settings of other programs stand in the others",
        hint="mount one folder, read-only where it does not write: src=…,dst=…,readonly", check=each_server(_mount),
    ),
    AuditRule(
        "files.wide", 3,
        statement="A server is given the folder that it works on.",
        reason="a model that was talked into it reads or writes all that is in there",
        hint="name one folder of a project", check=each_server(_wide),
    ),
)  # fmt: skip
