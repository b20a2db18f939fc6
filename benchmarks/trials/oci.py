"""Images of servers of this repository: built twice, pushed to a real registry on loopback, pulled back, unpacked and run.

The registry is Debian's `docker-registry`; `skopeo`, where it is installed, is asked what it sees there. What was pulled is
unpacked into a folder, and run by `chroot --userspec` as the image's user, with the image's environment and nothing else.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.trials.ground import ROOT
from benchmarks.trials.promoted import SERVERS, promoted, tools
from mcpfactory_pipeline.publish.distribution import ImageRegistry, parse_reference
from mcpfactory_pipeline.publish.http import open_client
from mcpfactory_pipeline.publish.layout import Layout, OciImage
from mcpfactory_pipeline.publish.publish import publish
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["as_user", "installed", "pull", "run", "serving", "unpack"]

_PLATFORM = {"os": "linux"}
_WHITEOUT = ".wh."
_PUBLISH = """\
import sys
from pathlib import Path
from mcpfactory_pipeline.publish.publish import publish
from mcpfactory_pipeline.workspace.workspace import Workspace
publish(Workspace.find(Path(sys.argv[1])), sys.argv[2], ["oci"], given={"oci": {"image": sys.argv[3]}})
"""


def run(folder: Path, times: int, _seed: int) -> Outcome:
    """Builds each image `times` times; the figure says how many came out the same, travelled, and answered."""
    if os.geteuid() or not all(map(_program, ("chroot", "ldd"))):
        return unavailable("chroot needs root, and the base ldd")
    if not installed("docker-registry", "docker-registry"):
        return unavailable("docker-registry is not installed: apt-get install docker-registry")
    spaces = [promoted(folder / f"place {number}", SERVERS) for number in range(times)]
    faults = 0
    with serving(folder / "registry") as host:
        print(
            f"{'image':22} {'bytes':>9} {'same':5} {'killed':7} {'again':6} {'pulled':7} {'labels':7} {'skopeo':7} {'user':6} tools"
        )
        base = ""
        for server in SERVERS:
            # The first stands on the Python of this machine; the others on the first, named by its hash as any base is.
            found, base = _one(folder, spaces, server, host, base)
            faults += found
    return judged(f"{len(SERVERS)} images, each built {times} times: {faults} with a fault", good=not faults)


def _one(folder: Path, spaces: list[Workspace], server: str, host: str, base: str) -> tuple[bool, str]:
    """One image; prints its row, says whether anything is wrong with it, and gives the base for the next."""
    where = f"{host}/acme/{server}"
    given = {"oci": {"image": where, **({"base": base} if base else {})}}
    digests = []
    for number, space in enumerate(spaces):
        with patch.dict(
            os.environ, {"TZ": ("UTC", "Asia/Tokyo")[number % 2], "SOURCE_DATE_EPOCH": str(1_600_000_000 + number)}
        ):
            (looked,) = publish(space, server, ["oci"], given=given, mode="dry-run")
            digests.append(looked.files["manifest.json"])
    killed = _killed(spaces[0], server, where, folder / "registry") if not base else "-"
    (sent,) = publish(spaces[0], server, ["oci"], given=given)
    (again,) = publish(spaces[0], server, ["oci"], given=given)
    pulled, layout = pull(folder / "pulled" / server, sent.evidence["image"])
    root = folder / "root" / server
    unpack(layout, pulled, root)
    labels = pulled.labels.get("org.opencontainers.image.version") == sent.version
    labels = labels and pulled.labels.get("mcpfactory.candidate") == sent.candidate
    facts = {
        "same": len(set(digests)) == 1, "killed": killed, "again": (sent.outcome, again.outcome) == ("published", "there"),
        "pulled": pulled.descriptor.digest == sent.digest == digests[0], "labels": labels,
        "skopeo": _skopeo(sent.evidence["image"], sent.digest, pulled.labels), "user": _user(root, pulled),
    }  # fmt: skip
    answered, listed = tools([*as_user(root, pulled), *pulled.config["config"]["Entrypoint"]]), _listed(server)
    words = {name: fact if isinstance(fact, str) else "yes" if fact else "NO" for name, fact in facts.items()}
    print(
        f"{server:22} {pulled.size:>9} {words['same']:5} {words['killed']:7} {words['again']:6} {words['pulled']:7} {words['labels']:7} "
        f"{words['skopeo']:7} {words['user']:6} {len(answered)} of {len(listed) or 'any'}", flush=True,
    )  # fmt: skip
    bad = "NO" in words.values() or not answered or bool(listed and answered != listed)
    return bad, base or f"{where}@{sent.digest}"


def _listed(server: str) -> list[str]:
    found = sorted((ROOT / "servers" / server).glob("src/*/_generated/manifest.json"))
    return sorted(tool["name"] for tool in json.loads(found[0].read_bytes())["tools"]) if found else []


def _killed(space: Workspace, server: str, where: str, storage: Path) -> str:
    """Publishes in a process that is killed (-9) once the first blob is there; the tag must not be, and the blob must."""
    process = subprocess.Popen([sys.executable, "-c", _PUBLISH, str(space.root), server, where], cwd=ROOT)
    blobs = storage / "docker/registry/v2/blobs"
    deadline = time.monotonic() + 300
    while process.poll() is None and time.monotonic() < deadline and not list(blobs.glob("sha256/*/*/data")):
        time.sleep(0.002)
    process.kill()
    died = process.wait() == -9
    with open_client() as wire:
        registry = ImageRegistry(wire, parse_reference(where))
        half = registry.find("0.1.0") is None and bool(list(blobs.glob("sha256/*/*/data")))
    return "yes" if died and half else "NO"


def pull(folder: Path, reference: str) -> tuple[OciImage, Layout]:
    """An image from a registry, in a layout of its own."""
    layout = Layout(folder)
    with open_client() as wire:
        return ImageRegistry(wire, parse_reference(reference)).pull(layout, _PLATFORM), layout


def _skopeo(reference: str, digest: str, labels: dict[str, str]) -> str:
    """What another implementation sees in the registry."""
    if not installed("skopeo", "skopeo"):
        return "-"
    done = subprocess.run(
        ["skopeo", "inspect", "--tls-verify=false", f"docker://{reference}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode:
        print(done.stderr, flush=True)
        return "NO"
    seen = json.loads(done.stdout)
    return "yes" if (seen["Digest"], seen["Labels"]) == (digest, labels) else "NO"


# --- what was pulled, as a file system ---


def unpack(layout: Layout, image: OciImage, root: Path) -> None:
    """The layers over each other, in a folder; what an upper one takes away (image specification, layer.md) goes."""
    root.mkdir(parents=True)
    for layer in image.layers:
        with tarfile.open(layout.path(layer.digest)) as archive:
            for member in archive:
                place = root / member.name
                if place.name.startswith(_WHITEOUT):
                    gone = place.with_name(place.name.removeprefix(_WHITEOUT))
                    shutil.rmtree(gone) if gone.is_dir() else gone.unlink(missing_ok=True)
                    continue
                archive.extract(member, root, numeric_owner=True)
    (root / "dev").mkdir(exist_ok=True)  # which every container engine provides
    for name, minor in (("null", 3), ("urandom", 9)):
        os.mknod(root / "dev" / name, stat.S_IFCHR, os.makedev(1, minor))
        (root / "dev" / name).chmod(0o666)


def as_user(root: Path, image: OciImage) -> list[str]:
    """The beginning of a command that runs in an unpacked image as its user, with its environment and nothing else."""
    config = image.config["config"]
    return ["env", "-i", *config["Env"], _program("chroot") or "chroot", f"--userspec={config['User']}", str(root)]


def _user(root: Path, image: OciImage) -> str:
    """The number of the user that the server runs as, and that it cannot write to its own program."""
    ask = (
        "import os; print(os.getuid(), os.getgid(), os.access('/app', os.W_OK), os.access(os.environ['HOME'], os.W_OK))"
    )
    done = subprocess.run([*as_user(root, image), "python3", "-c", ask], capture_output=True, text=True, check=False)
    uid, gid, app, home = done.stdout.split() if done.returncode == 0 else ("?", "?", "True", "False")
    return uid if uid == gid != "0" and (app, home) == ("False", "True") else "NO"


def _program(name: str) -> str | None:
    """Where a program is, also one for administrators only, whose folders are not in everybody's PATH."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


# --- the registry ---


def installed(program: str, package: str) -> bool:
    """Whether a program is there; Debian's package is installed where it is not and apt-get may."""
    if shutil.which(program) is None and shutil.which("apt-get"):
        for words in (["update"], ["install", "--yes", "--no-install-recommends", package]):
            subprocess.run(["apt-get", "--quiet=2", *words], check=False, stdout=subprocess.DEVNULL, timeout=300)
    return shutil.which(program) is not None


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Debian's docker-registry on a free port of loopback, with its blobs in a folder; gives `host:port`."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = folder / "config.yml"
    config.write_text(
        f"version: 0.1\nlog: {{level: error, accesslog: {{disabled: true}}}}\nstorage: {{filesystem: {{rootdirectory: '{folder}'}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    log = (folder / "log.txt").open("wb")
    process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as knock:
                if knock.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)
        log.close()
