from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError

_ALWAYS: Final = ("--no-optional-locks", "-c", "safe.bareRepository=explicit")
"""Options for every git command.

A pull request can contain a bare repository, and a repository's configuration can run programs.
"""


def git_output(folder: Path | None, *arguments: str) -> bytes | None:
    """Return the output of a git command; None if the command cannot be run or fails."""
    try:
        done = subprocess.run(
            ["git", *_ALWAYS, *arguments], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def git_text(folder: Path | None, *arguments: str) -> str:
    """Return the output of a git command as stripped text; "" if the command cannot be run or fails."""
    return (git_output(folder, *arguments) or b"").decode(errors="replace").strip()


_INSTALL: Final = "install OpenSSH 8.2 or newer"


def sign_with_ssh_key(key: Path, namespace: str, data: bytes) -> str:
    """Sign data with a private key. If `key` is a public key, use the matching private key in the SSH agent."""
    done = _keygen("-Y", "sign", "-q", "-f", str(key.expanduser()), "-n", namespace, data=data)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise ConfigError(
            f"{key} cannot sign: {words[-1] if words else 'ssh-keygen failed'}",
            hint="set --sign-with to a private SSH key, or to a public key whose private key is in the SSH agent",
        )
    return done.stdout.decode("ascii")


def ssh_signature_fault(signers: Path, who: str, namespace: str, data: bytes, signature: str) -> str:
    """Return the reason why a signature by `who` is invalid; "" if the signature is valid.

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
    return words[-1] if words else "ssh-keygen rejected it"


def _keygen(*words: str, data: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["ssh-keygen", *words], input=data, capture_output=True, check=False)
    except OSError as error:
        raise ConfigError(f"ssh-keygen cannot be run: {error.strerror}", hint=_INSTALL) from error
