"""PyPI target, also for compatible indexes.

Published files are not sent again. If a published file has other bytes, the publication is refused, because an index
never replaces a file.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urljoin, urlsplit

import uv
from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

from mcpfactory_pipeline.base.errors import PublishError, TargetUnavailableError
from mcpfactory_pipeline.base.hashing import hash_bytes
from mcpfactory_pipeline.build.factory_distributions import RUNTIME
from mcpfactory_pipeline.build.programs import last_lines, uv_environ
from mcpfactory_pipeline.delivery.publish import http
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease
from mcpfactory_pipeline.delivery.publish.target import (
    PublishEvidence,
    PublishTarget,
    TargetProblem,
    TargetReleaseState,
    TargetSettings,
)
from mcpfactory_pipeline.workspace.settings import PypiOptions

_ACCEPT: Final = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
# The index's response in the output of `uv publish`.
_ANSWER: Final = re.compile(r"status code (?P<status>\d{3})(?:.*?[Ss]ays: (?P<text>.{0,300}))?", re.DOTALL)
_CONTINUES: Final = r"[A-Za-z0-9._/-]"  # characters that can be part of a name


def registry_marker(name: str) -> str:
    """Return the hidden README line that links the package to its name in the MCP registry."""
    return f"<!-- mcp-name: {name} -->"


def has_registry_marker(text: str, name: str) -> bool:
    """Return True if a description contains the registry marker of this name."""
    return re.search(rf"mcp-name: {re.escape(name)}(?!{_CONTINUES})", text) is not None


# --- checks ---


def check(release: CandidateRelease, _settings: TargetSettings) -> Sequence[TargetProblem]:
    """Return reasons why an index would reject the package, and other problems of the package."""
    return [*_packages(release), *_requirements(release), *_marker(release)]


def _packages(release: CandidateRelease) -> Iterator[TargetProblem]:
    again = f"mcpfactory pipeline run {release.server} --force, and promote what it makes"
    if release.sdist is None and not release.adopted:
        yield TargetProblem(
            "pypi/sdist", "the candidate has no source distribution: an older mcpfactory built it", again
        )
    if not release.metadata.description.strip():
        yield TargetProblem("pypi/readme", "the package has no description", 'readme = "README.md" in pyproject.toml')
    try:
        version = Version(release.metadata.version)
    except InvalidVersion:
        yield TargetProblem(
            "pypi/version", f"{release.metadata.version!r} is not a version (PEP 440)", "version = 1.2.3"
        )
        return
    if version.local:
        yield TargetProblem(
            "pypi/version", f"{version} is a local version, which no index takes", f"use {version.public}"
        )


def _requirements(release: CandidateRelease) -> Iterator[TargetProblem]:
    for text in release.metadata.requires:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            yield TargetProblem(
                "pypi/requires", f"{text!r} is not a requirement: {error}", "correct dependencies in pyproject.toml"
            )
            continue
        if requirement.url:
            yield TargetProblem(
                "pypi/requires",
                f"{requirement.name} is required from {requirement.url}, which indexes refuse",
                f"{requirement.name}>=…",
            )


def _marker(release: CandidateRelease) -> Iterator[TargetProblem]:
    name = release.config.publish.mcp_name
    if name and not has_registry_marker(release.metadata.description, name):
        yield TargetProblem(
            "pypi/mcp-name",
            f"the README in the package lacks the marker of {name}, so the MCP registry will refuse the package",
            f"put this line into README.md, and make a new candidate: {registry_marker(name)}",
        )


# --- remote state ---


@dataclass(frozen=True, slots=True)
class _IndexFile:
    """A file on an index."""

    url: str
    digest: str
    yanked: bool = False


def inspect(release: CandidateRelease, settings: TargetSettings) -> TargetReleaseState:
    """Return the state of this version on the index. A missing runtime counts as a missing file."""
    with http.open_client() as wire:
        index = _Index(wire, settings)
        there = index.files(release.metadata.project)
        others = [name for name in there if _version(name) == release.version and name not in release.files]
        if others:
            return TargetReleaseState(
                other=(
                    f"{settings['index']} has {others[0]} of version {release.version}, which is not of this candidate"
                )
            )
        missing = []
        for name, content in release.hashes.items():
            found = index.digest(there[name]) if name in there else None
            if found is None:
                missing.append(name)
            elif found != content:
                return TargetReleaseState(
                    other=f"{settings['index']} has {name} with other bytes: {found}, promoted is {content}"
                )
        missing = [*_runtime_missing(release, settings, index), *missing]
    if missing:
        return TargetReleaseState(missing=tuple(missing))
    return TargetReleaseState(same=_evidence(release, settings, there))


def _evidence(release: CandidateRelease, settings: TargetSettings, there: Mapping[str, _IndexFile]) -> PublishEvidence:
    """Return the evidence. `newest` is set if the index has a newer version, for example after a rollback."""
    page = f"{http.require_secure_url(settings['index'], 'publish.pypi.index')}/{release.metadata.project}/"
    versions = [found for name, file in there.items() if not file.yanked and (found := _parsed(_version(name)))]
    newest = max((one for one in versions if not one.is_prerelease), default=None)
    mine = _parsed(release.version)
    newer = {"newest": str(newest)} if newest and mine and newest > mine else {}
    return PublishEvidence(release.digest, {"index": page, **newer, **release.hashes})


class _Index:
    """A package index. The token is sent only if the index requires it."""

    def __init__(self, wire: http.HttpClient, settings: TargetSettings) -> None:
        self._wire, self._settings = wire, settings
        self._url = http.require_secure_url(settings["index"], "publish.pypi.index")
        # Scheme and host that may receive the token.
        self._home = urlsplit(http.require_secure_url(settings["url"], "publish.pypi.url"))[:2]

    def files(self, project: str) -> Mapping[str, _IndexFile]:
        """Return the files of a project by name."""
        page = f"{self._url}/{project}/"
        answer = self._get(page, {"Accept": _ACCEPT})
        if answer.is_redirect or answer.status_code == 404:
            return {}
        if answer.status_code != 200:
            raise TargetUnavailableError(
                f"{page} cannot be read: {http.summary(answer)}", hint="set publish.pypi.index to the simple index"
            )
        is_json = "json" in answer.headers.get("content-type", "")
        try:
            return dict(_json_files(answer, page) if is_json else _html_files(answer, page))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise TargetUnavailableError(
                f"{page} is not a page of a package index: {error!r}", hint="check publish.pypi.index"
            ) from error

    def digest(self, file: _IndexFile) -> str:
        """Return the hash of a file. If the index does not provide the hash, download the file."""
        if file.digest:
            return file.digest
        answer = self._get(file.url, {})
        if answer.status_code != 200:
            raise TargetUnavailableError(
                f"{file.url} cannot be read: {http.summary(answer)}", hint="publish again to repeat the check"
            )
        return hash_bytes(answer.content)

    def _get(self, url: str, headers: Mapping[str, str]) -> http.HttpResponse:
        answer = self._wire.request("GET", url, headers=headers)
        token = self._settings.environ.get(self._settings["token_variable"], "")
        if answer.status_code in {401, 403} and token and urlsplit(url)[:2] == self._home:
            return self._wire.request("GET", url, headers=headers, auth=(self._settings["user"], token))
        return answer


def _json_files(answer: http.HttpResponse, page: str) -> Iterator[tuple[str, _IndexFile]]:
    data = http.response_json(answer)
    for entry in data.get("files", []) if isinstance(data, dict) else []:
        digest = entry.get("hashes", {}).get("sha256", "")
        found = f"sha256:{digest}" if digest else ""
        yield str(entry["filename"]), _IndexFile(urljoin(page, entry["url"]), found, bool(entry.get("yanked")))


def _html_files(answer: http.HttpResponse, page: str) -> Iterator[tuple[str, _IndexFile]]:
    links = _Links()
    links.feed(answer.text)
    links.close()
    for target, text, yanked in links.found:
        url, _, fragment = target.partition("#")
        name = text.strip() or unquote(url.rpartition("/")[2])
        digest = fragment.removeprefix("sha256=") if fragment.startswith("sha256=") else ""
        yield name, _IndexFile(urljoin(page, url), f"sha256:{digest}" if digest else "", yanked)


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, bool]] = []
        self._open: tuple[str, bool] | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a" and (target := dict(attrs).get("href")):
            self._open, self._text = (target, "data-yanked" in dict(attrs)), []

    def handle_data(self, data: str) -> None:
        self._text += [data] if self._open else []

    def handle_endtag(self, tag: str) -> None:
        if tag == "a" and self._open:
            target, yanked = self._open
            self.found.append((target, "".join(self._text), yanked))
            self._open = None


def _version(file: str) -> str:
    if file.endswith(".whl"):
        return file.split("-")[1] if file.count("-") >= 4 else ""
    return file.removesuffix(".tar.gz").rpartition("-")[2] if file.endswith(".tar.gz") else ""


# --- the runtime ---


def _runtime_missing(release: CandidateRelease, settings: TargetSettings, index: _Index) -> list[str]:
    """Return the runtime's wheel if the server requires the runtime and the index lacks it."""
    needed = next((r for text in release.metadata.requires if (r := Requirement(text)).name == RUNTIME), None)
    if needed is None or settings["runtime"] == "assume":
        return []
    if any(_satisfies(needed, _version(name)) for name in index.files(RUNTIME)):
        return []
    own = next((name for name in release.companions if _satisfies(needed, _version(name))), None)
    # Only the authors of mcpfactory publish the runtime on pypi.org.
    public = (urlsplit(settings["url"]).hostname or "").endswith("pypi.org")
    if settings["runtime"] == "publish" and own is not None and not public:
        return [own]
    raise PublishError(
        f"{release.metadata.name} could not be installed from {settings['index']}: the index has no {needed}",
        hint="for a private index, use --set pypi.runtime=publish to upload the runtime's wheel first"
        if own is not None and not public
        else "publish mcpfactory-runtime to this index, or use --set pypi.runtime=assume if another index has mcpfactory-runtime",
    )


def _satisfies(needed: Requirement, version: str) -> bool:
    found = _parsed(version)
    return found is not None and needed.specifier.contains(found)


def _parsed(version: str) -> Version | None:
    try:
        return Version(version)
    except InvalidVersion:
        return None


# --- uploading ---


def build(release: CandidateRelease, _settings: TargetSettings) -> Mapping[str, bytes]:
    """Return the candidate's files: wheel and sdist."""
    return release.files


def upload(release: CandidateRelease, settings: TargetSettings) -> PublishEvidence:
    """Upload the missing files. The wheel is uploaded last, so that installers see only complete versions."""
    missing = inspect(release, settings).missing
    with http.open_client() as client:
        token = _token(client, settings)
        for name in sorted(missing, key=lambda name: (name in release.files, name.endswith(".whl"))):
            _upload_file(name, release.files.get(name) or release.companions[name], settings, token)
        return _evidence(release, settings, _Index(client, settings).files(release.metadata.project))


def _upload_file(name: str, data: bytes, settings: TargetSettings, token: str) -> None:
    """Upload a file with `uv publish`, without retries."""
    url = settings["url"]
    with tempfile.TemporaryDirectory(prefix="mcpfactory-") as folder:
        Path(folder, name).write_bytes(data)
        command = [uv.find_uv_bin(), "publish", "--no-config", "--color", "never", "--trusted-publishing", "never"]
        where = [
            "--publish-url",
            f"{http.require_secure_url(url, 'publish.pypi.url')}/",
            "--username",
            settings["user"],
        ]
        done = subprocess.run(
            [*command, *where, name],
            cwd=folder,
            env={**uv_environ(), "UV_PUBLISH_PASSWORD": token, "UV_HTTP_RETRIES": "0"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    if done.returncode == 0:
        return
    found = _ANSWER.search(done.stderr)
    status = int(found["status"]) if found else 0
    text = " ".join((found["text"] or "").split()) if found else ""
    message = f"it answered {status}" + (f": {text}" if text else "") if found else last_lines(done.stderr, limit=300)
    if status in {401, 403}:
        raise PublishError(
            f"{url} does not permit this token to upload {name}: {message}",
            hint=f"""set {settings["token_variable"]} to a token that may upload this project, or auth = "trusted" in CI""",
        )
    if status == 429 or status >= 500 or (not status and "Redirected URL" not in done.stderr):
        raise TargetUnavailableError(
            f"{url} failed to store {name}: {message}", hint="publish again to upload the missing files"
        )
    raise PublishError(
        f"{url} refused {name}: {message}",
        hint="mcpfactory publish NAME --target pypi --dry-run shows the published files",
    )


def _token(wire: http.HttpClient, settings: TargetSettings) -> str:
    """Return the upload token. For trusted publishing, exchange the job's identity token."""
    if settings["auth"] == "token":
        return settings.secret("token_variable")
    parts = urlsplit(settings["url"])
    base = f"{parts.scheme}://{parts.netloc.removeprefix('upload.')}"
    audience = http.response_text_field(
        wire.request("GET", f"{base}/_/oidc/audience"), "audience", f"{base}/_/oidc/audience"
    )
    identity = http.request_job_token(wire, audience, settings.environ, "PYPI_ID_TOKEN")
    return http.exchange_token(wire, f"{base}/_/oidc/mint-token", {"token": identity}, "token")


TARGET: Final = PublishTarget(
    id="pypi",
    title="PyPI or a private index: wheel and source distribution",
    build=build,
    check=check,
    upload=upload,
    inspect=inspect,
    options=PypiOptions,
)
