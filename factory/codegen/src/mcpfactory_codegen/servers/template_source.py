"""Where a template comes from: shipped, a folder, a commit of git, or a package. What is fetched is read, and never run.

shipped    `minimal`
folder     `./templates/ours`
git        `git+https://example.com/our/templates@v2#subdirectory=web`, also `git+ssh://` and `git+file://`
package    `package:our-templates==1.2#subdirectory=our_templates/web`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from mcpfactory_runtime.errors import Exit, McpfactoryError

__all__ = ["TemplateSource", "TemplateSourceError", "UnknownTemplateError", "parse_source"]

SourceKind = Literal["name", "git", "package"]

_GIT: Final = re.compile(
    r"git\+(?P<url>(?:https|ssh|file)://(?P<host>[^\s#/]*)/[^\s@#]+)(?:@(?P<ref>[^\s@#]+))?(?:#subdirectory=(?P<sub>[^\s#]+))?"
)
_PACKAGE: Final = re.compile(
    r"package:(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:==(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*))?(?:#subdirectory=(?P<sub>[^\s#]+))?"
)
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/-]*")


class TemplateSourceError(McpfactoryError):
    """A template cannot be found, fetched or rendered. `hint` says what to do."""

    exit_code = Exit.BAD_INPUT


class UnknownTemplateError(TemplateSourceError):
    """There is no template of that name."""

    exit_code = Exit.NOT_FOUND


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A source in its parts. `place` is the name or path, the URL, or the requirement; `ref` a branch, tag or commit of git."""

    text: str
    kind: SourceKind
    place: str
    ref: str = ""
    subfolder: str = ""

    @property
    def foreign(self) -> bool:
        """Whether it has to be fetched: somebody else wrote it."""
        return self.kind != "name"


def parse_source(text: str) -> TemplateSource:
    """Return a source in its parts.

    Raises:
        TemplateSourceError: it begins like a source that is fetched, and is none.
    """
    if text.startswith("git+"):
        return _git(text)
    if text.startswith("package:"):
        found = _PACKAGE.fullmatch(text)
        if not found:
            raise TemplateSourceError(
                f"{text!r} names no package", "package:NAME==VERSION, or package:NAME==VERSION#subdirectory=FOLDER"
            )
        version = f"=={found['version']}" if found["version"] else ""
        return TemplateSource(text, "package", f"{found['name']}{version}", subfolder=_subfolder(text, found["sub"]))
    return TemplateSource(text, "name", text)


def _git(text: str) -> TemplateSource:
    found = _GIT.fullmatch(text)
    if not found:
        hint = "git+https://HOST/PATH@REF#subdirectory=FOLDER; ssh and file may stand for https, @REF and #subdirectory may be left out"
        raise TemplateSourceError(f"{text!r} names no repository of git", hint)
    host, ref = found["host"], found["ref"] or ""
    if "@" in host and (not found["url"].startswith("ssh://") or ":" in host.partition("@")[0]):
        raise TemplateSourceError(
            "the address of the template has a password or a user name in it, and is kept in mcpfactory.toml",
            "leave it out, and let git's credential helper give it",
        )
    if host.startswith("-") or (ref and (not _REF.fullmatch(ref) or ".." in ref)):
        raise TemplateSourceError(
            f"{ref or host!r} cannot be used with git", "name a host, and a branch, tag or commit"
        )
    return TemplateSource(text, "git", found["url"], ref, _subfolder(text, found["sub"]))


def _subfolder(text: str, given: str | None) -> str:
    parts = (given or "").strip("/").split("/")
    if any(part in {".", ".."} or part.startswith("-") for part in parts) or (given or "").startswith("/"):
        raise TemplateSourceError(f"{text!r}: {given!r} is no folder inside of it", "#subdirectory=FOLDER/BELOW")
    return "/".join(parts)
