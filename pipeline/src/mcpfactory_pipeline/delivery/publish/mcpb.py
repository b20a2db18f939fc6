"""MCPB target: one zip file that desktop clients install with a click.

A bundle of type `uv` contains only the candidate's wheel. The client installs the dependencies. A bundle of type
`python` contains the dependencies for one platform and Python version.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.hashing import zip_bytes
from mcpfactory_pipeline.build.programs import last_lines
from mcpfactory_pipeline.build.wheels import wheel_name, wheel_version
from mcpfactory_pipeline.delivery.publish.bundle_program import (
    LIBRARY,
    BundlePlatform,
    bundle_launcher_script,
    find_start_problems,
    install,
    lock_requirements,
    read_server_icon,
    wheels,
)
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease, ServerVariable
from mcpfactory_pipeline.delivery.publish.target import PublishTarget, TargetProblem, TargetSettings
from mcpfactory_pipeline.workspace.settings import McpbOptions

_ENTRY: Final = "server/main.py"
_TYPES: Final = {"uv": "0.4", "python": "0.3"}  # type of the bundle → version of the manifest format
# Platforms of `python` bundles: uv's name → name in the manifest.
PLATFORMS: Final = {
    "x86_64-unknown-linux-gnu": "linux", "aarch64-unknown-linux-gnu": "linux", "x86_64-apple-darwin": "darwin",
    "aarch64-apple-darwin": "darwin", "x86_64-pc-windows-msvc": "win32", "aarch64-pc-windows-msvc": "win32",
}  # fmt: skip
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")
_LINKS: Final = {  # field of the manifest → labels of project URLs for the field
    "homepage": ("homepage", "home"),
    "documentation": ("documentation", "docs"),
    "support": ("issues", "support", "bug tracker", "tracker", "bugs"),
}
_DESCRIPTION: Final = 300  # maximum number of characters of a tool's description on a settings page


def bundle_name(release: CandidateRelease, kind: str) -> str:
    """Return the bundle's file name."""
    return f"{release.metadata.project}-{release.version}{'' if kind == 'uv' else '-' + kind}.mcpb"


def bundle_manifest(release: CandidateRelease, settings: Mapping[str, str]) -> dict[str, Any]:
    """Return `manifest.json` of a bundle."""
    about, kind = release.metadata, settings["type"]
    fields: dict[str, Any] = {
        "manifest_version": _TYPES[kind],
        "name": about.project,
        "display_name": release.title or release.server,
        "version": release.version,
        "description": about.summary,
        "long_description": release.instructions,
        "author": {"name": settings["author"] or f"the authors of {about.name}"},
        **{field: about.link(*labels) for field, labels in _LINKS.items()},
        "repository": {"type": "git", "url": about.repository} if about.repository else {},
        "icon": "icon.png" if read_server_icon(release) else "",
        "server": {"type": kind, "entry_point": _ENTRY, "mcp_config": _launch(release, kind)},
        "tools": [_tool(tool) for tool in release.tools],
        # In search mode, a server offers tools that its tool list does not contain.
        "tools_generated": not release.tools or release.config.server.mode == "search",
        "license": about.license,
        "privacy_policies": [url for label, url in about.urls.items() if label.lower().startswith("privacy")],
        "compatibility": _compatibility(release, settings),
        "user_config": {_key(variable): _setting(variable) for variable in release.variables},
    }
    return {key: value for key, value in fields.items() if value or key == "description"}


def _launch(release: CandidateRelease, kind: str) -> dict[str, Any]:
    env = {variable.name: f"${{user_config.{_key(variable)}}}" for variable in release.variables}
    if kind == "uv":
        # The bundle has no lock, so uv resolves the dependencies at the first start.
        return {"command": "uv", "args": ["run", "--directory", "${__dirname}", _ENTRY], "env": env}
    launch = {"command": "python3", "args": [f"${{__dirname}}/{_ENTRY}"]}
    windows = {"platform_overrides": {"win32": {"command": "python"}}}
    return {**launch, "env": {**env, "PYTHONDONTWRITEBYTECODE": "1"}, **windows}


def _tool(tool: Mapping[str, Any]) -> dict[str, str]:
    text = " ".join(str(tool.get("description", "")).strip().partition("\n\n")[0].split())
    short = text if len(text) <= _DESCRIPTION else f"{text[: _DESCRIPTION - 1].rstrip()}…"
    return {"name": str(tool["name"]), **({"description": short} if short else {})}


def _compatibility(release: CandidateRelease, settings: Mapping[str, str]) -> dict[str, Any]:
    if settings["type"] == "uv":
        needed = release.metadata.requires_python or ">=3.11"
        return {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": needed}}
    major, minor = settings["python"].split(".")
    python = f">={major}.{minor},<{major}.{int(minor) + 1}"
    return {"platforms": [PLATFORMS[settings["platform"]]], "runtimes": {"python": python}}


def _key(variable: ServerVariable) -> str:
    return variable.name.lower()


def _setting(variable: ServerVariable) -> dict[str, Any]:
    words = {"type": "string", "title": variable.name, "description": variable.description or variable.name}
    # Always set a default. Otherwise, clients pass the unreplaced placeholder to the server.
    rest = {"required": True} if variable.required else {"required": False, "default": variable.default}
    return {**words, **rest, **({"sensitive": True} if variable.secret else {})}


def bundle_pyproject(release: CandidateRelease) -> bytes:
    """Return the `pyproject.toml` of a `uv` bundle."""
    rows = {wheel_name(name): name for name in wheels(release)}
    needs = ", ".join(json.dumps(f"{project}=={wheel_version(name)}") for project, name in sorted(rows.items()))
    sources = "\n".join(f'{project} = {{ path = "wheels/{name}" }}' for project, name in sorted(rows.items()))
    return (
        f'[project]\nname = "{release.metadata.project}-bundle"\nversion = "{release.metadata.version}"\n'
        f'requires-python = "{release.metadata.requires_python or ">=3.11"}"\ndependencies = [{needs}]\n\n'
        f"[tool.uv]\npackage = false\n\n[tool.uv.sources]\n{sources}\n"
    ).encode()


# --- the target ---


def build(release: CandidateRelease, settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the bundle. The same release and settings always give the same bytes."""
    options = settings.options
    files = {
        "manifest.json": (json.dumps(bundle_manifest(release, options), indent=2, ensure_ascii=False) + "\n").encode(),
        _ENTRY: bundle_launcher_script(release),
    }
    if picture := read_server_icon(release):
        files["icon.png"] = picture
    if options["type"] == "uv":
        files["pyproject.toml"] = bundle_pyproject(release)
        files |= {f"wheels/{name}": data for name, data in wheels(release).items()}
    else:
        platform = BundlePlatform(options["platform"], options["python"])
        text = lock_requirements(release, platform, settings.folder)
        files |= {f"server/{LIBRARY}/{path}": data for path, data in install(release, text, platform).items()}
        files["requirements.lock"] = text.encode()
    # Do not compress `uv` bundles: compressed bytes depend on the zlib version, and wheels are already compressed.
    return {bundle_name(release, options["type"]): zip_bytes(files, compress=options["type"] == "python")}


def check(release: CandidateRelease, settings: TargetSettings) -> Sequence[TargetProblem]:
    """Return reasons for clients to reject the bundle.

    The program `mcpb`, if installed, also validates the manifest.
    """
    problems = [*_problems(release)]
    options = settings.options
    return problems or [*_second_opinion(release, options)]


def _problems(release: CandidateRelease) -> Iterator[TargetProblem]:
    yield from find_start_problems(release, "mcpb")
    if not release.metadata.summary.strip():
        yield TargetProblem("mcpb/description", "the package has no description", "description = … in pyproject.toml")
    if not _VERSION.fullmatch(release.version):
        yield TargetProblem(
            "mcpb/version", f"{release.version} is not a semantic version", "use a version such as 1.2.0"
        )
    keys = [_key(variable) for variable in release.variables]
    for key in sorted({key for key in keys if keys.count(key) > 1}):
        yield TargetProblem("mcpb/settings", f"two variables differ only in case: {key}", "rename one of them")


def _second_opinion(release: CandidateRelease, options: Mapping[str, str]) -> Iterator[TargetProblem]:
    program = shutil.which("mcpb")
    if program is None:
        return
    with tempfile.TemporaryDirectory(prefix="mcpfactory-") as work:
        file = Path(work) / "manifest.json"
        file.write_text(json.dumps(bundle_manifest(release, options)), encoding="utf-8")
        if picture := read_server_icon(release):
            (Path(work) / "icon.png").write_bytes(picture)
        try:
            done = subprocess.run(
                [program, "validate", str(file)],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=60,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            yield TargetProblem(
                "mcpb/official", f"the official mcpb does not answer: {error}", "repair mcpb, or remove mcpb from PATH"
            )
            return
    if done.returncode:
        words = last_lines(done.stdout + done.stderr)
        yield TargetProblem(
            "mcpb/official", f"the official mcpb refuses the manifest: {words}", "report this as a bug of mcpfactory"
        )


TARGET: Final = PublishTarget(
    id="mcpb",
    title="An MCPB bundle: one file that desktop clients install",
    build=build,
    check=check,
    options=McpbOptions,
)
