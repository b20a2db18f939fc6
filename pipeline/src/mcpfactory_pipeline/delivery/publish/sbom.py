"""Bill of materials (CycloneDX 1.6, JSON): the release, its files with hashes, and the installed packages.

The document contains no times and no random numbers, so that the same release always gives the same bytes.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.wheels import wheel_name
from mcpfactory_pipeline.delivery.publish.bundle_program import BundlePlatform, lock_requirements
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease
from mcpfactory_pipeline.delivery.publish.target import PublishTarget, TargetSettings
from mcpfactory_pipeline.workspace.settings import SbomOptions

_EXPRESSION: Final = re.compile(r"\(*[A-Za-z0-9.+-]+\)*(?: (?:AND|OR|WITH) \(*[A-Za-z0-9.+-]+\)*)*")
_PINNED: Final = re.compile(r"^(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """A package that is installed with the release."""

    name: str
    version: str = ""
    required: str = ""
    hashes: tuple[str, ...] = ()

    @property
    def purl(self) -> str:
        """Return the package URL (purl-spec)."""
        return f"pkg:pypi/{self.name}" + (f"@{self.version}" if self.version else "")


def sbom_document(release: CandidateRelease, packages: Sequence[LockedPackage]) -> dict[str, Any]:
    """Return the bill of materials. Edges connect the release only with its direct dependencies."""
    root = LockedPackage(release.metadata.project, release.version)
    direct = {package.name: package.required for package in _declared(release)}
    ordered = sorted(packages, key=lambda package: package.purl)
    asked = [package.purl for package in ordered if package.name in direct]
    identity = json.dumps([release.digest, [package.purl for package in ordered]])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, identity)}",
        "version": 1,
        "metadata": {
            "component": _root(release, root),
            "tools": {"components": [{"type": "application", "name": "mcpfactory"}]},
        },
        "components": [_component(package, direct.get(package.name, "")) for package in ordered],
        "dependencies": [{"ref": root.purl, "dependsOn": asked}, *({"ref": package.purl} for package in ordered)],
        "compositions": [{"aggregate": "incomplete", "dependencies": [package.purl for package in ordered]}]
        if ordered
        else [],
    }


def _root(release: CandidateRelease, root: LockedPackage) -> dict[str, Any]:
    about = release.metadata
    text = about.license
    terms = {"expression": text} if _EXPRESSION.fullmatch(text) else {"license": {"name": text}}
    found = {
        "type": "application",
        "bom-ref": root.purl,
        "name": root.name,
        "version": root.version,
        "description": about.summary,
        "licenses": [terms] if text else [],
        "purl": root.purl,
        "externalReferences": [
            {"type": "distribution", "url": name, "hashes": [_sha256(content)]}
            for name, content in sorted(release.hashes.items())
        ],
        "properties": [
            {"name": f"mcpfactory:{name}", "value": value}
            for name, value in (("candidate", release.candidate), ("server", release.server))
            if value
        ],
    }
    return {key: value for key, value in found.items() if value}


def _component(package: LockedPackage, required: str) -> dict[str, Any]:
    found = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "scope": "required",
        "purl": package.purl,
        # all files that the package can be installed from
        "externalReferences": [
            {"type": "distribution", "url": package.purl, "hashes": [_sha256(one) for one in package.hashes]}
        ] if package.hashes else [],
        "properties": [{"name": "mcpfactory:requirement", "value": required}] if required else [],
    }  # fmt: skip
    return {key: value for key, value in found.items() if value}


def _sha256(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest.removeprefix("sha256:")}


# --- the packages ---


def parse_locked_requirements(requirements: str, release: CandidateRelease) -> list[LockedPackage]:
    """Return the packages in pinned requirements, without the release itself."""
    found: list[LockedPackage] = []
    for block in re.split(r"\n(?=\S)", requirements):
        if pinned := _PINNED.match(block):
            name = canonicalize_name(pinned["name"])
            if name != release.metadata.project:
                found.append(LockedPackage(name, pinned["version"], hashes=tuple(sorted(set(_HASH.findall(block))))))
    return found


def _declared(release: CandidateRelease) -> Iterator[LockedPackage]:
    """Yield the release's direct requirements, without extras."""
    here = {wheel_name(name): (name.split("-")[1], hash_bytes(data)) for name, data in release.companions.items()}
    for text in release.metadata.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue
        if requirement.marker is None or "extra" not in str(requirement.marker):
            name = canonicalize_name(requirement.name)
            version, digest = here.get(name, ("", ""))
            yield LockedPackage(name, version, text, (digest,) if digest else ())


def build(release: CandidateRelease, settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the bill of materials as a file."""
    if settings["resolve"] == "declared":
        packages = list(_declared(release))
    else:
        requirements = lock_requirements(
            release, BundlePlatform(settings["platform"], settings["python"]), settings.folder
        )
        packages = parse_locked_requirements(requirements, release)
    text = json.dumps(sbom_document(release, packages), indent=2, ensure_ascii=False)
    return {f"{release.metadata.project}-{release.version}.cdx.json": f"{text}\n".encode()}


TARGET: Final = PublishTarget(id="sbom", title="A bill of materials: CycloneDX 1.6", build=build, options=SbomOptions)
