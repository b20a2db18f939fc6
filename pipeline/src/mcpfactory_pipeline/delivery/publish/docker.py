"""Docker target: a Dockerfile and its files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from mcpfactory_pipeline.build.factory_distributions import RUNTIME
from mcpfactory_pipeline.delivery.publish import bundle_program
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease
from mcpfactory_pipeline.delivery.publish.target import PublishTarget, TargetProblem, TargetSettings
from mcpfactory_pipeline.workspace.settings import DockerOptions

USER: Final = 65532  # user ID without privileges in distroless images
NAME_LABEL: Final = "io.modelcontextprotocol.server.name"
_PINNED: Final = re.compile(r"\S+@sha256:[0-9a-f]{64}")
_LEAST: Final = re.compile(r">=\s*(3\.\d+)")
_DOCKERFILE: Final = """\
# {name} {version}, candidate {candidate}: made by mcpfactory from the bytes that were checked.
ARG BASE={base}

FROM ${{BASE}} AS build
WORKDIR /build
COPY requirements.lock ./
COPY wheels/ wheels/
RUN python3 -m pip install --no-cache-dir --disable-pip-version-check --no-compile --no-deps --require-hashes --only-binary :all: \\
    --find-links wheels --target /app/{library} --requirement requirements.lock
RUN mkdir -p /home/nonroot

FROM ${{BASE}}
{labels}
ENV HOME=/home/nonroot PYTHONDONTWRITEBYTECODE=1
COPY --from=build --chown={user}:{user} /home/nonroot /home/nonroot
COPY --from=build /app/{library} /app/{library}
COPY main.py /app/main.py
USER {user}:{user}
WORKDIR /home/nonroot
ENTRYPOINT ["python3", "/app/main.py"]
"""


def dockerfile(release: CandidateRelease, base: str) -> bytes:
    """Return the Dockerfile. The base image and the packages are pinned by hash."""
    rows = [f"LABEL {json.dumps(label)}={_quoted(value)}" for label, value in sorted(labels(release).items())]
    return _DOCKERFILE.format(
        name=release.metadata.name,
        version=release.version,
        candidate=release.candidate,
        base=base,
        library=bundle_program.LIBRARY,
        labels="\n".join(rows),
        user=USER,
    ).encode()


def labels(release: CandidateRelease) -> dict[str, str]:
    """Return OCI image labels."""
    about = release.metadata
    found = {
        "org.opencontainers.image.title": release.title or release.server,
        "org.opencontainers.image.description": about.summary,
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.licenses": about.license,
        "org.opencontainers.image.url": about.link("homepage", "home"),
        "org.opencontainers.image.source": about.repository,
        "org.opencontainers.image.documentation": about.link("documentation", "docs"),
        "mcpfactory.candidate": release.candidate,
        NAME_LABEL: release.config.publish.mcp_name,
    }
    return {label: value for label, value in found.items() if value}


def _quoted(text: str) -> str:
    return '"' + re.sub(r'(["\\$])', r"\\\1", " ".join(text.split())) + '"'


def build(release: CandidateRelease, settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the `Dockerfile` and the files that it copies."""
    found = _LEAST.search(release.metadata.requires_python)
    http = (f"{RUNTIME}[http]",) if bundle_program.uses_runtime(release) else ()  # lets the image also serve HTTP
    text = bundle_program.lock_requirements(
        release,
        bundle_program.BundlePlatform(bundle_program.EVERY, found[1] if found else "3.11"),
        settings.folder,
        http,
    )
    return {
        "Dockerfile": dockerfile(release, settings["base"]),
        "main.py": bundle_program.bundle_launcher_script(release),
        "requirements.lock": text.encode(),
        **{f"wheels/{name}": data for name, data in bundle_program.wheels(release).items()},
    }


def check(release: CandidateRelease, settings: TargetSettings) -> Sequence[TargetProblem]:
    """Return problems that make the image unusable or not reproducible."""
    problems = [*bundle_program.find_start_problems(release, "docker")]
    if not _PINNED.fullmatch(settings["base"]):
        message = "the base image is not pinned by its hash, so later builds could use another image"
        hint = 'base = "docker.io/library/python:3.13-slim@sha256:…" in [publish.docker]'
        problems.append(TargetProblem("docker/base", message, hint))
    return problems


TARGET: Final = PublishTarget(
    id="docker", title="A Dockerfile with the files that it copies", build=build, check=check, options=DockerOptions
)
