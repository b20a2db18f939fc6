"""Where jobs, and the servers' own environments, take the factory from: `factory` in `[workspace]`.

```toml
[workspace]
factory = "tools/mcpfactory/"                     # wheels in a folder of the workspace, tracked
factory = "git+https://host/repository@1.2.3"     # a commit, a tag or a branch of a repository
factory = "index"                                 # the package index that jobs use, in this version
```
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError
from mcpfactory_pipeline.base.versions import tool_version
from mcpfactory_runtime.addresses import split_web_url

__all__ = [
    "FOLDER",
    "FORMS",
    "GIT",
    "INDEX",
    "SUBFOLDERS",
    "VENDORED",
    "Origin",
    "choose_origin",
    "in_words",
    "install_line",
    "installed_origin",
    "is_public",
    "is_readable",
    "parse_origin",
    "read_origin",
    "uv_tables",
]

INDEX: Final = "index"
GIT: Final = "git"
FOLDER: Final = "folder"
FORMS: Final = "index, git+https://…@REF, or a folder of the workspace with a slash at its end (tools/mcpfactory/)"

# Where each of our distributions lies in a repository of the factory; what one needs comes before it.
SUBFOLDERS: Final[Mapping[str, str]] = {
    "mcpfactory-runtime": "factory/runtime",
    "mcpfactory-codegen": "factory/codegen",
    "mcpfactory-pipeline": "pipeline",
    "mcpfactory": "factory/cli",
}
# What may stand in a script between quotes, and what in a pattern of a shell: the value becomes a part of both.
_REPOSITORY: Final = re.compile(r"(?:https?|ssh|file)://[A-Za-z0-9@][A-Za-z0-9@._~:/%+-]*|file:///[A-Za-z0-9._~/%+-]+")
_REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,199}")
_PLACE: Final = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*/)+")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the factory is taken from: `place` is a repository's URL or a folder's path, `ref` what is checked out."""

    kind: str
    place: str = ""
    ref: str = ""

    def __str__(self) -> str:
        """As it is recorded; `parse_origin` reads it."""
        return {INDEX: INDEX, GIT: f"git+{self.place}@{self.ref}", FOLDER: self.place}[self.kind]


def in_words(origin: Origin) -> str:
    """Return for people where the factory is taken from, and what they have to ensure."""
    if origin.kind == INDEX:
        return f"the package index, mcpfactory {tool_version('mcpfactory')}: see to it that it is there, and that it is yours"
    return str(origin)


def parse_origin(text: str) -> Origin:
    """Return the origin that `str` gives as this text.

    Raises:
        ConfigError: it is no origin.
    """
    if text == INDEX:
        return Origin(INDEX)
    if text.startswith("git+"):
        place, _, ref = text.removeprefix("git+").rpartition("@")
        return Origin(GIT, _repository(text, place), ref) if _REF.fullmatch(ref) else _no_ref(text)
    if _PLACE.fullmatch(text) and ".." not in text.split("/"):
        return Origin(FOLDER, text)
    raise ConfigError(f"workspace.factory is {text!r}, which is no place of a factory", hint=FORMS)


def _repository(text: str, place: str) -> str:
    if not _REPOSITORY.fullmatch(place):
        raise ConfigError(f"workspace.factory is {text!r}, which is no URL of a repository", hint="git+https://…@REF")
    if urlsplit(place).password is not None or (urlsplit(place).username and not place.startswith("ssh:")):
        raise ConfigError(
            "workspace.factory has a password in its URL, and is tracked",
            hint="name the repository without it, and give jobs a credential of their own; or mcpfactory ci --factory vendored",
        )
    return place


def _no_ref(text: str) -> Origin:
    raise ConfigError(
        f"workspace.factory is {text!r}, which does not say what is checked out",
        hint="name a commit or a tag: git+https://…@REF",
    )


def read_origin(config: Mapping[str, Any]) -> Origin | None:
    """Return the origin in the content of a root `mcpfactory.toml`; None when it names none.

    Raises:
        ConfigError: it cannot be used.
    """
    table = config.get("workspace", {})
    value = table.get("factory") if isinstance(table, dict) else None
    if value is None:
        return None
    if not isinstance(value, str):
        raise ConfigError(f"workspace.factory is {value!r}", hint=FORMS)
    return parse_origin(value)


def install_line(origin: Origin) -> str:
    """Return the line of a script that installs the factory. Wheels of a folder are named, so that no index is asked for them."""
    if origin.kind == INDEX:
        return f"python -m pip install mcpfactory=={tool_version('mcpfactory')}"
    if origin.kind == FOLDER:
        return f"python -m pip install {origin.place}mcpfactory*.whl"
    parts = (f'"{name} @ {origin}#subdirectory={folder}"' for name, folder in SUBFOLDERS.items())
    return " ".join(["python -m pip install", *parts])


def uv_tables(origin: Origin) -> str:
    """Return the tables of the root `pyproject.toml` that let uv find the runtime; empty where the index has it.

    The wheel is named, so that no index is asked for it: a stranger's package of that name, in a higher version, is never taken.
    """
    if origin.kind == INDEX:
        return ""
    if origin.kind == GIT:
        source = {"git": origin.place, "rev": origin.ref, "subdirectory": SUBFOLDERS["mcpfactory-runtime"]}
    else:
        source = {"path": f"{origin.place}mcpfactory_runtime-{tool_version('mcpfactory-runtime')}-py3-none-any.whl"}
    inline = ", ".join(f"{key} = {json.dumps(text)}" for key, text in source.items())
    return f"[tool.uv.sources]\nmcpfactory-runtime = {{ {inline} }}\n"


VENDORED: Final = Origin(FOLDER, "tools/mcpfactory/")
_PATIENCE: Final = 15  # seconds that a repository has to answer


def choose_origin(text: str) -> Origin:
    """Return the origin that a person means: a form of `parse_origin`, `git` or `vendored`; for "" the one that works.

    That is the repository that this factory was installed from, when it answers without a credential; else its own wheels
    in the workspace.

    Raises:
        NotFoundError: the text names no origin.
        ConfigError: it names a repository that cannot be used.
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
        raise NotFoundError(f"{text!r} is no place of a factory", hint=f"git, vendored, {FORMS}") from error


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
    parts = split_web_url(url)
    host = parts.hostname or "" if parts else ""
    own = "." not in host or host.endswith((".local", ".localhost", ".internal", ".lan"))
    if own or parts is None or parts.scheme != "https":
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return True


def is_readable(url: str) -> bool:
    """Whether a repository can be read by somebody who has no credential."""
    alone = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GIT_DIR": os.devnull}  # no settings
    try:
        done = subprocess.run(
            ["git", "-c", "credential.helper=", "ls-remote", "--quiet", url, "HEAD"],
            env={**os.environ, **alone},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
