"""What a person accepted of the servers of clients, as a file: how each is started, in which version, and the tools that it offered.

Of a command only what names something stands in it in clear: programs, packages, options, hosts and paths of URLs. Any other word is a
digest, by which another one is noticed; what is known as a secret is `…`, and not even a digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from mcpfactory_pipeline.audit.inventory import ConfiguredServer
from mcpfactory_pipeline.audit.mentions import is_token, shown_url
from mcpfactory_pipeline.base.damage import why_damaged
from mcpfactory_pipeline.base.errors import StateError
from mcpfactory_pipeline.base.hashing import hash_bytes

__all__ = ["AcceptedServer", "OfferedTools", "accept", "lock_key", "lock_text", "read_lock", "tools_digest"]

_VERSION: Final = 3
_SHORTEST: Final = 6  # characters of a secret that is taken out of longer words; `1` stands in many
# Names of options: `--root`, and `-y` or `-rf`. Behind one hyphen and a letter, whatever is longer may be the value (`-pSECRET`, `-I/path`).
_OPTION: Final = re.compile(r"--[A-Za-z][A-Za-z0-9_.-]{0,39}|-[A-Za-z]{1,2}")
_GLUED: Final = re.compile(r"(-[A-Za-z])(.+)", re.DOTALL)
_PAIR: Final = re.compile(
    r"(--[A-Za-z][A-Za-z0-9_.-]{0,39}|-[A-Za-z]{1,2}|[A-Z_][A-Z0-9_]{0,39}|[a-z_]{1,40})=(?!=*\Z)(.+)", re.DOTALL
)  # what ends with `=` may be a value in base64
_PLAIN: Final = frozenset(
    {"run", "exec", "x", "dlx", "tool", "start", "stdio", "serve", "mcp"}
)  # what runners are told


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """What a server said when it was started: its tools and instructions, or why nothing (`problem`), and what to do then (`hint`).

    In the place of each value that it was handed is a mark; `leaked` are the names of those that it told.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    instructions: str = ""
    version: str = ""
    problem: str = ""
    leaked: tuple[str, ...] = ()
    hint: str = ""


@dataclass(frozen=True, slots=True)
class AcceptedServer:
    """One server of a lock. `tools` is None when nobody had started it."""

    command: str
    version: str
    variables: tuple[str, ...]
    tools: tuple[Mapping[str, Any], ...] | None = field(default=None, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in the file."""
        return asdict(self)


def accept(server: ConfiguredServer, listing: OfferedTools | None) -> AcceptedServer:
    """Return what there is to accept of a server."""
    secrets = sorted((one.value for one in server.secrets), key=len, reverse=True)
    command = " ".join(_shown(server, word, secrets) for word in ((server.url,) if server.url else server.words))
    tools = (
        None
        if listing is None or listing.problem
        else tuple(sorted(listing.tools, key=lambda tool: str(tool.get("name"))))
    )
    names = {*server.environ, *server.passed, *(f"header {name}" for name in server.headers)}
    variables = tuple(sorted(_name(server.key, one) for one in names))
    return AcceptedServer(command, _name(server.key, server.origin.version), variables, tools)


def lock_key(server: ConfiguredServer) -> str:
    """Return what a lock calls a server: its key, and a digest in place of a name that has a token in it."""
    return _name("", server.key)


def _is_of(name: str, word: str) -> bool:
    """Whether a word is the name of a package, perhaps with a version or extras behind it, and not another that begins alike."""
    return word.startswith(name) and (word == name or word[len(name)] in "@=~<>!:;[")


def _shown(server: ConfiguredServer, word: str, secrets: Sequence[str]) -> str:
    """Return what a lock has of one word of a command: itself, where it names something, and else a digest."""
    for value in secrets:  # the longest first
        word = "…" if word == value else word.replace(value, "…") if len(value) >= _SHORTEST else word
    origin, bare = server.origin, word.strip("…")
    if not bare or is_token(word):
        return "…" if not bare else _digest(server.key, word)
    if re.match(r"[a-z][a-z0-9+.-]{0,30}://", word):
        shown = shown_url(word)
        return shown if word in {shown, f"{shown}?", f"{shown}#"} else f"{shown} {_digest(server.key, word)}"
    known = {server.words[0] if server.words else "", *origin.words[:1], *origin.scripts, *_PLAIN}
    spec = word
    if origin.name and _is_of(origin.name, word):  # the version is told apart from the command
        spec = origin.name
        word = word.replace(origin.version, "…") if origin.version else word
    if spec in known or (origin.name and spec == origin.name and origin.kind != "code") or _OPTION.fullmatch(word):
        return word
    if pair := _PAIR.fullmatch(word):
        return f"{pair[1]}={_value(server, pair[2], secrets)}"
    if glued := _GLUED.fullmatch(word):
        return f"{glued[1]}{_value(server, glued[2], secrets)}"
    return _digest(server.key, word)


def _value(server: ConfiguredServer, text: str, secrets: Sequence[str]) -> str:
    return "…" if text == "…" or text in secrets else _digest(server.key, text)


def _name(salt: str, text: str) -> str:
    return _digest(salt, text) if is_token(text) else text


def _digest(salt: str, text: str) -> str:
    """Return a digest of a text, another one for each server: enough to notice another text."""
    return "#" + hashlib.sha256(f"{salt}\0{text}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def tools_digest(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return one hash of a tool list, whatever its order."""
    rows = sorted(json.dumps(tool, sort_keys=True, ensure_ascii=False) for tool in tools)
    return hash_bytes("\n".join(rows).encode("utf-8", "surrogatepass"))


def lock_text(servers: Mapping[str, AcceptedServer]) -> str:
    """Return the content of a lock: one server after the other, one tool a line."""
    data = {"audit": _VERSION, "servers": {key: servers[key].to_json() for key in sorted(servers)}}
    return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=True) + "\n"


def read_lock(text: bytes, source: str) -> dict[str, AcceptedServer]:
    """Return the servers of a lock by their keys.

    Raises:
        StateError: it is none.
    """
    try:
        data = json.loads(text)
        if data["audit"] != _VERSION:
            raise ValueError(f"it is of version {data['audit']!r}, and {_VERSION} is read")
        return {str(key): _read(entry) for key, entry in data["servers"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StateError(
            f"{source} is no lock of an audit: {why_damaged(error)}",
            hint="mcpfactory audit --lock FILE --accept writes one",
        ) from error


def _read(entry: Mapping[str, Any]) -> AcceptedServer:
    tools: Iterable[Any] | None = entry["tools"]
    if tools is not None and not all(isinstance(tool, dict) and isinstance(tool.get("name"), str) for tool in tools):
        raise ValueError("it holds something else than tools with names")
    return AcceptedServer(
        str(entry["command"]),
        str(entry["version"]),
        tuple(map(str, entry["variables"])),
        tuple(tools) if tools is not None else None,
    )
