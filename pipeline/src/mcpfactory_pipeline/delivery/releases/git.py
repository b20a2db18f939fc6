"""Git operations for releases."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ReleaseError
from mcpfactory_pipeline.base.versions import Version

TRAILER: Final = "Release"  # key of the commit trailers that name the tags of the commit
_TAG: Final = re.compile(r"(?P<server>.+)-v(?P<version>\d{1,9}\.\d{1,9}\.\d{1,9})")


@dataclass(frozen=True, slots=True)
class ReleaseTag:
    """The tag of a release, and its commit."""

    server: str
    version: str
    commit: str = ""
    annotated: bool = True

    @property
    def name(self) -> str:
        """Return the tag name `<server>-v<version>`."""
        return f"{self.server}-v{self.version}"

    @property
    def order(self) -> Version:
        """Return the version as a sort key."""
        return Version.read(self.version)

    @classmethod
    def read(cls, name: str, commit: str = "", *, annotated: bool = True) -> ReleaseTag | None:
        """Return a tag from its name, or None if the name is not a release tag."""
        found = _TAG.fullmatch(name)
        return cls(found["server"], found["version"], commit, annotated) if found else None


@dataclass(frozen=True, slots=True)
class Repository:
    """The Git repository of a workspace.

    `prefix` is the path from the repository's root to the workspace, with a final slash.
    """

    root: Path
    prefix: str

    @classmethod
    def around(cls, root: Path) -> Repository:
        """Return the repository of a workspace.

        Raises:
            ReleaseError: the repository is missing, empty or a shallow clone.
        """
        here = cls(root, "")
        if here._ask("rev-parse", "--is-inside-work-tree") is None:
            raise ReleaseError(
                "no-git", f"{root.name} is not in a git repository", hint="run 'git init', and commit all files"
            )
        if here._ask("rev-parse", "--verify", "HEAD") is None:
            raise ReleaseError("no-commit", "the repository has no commit yet", hint="git add -A && git commit")
        if here._git("rev-parse", "--is-shallow-repository").strip() == "true":
            raise ReleaseError(
                "shallow",
                "the git history is shallow, so earlier releases are missing",
                hint="run 'git fetch --unshallow --tags'; in GitHub Actions, set 'fetch-depth: 0' for actions/checkout",
            )
        return cls(root, here._git("rev-parse", "--show-prefix").strip())

    def dirty(self) -> list[str]:
        """Return the uncommitted paths, relative to the workspace (`../…` for paths outside)."""
        rows = self._git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames").split("\0")
        paths = (row[3:] for row in rows if row)
        return [p.removeprefix(self.prefix) if p.startswith(self.prefix) else f"../{p}" for p in paths]

    def tags(self, *, merged: bool = False) -> dict[str, ReleaseTag]:
        """Return all release tags by name. With `merged`, return only tags that HEAD contains."""
        only = ("--merged=HEAD",) if merged else ()
        form = "--format=%(refname:strip=2) %(objectname) %(*objectname)"
        found = {}
        for line in self._git("for-each-ref", *only, form, "refs/tags").splitlines():
            name, this, target = line.split(" ")
            if tag := ReleaseTag.read(name, target or this, annotated=bool(target)):
                found[name] = tag
        return found

    def committed(self) -> dict[str, ReleaseTag]:
        """Return the releases that commit trailers of this branch declare, by tag name."""
        form = f"--format=%H %(trailers:key={TRAILER},valueonly,separator=%x20)"
        found: dict[str, ReleaseTag] = {}
        for line in self._git("log", f"--grep=^{TRAILER}: ", form).splitlines():  # newest commit first
            commit, *names = line.split()
            for name in names:
                if tag := ReleaseTag.read(name, commit):
                    found.setdefault(name, tag)
        return found

    def unchanged_servers(self, commits: Mapping[str, str]) -> set[str]:
        """Return the servers whose folder in HEAD is identical to the folder in the given commit."""
        names = sorted(commits)
        wanted = [f"{commit}:{self.prefix}servers/{name}" for name in names for commit in (commits[name], "HEAD")]
        lines = self._git(
            "cat-file", "--batch-check=%(objectname)", stdin="".join(f"{one}\n" for one in wanted)
        ).splitlines()
        return {name for name, old, new in zip(names, lines[::2], lines[1::2], strict=True) if old == new}

    def changed_since(self, commit: str, folder: str) -> list[str]:
        """Return the tracked files in a folder of the workspace that differ from the commit."""
        out = self._git("diff", "--name-only", "--no-renames", "-z", "--relative", commit, "--", folder)
        return [path for path in out.split("\0") if path]

    def contains(self, branch: str, commit: str) -> bool:
        """Return True if a branch exists and contains a commit."""
        return self._run("merge-base", "--is-ancestor", commit, branch).returncode == 0

    def read(self, commit: str, path: str) -> bytes | None:
        """Return a file of the workspace at a commit, or None if the commit does not contain the file."""
        done = self._run("cat-file", "blob", f"{commit}:{self.prefix}{path}")
        return done.stdout if done.returncode == 0 else None

    def head(self) -> str:
        """Return the checked-out commit."""
        return self._git("rev-parse", "HEAD").strip()

    def commit(self, paths: Sequence[str], message: str) -> str:
        """Commit only these files, and return the commit."""
        listed = "".join(f"{path}\0" for path in paths)
        self._git("--literal-pathspecs", "add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul", stdin=listed)
        self._git("commit", "--quiet", "--file=-", "--cleanup=whitespace", stdin=message)
        return self.head()

    def unstage(self, paths: Sequence[str]) -> None:
        """Remove files from the Git index after a failed commit."""
        if paths:
            listed = "".join(f"{path}\0" for path in paths)
            words = ("reset", "--quiet", "--pathspec-from-file=-", "--pathspec-file-nul")
            self._git("--literal-pathspecs", *words, stdin=listed)

    def tag(self, tag: ReleaseTag, message: str) -> None:
        """Create an annotated tag."""
        self._git("tag", "--annotate", "--file=-", "--cleanup=whitespace", tag.name, tag.commit, stdin=message)

    def _ask(self, *words: str) -> str | None:
        done = self._run(*words)
        return done.stdout.decode() if done.returncode == 0 else None

    def _git(self, *words: str, stdin: str = "") -> str:
        done = self._run(*words, stdin=stdin)
        if done.returncode != 0:
            message = " ".join(done.stderr.decode(errors="replace").split())[:400]
            unknown = "tell me who you are" in message or "user.email" in message
            hint = "git config user.name '…' && git config user.email '…'" if unknown else "fix the error of git"
            raise ReleaseError(
                "git",
                f"git {next(word for word in words if word[:1] != '-')} failed: "
                f"{message or f'exit code {done.returncode}'}",
                hint=hint,
            )
        return done.stdout.decode(errors="surrogateescape")

    def _run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
        environ = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
        try:
            return subprocess.run(
                ["git", "-c", "core.fsmonitor=false", *words],
                cwd=self.root,
                env=environ,
                input=stdin.encode(errors="surrogateescape"),
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise ReleaseError(
                "no-git", f"git cannot be started: {error.strerror}", hint="install git 2.39 or later"
            ) from error
