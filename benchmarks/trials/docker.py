"""The Dockerfile of a server of this repository: built by buildah without a daemon, pushed, pulled, run.

The base is made here (the Python of this machine, pip, busybox for a shell) and pushed to Debian's docker-registry, so that the
Dockerfile names it by its hash as any base.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pip

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.trials.oci import as_user, installed, pull, serving, unpack
from benchmarks.trials.promoted import promoted, tools
from mcpfactory_pipeline.base.archives import ArchiveEntry, gzip_bytes, tar_bytes
from mcpfactory_pipeline.publish.distribution import ImageRegistry, parse_reference
from mcpfactory_pipeline.publish.http import open_client
from mcpfactory_pipeline.publish.layout import LAYER, Layout
from mcpfactory_pipeline.publish.publish import publish
from mcpfactory_pipeline.publish.rootfs import ARCHITECTURES, USER, find_interpreter, interpreter_entries

__all__ = ["run"]

_PROGRAMS: Final = (("docker-registry", "docker-registry"), ("buildah", "buildah"), ("busybox", "busybox-static"))


def run(folder: Path, _times: int, _seed: int) -> Outcome:
    """Builds the image of `bookshop` from its Dockerfile; the figure says what of it held."""
    if os.geteuid() or not all(installed(name, package) for name, package in _PROGRAMS):
        return unavailable("this needs root, docker-registry, buildah and busybox-static")
    space = promoted(folder / "space", ["bookshop"])
    with serving(folder / "registry") as host:
        base = _base(folder / "base", host)
        (made,) = publish(space, "bookshop", ["docker"], given={"docker": {"base": base}})
        facts = {"built": _build(folder / "storage", Path(made.folder), f"{host}/acme/bookshop:1")}
        image, layout = pull(folder / "pulled", f"{host}/acme/bookshop:1")
    unpack(layout, image, folder / "root")
    facts["labels"] = image.labels.get("mcpfactory.candidate") == made.candidate
    start = as_user(folder / "root", image)
    asked = subprocess.run(
        [*start, "python3", "-c", "import os; print(os.getuid())"], capture_output=True, text=True, check=False
    )
    facts["user"] = asked.stdout.strip() == str(USER)
    answered = tools([*start, *image.config["config"]["Entrypoint"]])
    print("\n".join(f"{name:9} {'yes' if fact else 'NO'}" for name, fact in facts.items()), flush=True)
    words = ", ".join(name for name, fact in facts.items() if not fact) or "all held"
    return judged(
        f"image of {image.size} bytes, {len(answered)} tools; {words}", good=all(facts.values()) and len(answered) == 11
    )


def _base(folder: Path, host: str) -> str:
    """An image with Python, pip and a shell, in the registry; its reference by hash."""
    python, env, layout = find_interpreter(), ["PATH=/usr/local/bin:/bin"], Layout(folder)
    root, entries = Path(pip.__file__).parent, interpreter_entries(python)
    place = f"usr/local/lib/python{python.minor}/site-packages/pip"
    files = [file for file in sorted(root.rglob("*")) if file.is_file() and "__pycache__" not in file.parts]
    entries += [ArchiveEntry(f"{place}/{file.relative_to(root).as_posix()}", file.read_bytes()) for file in files]
    entries.append(
        ArchiveEntry(f"usr/local/lib/python{python.minor}/dist-packages", link="site-packages")
    )  # Debian's name
    entries.append(ArchiveEntry("bin/busybox", Path(shutil.which("busybox") or "").read_bytes(), 0o755))
    entries += [ArchiveEntry(f"bin/{name}", link="busybox") for name in ("sh", "mkdir")]
    if authority := os.environ.get("PIP_CERT"):  # the index that pip is set to on this machine, also inside
        entries.append(ArchiveEntry("etc/pip-ca.pem", Path(authority).read_bytes()))
        env.append("PIP_CERT=/etc/pip-ca.pem")
    data = tar_bytes(entries)
    config = {
        "architecture": ARCHITECTURES[os.uname().machine], "os": "linux", "config": {"Env": env},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }  # fmt: skip
    image = layout.assemble([layout.add(gzip_bytes(data), LAYER)], config)
    with open_client() as wire:
        ImageRegistry(wire, parse_reference(f"{host}/base/python")).push(layout, image, "1")
    return f"{host}/base/python@{image.descriptor.digest}"


def _build(storage: Path, context: Path, name: str) -> bool:
    """Builds by buildah, in a storage of its own, and pushes."""
    own = ["buildah", "--root", str(storage / "root"), "--runroot", str(storage / "run"), "--storage-driver", "vfs"]
    for words in (
        ["build", "--isolation", "chroot", "--tls-verify=false", "--tag", name, str(context)],
        ["push", "--tls-verify=false", "--format", "oci", name],
    ):
        done = subprocess.run([*own, *words], capture_output=True, text=True, check=False, timeout=600)
        if done.returncode:
            print(done.stdout[-2000:] + done.stderr[-2000:], flush=True)
            return False
    return True
