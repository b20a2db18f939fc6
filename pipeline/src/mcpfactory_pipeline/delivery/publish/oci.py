"""OCI target: an image of the server, built without a daemon, and pushed to a registry.

The base is an image that the settings name by its hash, or else the Python that they name, with only its
requirements: the interpreter, its standard library and the linked shared libraries, in the loader's search paths; two
users; a folder for temporary files; no shell, no package manager, and nothing that writes. Two layers follow: the
server's dependencies, and the server. It runs as user 65532 and contains no shell of ours.
"""

from __future__ import annotations

import io
import json
import platform
import platform as machine
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError, StageError
from mcpfactory_pipeline.base.hashing import ArchiveEntry, gzip_bytes, hash_bytes, tar_bytes
from mcpfactory_pipeline.build.distributions import RUNTIME
from mcpfactory_pipeline.delivery.publish.http import HttpClient, open_client
from mcpfactory_pipeline.delivery.publish.images import (
    LAYER,
    Descriptor,
    ImageReference,
    ImageRegistry,
    Layout,
    OciImage,
    parse_reference,
)
from mcpfactory_pipeline.delivery.publish.program import (
    LIBRARY,
    Platform,
    install,
    launcher,
    lock_requirements,
    on_runtime,
    unusable,
)
from mcpfactory_pipeline.delivery.publish.release import CandidateRelease
from mcpfactory_pipeline.delivery.publish.target import (
    PublishEvidence,
    PublishTarget,
    RemoteState,
    TargetProblem,
    TargetSettings,
)

USER: Final = 65532  # the number that images without a shell give their unprivileged user
ARCHITECTURES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

_ASK: Final = """
import json, os, platform, sys, sysconfig
base = {"base": sys.base_prefix, "installed_base": sys.base_prefix, "platbase": sys.base_exec_prefix}
print(json.dumps({
    "version": platform.python_version(), "prefix": sys.base_prefix, "program": os.path.realpath(sys._base_executable),
    "folders": sorted({sysconfig.get_path(name, vars=base) for name in ("stdlib", "platstdlib")}), "libc": platform.libc_ver()[0],
}))
"""
# Parts of the standard library that no server needs: tests, graphical tools, and what builds other programs.
_LEFT_OUT: Final = re.compile(
    r"(.*/)?__pycache__/.*|(site|dist)-packages/.*|(test|idlelib|tkinter|turtledemo|lib2to3|ensurepip|distutils)/.*|config-[^/]+/.*"
    r"|(unittest|ctypes|sqlite3)/tests?/.*|.*\.(a|o|exe|pyc)|(turtle|pydoc)\.py|pydoc_data/.*|lib-dynload/_(test|xx|tkinter).*"
)
# Libraries that wheels can expect from the system (the manylinux policies), in addition to those that Python links
# to.
_EXPECTED: Final = (
    "libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libutil.so.1", "libresolv.so.2",
    "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "libnss_dns.so.2", "libnss_files.so.2",
)  # fmt: skip
_LINKED: Final = re.compile(r"^\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_PASSWD: Final = f"root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:{USER}:{USER}:nonroot:/home/nonroot:/sbin/nologin\n"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python of this machine: its full version, program, prefix, and the folders of its standard library."""

    version: str
    program: Path
    prefix: Path
    folders: tuple[Path, ...]

    @property
    def minor(self) -> str:
        """`3.12`."""
        return ".".join(self.version.split(".")[:2])


def find_interpreter(python: str = "") -> Interpreter:
    """Return the data of an interpreter, by default of the one that runs this process.

    Raises:
        StageError: it does not start, or cannot be the base of an image: not Linux, or another C library than glibc.
    """
    if sys.platform != "linux" or platform.machine().lower() not in ARCHITECTURES:
        raise StageError(
            f"no image can be built from the Python of this machine ({sys.platform}, {platform.machine()})",
            hint='name a base image: base = "docker.io/library/python:3.13-slim@sha256:…" in [publish.oci]',
        )
    try:
        done = subprocess.run(
            [python or sys.executable, "-I", "-c", _ASK], capture_output=True, text=True, check=True, timeout=60
        )
        facts = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise StageError(
            f"{python} does not respond like a Python interpreter: {error}", hint="name a Python interpreter"
        ) from error
    if facts["libc"] != "glibc":
        raise StageError(
            f"{facts['program']} is not linked to glibc", hint="name a Python that is linked to glibc, or a base image"
        )
    return Interpreter(
        facts["version"], Path(facts["program"]), Path(facts["prefix"]), tuple(map(Path, facts["folders"]))
    )


def interpreter_entries(python: Interpreter) -> list[ArchiveEntry]:
    """Return the file system of the interpreter: `/usr/local/bin/python3`, its standard library, its libraries, its users."""
    program = f"usr/local/bin/python{python.minor}"
    entries = {
        program: ArchiveEntry(program, python.program.read_bytes(), 0o755),
        **{f"usr/local/bin/{name}": ArchiveEntry(f"usr/local/bin/{name}", link=f"python{python.minor}") for name in ("python3", "python")},
        "etc/passwd": ArchiveEntry("etc/passwd", _PASSWD.encode()),
        "etc/group": ArchiveEntry("etc/group", f"root:x:0:\nnonroot:x:{USER}:\n".encode()),
        "etc/nsswitch.conf": ArchiveEntry("etc/nsswitch.conf", b"passwd: files\ngroup: files\nhosts: files dns\n"),
        "tmp": ArchiveEntry("tmp", mode=0o1777, folder=True),
    }  # fmt: skip
    linked = [python.program]
    for folder in python.folders:
        below = folder.relative_to(python.prefix).as_posix()
        for file in sorted(folder.rglob("*")):
            path = file.relative_to(folder).as_posix()
            if file.is_file() and not _LEFT_OUT.fullmatch(path):
                place = f"usr/local/{below}/{path}"
                entries[place] = ArchiveEntry(place, file.read_bytes(), 0o644)
                linked += [file] if ".so" in file.suffixes else []
    for library in _libraries(linked, python.prefix):
        entries.setdefault(library.path, library)
    return list(entries.values())


def _libraries(programs: Iterable[Path], prefix: Path) -> Iterator[ArchiveEntry]:
    """Yield the shared libraries of programs, each where the loader of this system finds it without being told."""
    try:
        done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    except OSError as error:
        raise StageError(f"ldd cannot be started: {error.strerror}", hint="name a base image instead") from error
    found: dict[str, Path] = {}
    for name, path in _LINKED.findall(done.stdout):
        found.setdefault(name or path, Path(path))
    try:
        system = found["libc.so.6"].parent
    except KeyError:
        raise StageError(
            "ldd does not list the libraries that Python is linked to", hint="name a base image instead"
        ) from None
    for name in _EXPECTED:
        if (system / name).exists():
            found.setdefault(name, system / name)
    for name, path in found.items():
        # Libraries that came with the interpreter move to the system's: only there does the loader look without being told.
        own = not name.startswith("/") and (path.is_relative_to(prefix) or not _of_system(path))
        place = system / name if own else path
        yield ArchiveEntry(place.as_posix().lstrip("/"), path.read_bytes(), 0o755)


def _of_system(path: Path) -> bool:
    return path.parts[1] in {"lib", "lib64"} or path.parts[1:3] in {("usr", "lib"), ("usr", "lib64")}


NAME_LABEL: Final = "io.modelcontextprotocol.server.name"
SERVING: Final = f"{RUNTIME}[http]"  # an image serves HTTP as well as stdio
_TIME: Final = "1970-01-01T00:00:00Z"  # when everything in an image was made
_HOME: Final = "/home/nonroot"
_TRIPLES: Final = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}
_VERSION: Final = re.compile(r"PYTHON_VERSION=(3\.\d+)")


def labels(release: CandidateRelease) -> dict[str, str]:
    """Return the labels of an image: those of the OCI image specification, the candidate, and the server's name in the MCP registry."""
    about = release.metadata
    links = {label.lower(): url for label, url in about.urls.items()}
    name = release.publish_table.get("mcp_name", "")
    found = {
        "org.opencontainers.image.title": release.title or release.server,
        "org.opencontainers.image.description": about.summary,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": about.license,
        "org.opencontainers.image.url": next((links[label] for label in ("homepage", "home") if label in links), ""),
        "org.opencontainers.image.source": next((links[label] for label in ("repository", "source") if label in links), ""),
        "org.opencontainers.image.documentation": next((links[label] for label in ("documentation", "docs") if label in links), ""),
        "mcpfactory.candidate": release.candidate,
        NAME_LABEL: name if isinstance(name, str) else "",
    }  # fmt: skip
    return {label: value for label, value in found.items() if value}


def build_image(release: CandidateRelease, settings: TargetSettings) -> tuple[Layout, OciImage]:
    """Build the image as a layout in the target's folder. The same release, settings and base give the same bytes.

    Raises:
        ConfigError: the processor, or the Python of the base, is unknown.
        StageError, TargetError: the base is not available, or the server's dependencies cannot be installed.
    """
    layout = Layout(settings.folder / "layout")
    architecture = ARCHITECTURES.get(machine.machine().lower())
    if architecture is None:
        raise ConfigError(
            f"no image can be built for the processor of this machine, {machine.machine()}",
            hint="build on amd64 or arm64",
        )
    base, config, python = _base(layout, settings, architecture)
    platform = Platform(_TRIPLES[architecture], python)
    text = lock_requirements(release, platform, settings.folder, http_requirement(release))
    own, needed = _split_installation(release, install(release, text, platform))
    layers = [
        *base,
        _layer(layout, config, _entries(f"app/{LIBRARY}", needed), "what the server needs, by hash"),
        _layer(layout, config, [
            *_entries(f"app/{LIBRARY}", own), ArchiveEntry("app/main.py", launcher(release)), ArchiveEntry("app/requirements.lock", text.encode()),
            ArchiveEntry(_HOME[1:], mode=0o700, folder=True, owner=USER), ArchiveEntry("home", mode=0o755, folder=True),
        ], f"{release.metadata.name} {release.version}, candidate {release.candidate}"),
    ]  # fmt: skip
    config["config"] = _run_config(release, config.get("config") or {})
    config["created"] = _TIME
    for field in ("id", "parent", "container", "container_config", "docker_version"):  # how older tools made the base
        config.pop(field, None)
    image = layout.assemble(layers, config)
    layout.set_image(image, release.version)
    return layout, image


def http_requirement(release: CandidateRelease) -> tuple[str, ...]:
    """Return the additional requirements of an image for a server on our runtime."""
    return (SERVING,) if on_runtime(release) else ()


def _base(layout: Layout, settings: TargetSettings, architecture: str) -> tuple[list[Descriptor], dict[str, Any], str]:
    if not settings["base"]:
        python = find_interpreter(settings["python"])
        config: dict[str, Any] = {
            "architecture": architecture, "os": "linux", "history": [], "rootfs": {"type": "layers", "diff_ids": []},
            "config": {"Env": ["PATH=/usr/local/bin", "LANG=C.UTF-8", f"PYTHON_VERSION={python.version}"]},
        }  # fmt: skip
        words = f"Python {python.version}, its library and what it is linked to"
        return [_layer(layout, config, interpreter_entries(python), words)], config, python.minor
    with open_client() as wire:
        registry = ImageRegistry(wire, parse_reference(settings["base"]), _login(settings, "base_"))
        image = registry.pull(layout, {"os": "linux", "architecture": architecture})
    config = {**image.config, "history": list(image.config.get("history", []))}
    config["rootfs"] = {"type": "layers", "diff_ids": list(image.config["rootfs"]["diff_ids"])}
    versions = [found[1] for text in config.get("config", {}).get("Env") or () if (found := _VERSION.match(text))]
    if not versions:
        raise ConfigError(
            f"{settings['base']} does not declare its Python version",
            hint="use an image that sets PYTHON_VERSION, such as python:3.13-slim",
        )
    return list(image.layers), config, versions[0]


def _layer(layout: Layout, config: dict[str, Any], entries: Iterable[ArchiveEntry], words: str) -> Descriptor:
    """Write a layer and note it in the configuration, whose order of layers is that of the manifest."""
    data = tar_bytes(entries)
    config["rootfs"]["diff_ids"].append(hash_bytes(data))
    config["history"].append({"created": _TIME, "created_by": "mcpfactory", "comment": words})
    return layout.add(gzip_bytes(data), LAYER)


def _split_installation(
    release: CandidateRelease, installed: Mapping[str, bytes]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the server's own files of an installation, and the rest, which versions of the server share."""
    with zipfile.ZipFile(io.BytesIO(release.files[release.wheel])) as wheel:
        tops = {name.partition("/")[0] for name in wheel.namelist()}
    own = {path: data for path, data in installed.items() if path.partition("/")[0] in tops}
    return own, {path: data for path, data in installed.items() if path not in own}


def _entries(below: str, files: Mapping[str, bytes]) -> list[ArchiveEntry]:
    return [ArchiveEntry(f"{below}/{path}", data, 0o644) for path, data in files.items()]


def _run_config(release: CandidateRelease, base: Mapping[str, Any]) -> dict[str, Any]:
    env = {text.partition("=")[0]: text for text in base.get("Env") or ()}
    env |= {"HOME": f"HOME={_HOME}", "PYTHONDONTWRITEBYTECODE": "PYTHONDONTWRITEBYTECODE=1"}
    return {
        "User": f"{USER}:{USER}",
        "Env": list(env.values()),
        "Entrypoint": ["python3", "/app/main.py"],
        "WorkingDir": _HOME,
        "Labels": labels(release),
        "StopSignal": "SIGTERM",
    }


# --- the target ---


def build(release: CandidateRelease, settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the image as one file, and its manifest, whose hash is the image's digest.

    The layout stays in the target's folder.
    """
    layout, image = build_image(release, settings)
    name = f"{release.metadata.project}-{release.version}.oci.tar"
    return {"manifest.json": layout.read(image.descriptor.digest), name: layout.to_tar()}


def check(release: CandidateRelease, settings: TargetSettings) -> Sequence[TargetProblem]:
    """Return problems that would make an image that does not start or is not reproducible."""
    return [*_problems(release, settings)]


def _problems(release: CandidateRelease, settings: TargetSettings) -> Iterator[TargetProblem]:
    yield from unusable(release, "oci")
    if settings["base"] and not parse_reference(settings["base"]).digest:
        yield TargetProblem(
            "oci/base",
            f"the base {settings['base']} is not named by its hash, and may be another one tomorrow",
            'base = "name:tag@sha256:…"',
        )
    if "+" in release.version:
        yield TargetProblem("oci/version", f"{release.version} cannot be a tag", "give the server a version without +")


def inspect(release: CandidateRelease, settings: TargetSettings) -> RemoteState:
    """Return the state of the registry under the release's tag."""
    _layout, image = _built_image(settings)
    with open_client() as wire:
        reference, registry = _registry(release, settings, wire)
        found = registry.find(reference.tag)
        if found == image.descriptor.digest:
            return RemoteState(same=_evidence(reference, image))
        if found is not None:
            return RemoteState(other=f"{reference} is {found}; this release is {image.descriptor.digest}")
        missing = registry.missing_blobs(image)
    return RemoteState(missing=(*(blob.digest for blob in missing), str(reference)))


def upload(release: CandidateRelease, settings: TargetSettings) -> PublishEvidence:
    """Push the blobs that are missing, then the manifest under the tag."""
    layout, image = _built_image(settings)
    with open_client() as wire:
        reference, registry = _registry(release, settings, wire)
        registry.push(layout, image, reference.tag)
    return _evidence(reference, image)


def _built_image(settings: TargetSettings) -> tuple[Layout, OciImage]:
    layout = Layout(settings.folder / "layout")
    return layout, layout.read_image()


def _registry(
    release: CandidateRelease, settings: TargetSettings, wire: HttpClient
) -> tuple[ImageReference, ImageRegistry]:
    given = parse_reference(settings["image"].replace("{name}", release.metadata.project))
    if given.tag or given.digest:
        raise ConfigError(
            f"{given} must not contain a tag or a digest", hint="leave it out: the version is used as the tag"
        )
    reference = ImageReference(given.host, given.name, release.version)
    return reference, ImageRegistry(wire, reference, _login(settings))


def _login(settings: TargetSettings, which: str = "") -> tuple[str, str] | None:
    """User and password from the environment; None when no password is set: many registries are read, some written, without."""
    password = settings.environ.get(settings[f"{which}password_variable"], "")
    return (settings[f"{which}user"], password) if password else None


def _evidence(reference: ImageReference, image: OciImage) -> PublishEvidence:
    return PublishEvidence(image.descriptor.digest, {"image": str(reference), "bytes": str(image.size)})


TARGET: Final = PublishTarget(
    id="oci",
    title="an OCI image: for docker, podman and every registry",
    build=build,
    check=check,
    upload=upload,
    inspect=inspect,
    destination="image",
    options={
        "image": "",
        "user": "",
        "password_variable": "OCI_PASSWORD",
        "base": "",
        "base_user": "",
        "base_password_variable": "OCI_BASE_PASSWORD",
        "python": "",
    },
)
