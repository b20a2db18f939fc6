"""Servers elsewhere from the file in which clients of MCP have theirs: `mcpServers`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcpfactory_runtime.server.remote.server import RemoteServer

__all__ = ["remote_servers"]

Json = dict[str, Any]

_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]+")  # in a prefix of names of tools
_COMMAND: Final = frozenset({"command", "args", "env", "cwd"})
_ADDRESS: Final = frozenset({"url", "headers"})


def remote_servers(source: str | os.PathLike[str] | Mapping[str, Any], **options: Any) -> dict[str, RemoteServer]:
    """Return the servers of an `mcpServers` file, by a name that can be a prefix.

    >>> for name, part in remote_servers("mcp.json").items():
    ...     server.mount(part, name)

    `${NAME}` and `${NAME:-default}` in its texts stand for variables of the environment. Members that are for clients alone are not looked at.

    Args:
        source: the file, or what it holds: `{"mcpServers": {"books": {"command": "python", "args": ["-m", "books"]}}}`; a server has a
            `command` with `args`, `env` and `cwd`, or a `url` with `headers`.
        **options: those of `RemoteServer` that all of them get.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds something else, or names a variable that is not set.
    """
    where = "mcpServers" if isinstance(source, Mapping) else os.fspath(source)
    data: Any = source if isinstance(source, Mapping) else _read(Path(source))
    servers = data.get("mcpServers") if isinstance(data, Mapping) else None
    if not isinstance(servers, Mapping):
        raise ValueError(f'{where} has no mcpServers\nhint: {{"mcpServers": {{"books": {{"command": "books"}}}}}}')
    found: dict[str, RemoteServer] = {}
    for name, entry in servers.items():
        prefix = _UNFIT.sub("-", name)
        if prefix in found:
            raise ValueError(f"{where}: two servers would be called {prefix!r}\nhint: other names")
        found[prefix] = _remote_server(f"{where}, {name}", name, entry, options)
    return found


def _read(file: Path) -> Any:
    try:
        return json.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} is no JSON: {error}\nhint: the file of a client, such as mcp.json") from None


def _remote_server(where: str, name: str, entry: Any, options: Json) -> RemoteServer:
    if not isinstance(entry, Mapping) or ("command" in entry) == ("url" in entry):
        raise ValueError(f"{where}: it has neither or both of command and url\nhint: one of them")
    known = _COMMAND if "command" in entry else _ADDRESS
    given = {key: _filled(where, entry[key]) for key in known if entry.get(key) is not None}
    words = [given.pop("command", ""), *given.pop("args", ())]
    target = given.pop("url", words)
    try:
        return RemoteServer(target, name=name, **given, **options)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


def _filled(where: str, value: Any) -> Any:
    """Return a value of JSON with variables in its texts."""
    if isinstance(value, Mapping):
        return {key: _filled(where, one) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(where, one) for one in value]
    if not isinstance(value, str):
        raise ValueError(f"{where}: {value!r} is no text\nhint: write it as a text")

    def variable(found: re.Match[str]) -> str:
        default = found[2]
        value = os.environ.get(found[1], default)
        if value is None:
            raise ValueError(f"{where}: the variable {found[1]} is not set\nhint: set it, or ${{{found[1]}:-default}}")
        return value

    return _VARIABLE.sub(variable, value)
