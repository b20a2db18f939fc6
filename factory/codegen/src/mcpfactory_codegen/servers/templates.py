"""Sources of templates, and fetching from Git and package indexes.

A source is a shipped name (`minimal`), a folder (`./templates/ours`), a Git URL or a package. A Git URL is
`git+https://example.com/our/templates@v2#subdirectory=web`, or starts with `git+ssh://` or `git+file://`. A package is
`package:our-templates==1.2#subdirectory=our_templates/web`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal, NamedTuple

from mcpfactory_runtime.errors import Exit, McpfactoryError

SourceKind = Literal["name", "git", "package"]

_GIT: Final = re.compile(
    r"git\+(?P<url>(?:https|ssh|file)://(?P<host>[^\s#/]*)/[^\s@#]+)(?:@(?P<ref>[^\s@#]+))?(?:#subdirectory=(?P<sub>[^\s#]+))?"
)
_PACKAGE: Final = re.compile(
    r"package:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*))?(?:#subdirectory=(?P<sub>[^\s#]+))?"
)
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")


class TemplateSourceError(McpfactoryError):
    """Error for a template that cannot be found, fetched or rendered."""

    exit_code = Exit.BAD_INPUT


class UnknownTemplateError(TemplateSourceError):
    """Error for an unknown template name."""

    exit_code = Exit.NOT_FOUND


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A template source. `place` is a name or path, a URL, or a requirement. `ref` is a branch, tag or commit."""

    text: str
    kind: SourceKind
    place: str
    ref: str = ""
    subfolder: str = ""

    @property
    def is_remote(self) -> bool:
        """Return True if the template must be fetched from a third party."""
        return self.kind != "name"


def parse_source(text: str) -> TemplateSource:
    """Parse the source of a template, or raise a TemplateSourceError."""
    if text.startswith("git+"):
        return _git(text)
    if text.startswith("package:"):
        found = _PACKAGE.fullmatch(text)
        if not found:
            hint = "use package:NAME==VERSION, or package:NAME==VERSION#subdirectory=FOLDER"
            raise TemplateSourceError(f"{text!r} is not a valid package source", hint)
        version = f"=={found['version']}" if found["version"] else ""
        return TemplateSource(text, "package", f"{found['name']}{version}", subfolder=_subfolder(text, found["sub"]))
    return TemplateSource(text, "name", text)


def _git(text: str) -> TemplateSource:
    found = _GIT.fullmatch(text)
    if not found:
        hint = (
            "use git+https://HOST/PATH@REF#subdirectory=FOLDER, also with ssh or file; @REF and #subdirectory are "
            "optional"
        )
        raise TemplateSourceError(f"{text!r} is not the address of a Git repository", hint)
    host, ref = found["host"], found["ref"] or ""
    if "@" in host and (not found["url"].startswith("ssh://") or ":" in host.partition("@")[0]):
        raise TemplateSourceError(
            "the address of the template contains a user name or a password, but mcpfactory.toml must not contain secrets",
            "remove it, and use git's credential helper",
        )
    if host.startswith("-") or (ref and (not _REF.fullmatch(ref) or ".." in ref)):
        message = f"{ref or host!r} cannot be used with git"
        raise TemplateSourceError(message, "give a host, and a branch, tag or commit")
    return TemplateSource(text, "git", found["url"], ref, _subfolder(text, found["sub"]))


def _subfolder(text: str, given: str | None) -> str:
    parts = (given or "").strip("/").split("/")
    if any(part in {".", ".."} or part.startswith("-") for part in parts) or (given or "").startswith("/"):
        raise TemplateSourceError(f"{text!r}: {given!r} is not a valid subdirectory", "use #subdirectory=FOLDER/BELOW")
    return "/".join(parts)


SECONDS: Final = 120  # seconds; timeout of a Git command or installation
MAX_BYTES: Final = 1 << 25  # maximum bytes of all files of a template
_MOST_FILES: Final = 2000
SETTINGS: Final = "copier.yml"
_PLAIN: Final = (b"100644", b"100755")  # modes of regular files in a Git tree
_QUIET: Final = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false", "-c", "gc.auto=0")


class FetchedTemplate(NamedTuple):
    """The directory with `copier.yml`, and the template's version, such as `commit 1f2e…` or `our-templates 1.2`."""

    folder: Path
    origin: str


def fetch_template(source: TemplateSource, folder: Path) -> FetchedTemplate:
    """Fetch a template into an empty directory.

    Raise a TemplateSourceError for an unreachable source, a missing template, or files that are not regular.
    """
    return _from_git(source, folder) if source.kind == "git" else _from_package(source, folder)


def _run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=SECONDS, **options
    )


def _from_git(source: TemplateSource, folder: Path) -> FetchedTemplate:
    with tempfile.TemporaryDirectory(prefix="mcpfactory-git-") as place:
        git = _Git(Path(place), source)
        git.run("init", "--quiet", "--bare", ".")
        commit = git.commit()
        prefix = f"{source.subfolder}/" if source.subfolder else ""
        entries = list(_entries(git, commit, prefix))
        if not any(path == SETTINGS for path, _ in entries):
            raise TemplateSourceError(
                f"there is no {SETTINGS} in {source.subfolder or 'the repository'} at commit {commit[:12]} of "
                f"{source.place}",
                "give the folder of the template: #subdirectory=FOLDER",
            )
        for path, blob in entries:
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(git.run("cat-file", "blob", blob))
    return FetchedTemplate(folder, f"commit {commit}")


class _Git:
    """Git in a temporary repository, limited to one protocol and without prompts."""

    def __init__(self, folder: Path, source: TemplateSource) -> None:
        self._folder, self._source = folder, source
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        scheme = source.place.partition(":")[0]
        self._environ = {**kept, "GIT_ALLOW_PROTOCOL": scheme, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        self._environ["GIT_SSH_COMMAND"] = "ssh -o BatchMode=yes"

    def run(self, *arguments: str) -> bytes:
        """Run a Git command, and return its output."""
        where = self._source.place
        try:
            done = _run(["git", *_QUIET, *arguments], cwd=self._folder, env=self._environ)
        except FileNotFoundError:
            message = "the template is in a Git repository, but git is not installed"
            raise TemplateSourceError(message, "install git") from None
        except subprocess.TimeoutExpired:
            raise TemplateSourceError(f"{where} timed out after {SECONDS} s", "try again") from None
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise TemplateSourceError(f"git cannot read {where}: {said}", "check the address, the ref and your access")
        return done.stdout

    def commit(self) -> str:
        """Fetch the source's ref, and return its commit."""
        wanted = self._source.ref or "HEAD"
        fetch = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph")
        try:
            self.run(*fetch, "--depth=1", "--", self._source.place, wanted)
            found = "FETCH_HEAD"
        except TemplateSourceError:
            if not all(sign in "0123456789abcdef" for sign in wanted) or len(wanted) < 7:
                raise
            heads = ("+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*")
            # fetch all branches and tags, because some Git servers refuse to serve a commit by its hash
            self.run(*fetch, "--", self._source.place, *heads)
            found = wanted
        return self.run("rev-parse", "--verify", "--end-of-options", f"{found}^{{commit}}").decode().strip()


def _entries(git: _Git, commit: str, prefix: str) -> Iterator[tuple[str, str]]:
    left, files = MAX_BYTES, 0
    listed = git.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit, *([prefix] if prefix else []))
    for entry in listed.split(b"\0"):
        if not entry:
            continue
        about, _, raw = entry.partition(b"\t")
        mode, _, blob, size = about.split()
        path = raw.decode("utf-8", "replace").removeprefix(prefix)
        if mode not in _PLAIN:
            message = f"{path} of the template is a link or a repository"
            raise TemplateSourceError(message, "use only regular files in a template")
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or "\\" in path or ".." in parts:
            raise TemplateSourceError(f"{path!r} is not a valid path inside the template", "use another template")
        left, files = left - int(size), files + 1
        if left < 0 or files > _MOST_FILES:
            message = f"the template has more than {_MOST_FILES} files or {MAX_BYTES} bytes"
            raise TemplateSourceError(message, "give its folder: #subdirectory=FOLDER")
        yield path, blob.decode()


def _from_package(source: TemplateSource, folder: Path) -> FetchedTemplate:
    from uv import find_uv_bin  # noqa: PLC0415 - uv is needed only for packages

    command = [
        find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--no-progress", "--color", "never",
        "--python", sys.executable, "--target", str(folder), "--link-mode", "copy", "--", source.place,
    ]  # fmt: skip
    try:
        done = _run(command)
    except subprocess.TimeoutExpired:
        raise TemplateSourceError(f"the package index timed out after {SECONDS} s", "try again") from None
    if done.returncode:
        said = " ".join(done.stderr.decode(errors="replace").split())
        hint = "check its name and version, and that it has a wheel; set UV_INDEX_URL to use another index"
        raise TemplateSourceError(f"the package {source.place} cannot be downloaded: {said}", hint)
    return FetchedTemplate(_template_in(folder, source), _released(folder, source.place))


def _template_in(folder: Path, source: TemplateSource) -> Path:
    found = sorted(
        path.parent.relative_to(folder).as_posix() for path in folder.rglob(SETTINGS) if not path.is_symlink()
    )
    wanted = [place for place in found if not source.subfolder or place == source.subfolder]
    if len(wanted) == 1:
        return folder / wanted[0]
    have = f"it has {', '.join(found[:20])}" if found else f"it has no {SETTINGS}"
    message = f"{source.text} does not contain exactly one matching template: {have}"
    raise TemplateSourceError(message, "give its folder: #subdirectory=FOLDER")


def _released(folder: Path, requirement: str) -> str:
    infos: Sequence[Path] = sorted(folder.glob("*.dist-info"))
    name, _, version = infos[0].name.removesuffix(".dist-info").partition("-") if infos else (requirement, "", "")
    return f"{name.replace('_', '-')} {version}".strip()
