"""Signatures by ssh keys, as `ssh-keygen -Y` makes and checks them."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import ConfigError

__all__ = ["sign", "signature_fault"]

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
            hint="--sign-with names a private key of ssh, or a public one whose key the agent has",
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
