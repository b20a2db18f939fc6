"""Which origin a workspace gets: what a person asks for, or the one that works wherever jobs run."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.ci.origin import FOLDER, FORMS, Origin, parse_origin

__all__ = ["VENDORED", "choose_origin", "installed_origin", "is_public", "is_readable"]

VENDORED: Final = Origin(FOLDER, "tools/mcpfactory/")
_PATIENCE: Final = 15  # seconds that a repository has to answer


def choose_origin(text: str) -> Origin:
    """Return the origin that a person means: a form of `parse_origin`, `git` or `vendored`; for "" the one that works.

    That is the repository that this factory was installed from, when it answers without a credential; else its own wheels
    in the workspace. Raises `ConfigError` for a text that means none.
    """
    installed = installed_origin()
    if not text:
        return installed if installed and is_public(installed.place) and is_readable(installed.place) else VENDORED
    if text == "vendored":
        return VENDORED
    if text == "git":
        if installed is None:
            raise ConfigError("mcpfactory was not installed from a repository", hint="name one: git+https://…@REF")
        return installed
    try:
        return parse_origin(text)
    except ConfigError as error:
        if text.startswith("git+"):
            raise ConfigError(str(error).replace("workspace.factory", "the factory"), hint=error.hint) from error
        raise ConfigError(f"{text!r} is no place of a factory", hint=f"git, vendored, {FORMS}") from error


def installed_origin() -> Origin | None:
    """Return the repository and commit that this factory was installed from, as its installer noted it (PEP 610); else None."""
    try:
        found: Any = json.loads(distribution("mcpfactory").read_text("direct_url.json") or "{}")
        url, vcs = found["url"], found["vcs_info"]
        return parse_origin(f"git+{url}@{vcs['commit_id']}") if vcs["vcs"] == "git" else None
    except (PackageNotFoundError, ValueError, KeyError, TypeError, ConfigError):
        return None


def is_public(url: str) -> bool:
    """Whether a URL can mean the same to another machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme != "https" or "." not in host or host.endswith((".local", ".localhost", ".internal", ".lan")):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return True


def is_readable(url: str) -> bool:
    """Whether a repository can be read by somebody who has no credential."""
    alone = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": ""}
    try:
        done = subprocess.run(
            ["git", "-c", "credential.helper=", "ls-remote", "--quiet", url, "HEAD"],
            env={**os.environ, **alone}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
