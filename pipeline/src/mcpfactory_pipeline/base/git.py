"""Run git, and sign with SSH keys."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError

QUIET: Final = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "gc.auto=0"),  # as it would after a fetch, with hooks
    *("-c", "safe.bareRepository=explicit"),  # ignore files of a folder that look like a bare repository
)
"""Options of every git command of ours: the configuration of a repository that somebody else made runs nothing."""

_RUN: Final = (
    (r"filter\..*\.(clean|smudge|process)|diff\..*\.command|diff\.external|credential\.(.*\.)?helper", ""),
    (r"core\.(askpass|pager|editor|alternaterefscommand)|gpg\.ssh\.defaultkeycommand", ""),
    (r"filter\..*\.required|log\.showsignature", "false"),
    (r"diff\..*\.textconv", "cat"),
    (r"core\.sshcommand", "ssh"),
    (r"gpg\.(.*\.)?program", "gpg"),
)
"""Configuration keys of a repository that name programs, and their values during our commands (git-config(1))."""
_PROTOCOLS: Final = ("http", "https", "ssh")
"""Permitted protocols to fetch missing objects of a partial clone.

Other protocols start programs that a repository names, and a later value cannot override that.
"""
_ASK_ONLY: Final = frozenset({"check-ignore", "config", "init", "remote", "symbolic-ref"})  # start nothing
_OWN: Final = (b"local", b"worktree")
_ALSO: Final = {"status": ("--ignore-submodules=dirty",)}
"""Additional options of a command.

Inside a nested repository, git would run itself with that repository's configuration.
"""


def git_output(folder: Path | None, *arguments: str) -> bytes | None:
    """Return the output of a git command; None if it cannot be run or fails.

    Programs in the repository's own configuration never run: filters, helpers, diff tools. Those of the user's
    configuration do (`git lfs install`, for example). Uncommitted changes in a nested repository are not reported.
    """
    permitted = os.environ.get("GIT_ALLOW_PROTOCOL", ":".join(_PROTOCOLS)).split(":")
    environ = {**os.environ, "GIT_ALLOW_PROTOCOL": ":".join(name for name in _PROTOCOLS if name in permitted)}
    if arguments[0] not in _ASK_ONLY:
        if (printed := _git(folder, environ, "config", "--list", "--show-scope", "-z")) is None:
            return None  # unknown which programs would run
        first = int(environ.get("GIT_CONFIG_COUNT") or 0)
        for at, (key, value) in enumerate(_overridden(printed), first):
            environ |= {f"GIT_CONFIG_KEY_{at}": key, f"GIT_CONFIG_VALUE_{at}": value, "GIT_CONFIG_COUNT": str(at + 1)}
    command, *words = arguments
    return _git(folder, environ, command, *_ALSO.get(command, ()), *words)


def _git(folder: Path | None, environ: dict[str, str], *arguments: str) -> bytes | None:
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", *QUIET, *arguments],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _overridden(printed: bytes) -> Iterator[tuple[str, str]]:
    """Yield the keys of a repository's own configuration that name programs, with our values for them.

    `printed` is the output of `git config`.
    """
    parts = printed.split(b"\0")
    for scope, setting in zip(parts[::2], parts[1::2], strict=False):
        key = os.fsdecode(setting.partition(b"\n")[0])
        for pattern, value in _RUN if scope in _OWN else ():
            if re.fullmatch(pattern, key, re.IGNORECASE | re.DOTALL):
                yield key, value


def git_text(folder: Path | None, *arguments: str) -> str:
    """Return the output of a git command as stripped text; "" if it cannot be run or fails."""
    return (git_output(folder, *arguments) or b"").decode(errors="replace").strip()


_INSTALL: Final = "install OpenSSH 8.2 or newer"


def sign(key: Path, namespace: str, data: bytes) -> str:
    """Return the signature of some bytes by a private key, or by the agent's key that a public one names.

    Raises:
        ConfigError: the key cannot be used.
    """
    done = _keygen("-Y", "sign", "-q", "-f", str(key.expanduser()), "-n", namespace, data=data)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(
            f"{key} cannot sign: {words[-1] if words else 'ssh-keygen failed'}",
            hint="set --sign-with to a private SSH key, or to a public key whose private key is in the SSH agent",
        )
    return done.stdout.decode("ascii")


def signature_fault(signers: Path, who: str, namespace: str, data: bytes, signature: str) -> str:
    """Return why a signature of some bytes is not that of `who` by the file of allowed signers; "" when it is.

    Raises:
        ConfigError: ssh-keygen cannot be run.
    """
    if not signers.is_file():
        return f"there is no {signers.name}"
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "signature")
        file.write_text(signature, encoding="utf-8")
        done = _keygen("-Y", "verify", "-f", str(signers), "-I", who, "-n", namespace, "-s", str(file), data=data)
    if done.returncode == 0:
        return ""
    words = (done.stderr + b"\n" + done.stdout).decode(errors="replace").strip().splitlines()
    return words[-1] if words else "ssh-keygen says no"


def _keygen(*words: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=data, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"ssh-keygen cannot be run: {error.strerror}", hint=_INSTALL) from error
