"""The servers in the files of clients, each as what it says whoever wrote it. Pure: files in, servers out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from mcpfactory_pipeline.audit.command_line import CommandOrigin, read_command
from mcpfactory_pipeline.audit.configuration import ClientFile
from mcpfactory_pipeline.audit.mentions import (
    SecretMention,
    in_arguments,
    in_headers,
    in_url,
    in_variables,
    is_reference,
)
from mcpfactory_pipeline.clients import edits, jsonc
from mcpfactory_pipeline.clients.errors import UnreadableError
from mcpfactory_pipeline.clients.installed import entry_url

__all__ = [
    "LONGEST_ENTRY",
    "LONGEST_TEXT",
    "ConfiguredServer",
    "OddEntry",
    "Section",
    "configured_servers",
    "sections",
    "value_at",
]

_ENVIRONMENTS: Final = ("env", "envs", "environment")
_PASSED: Final = ("env_vars", "env_keys", "envKeys")
_APPROVED: Final = ("autoApprove", "alwaysAllow", "always_allow", "autoApproved", "auto_approve")
_OFF: Final = (("disabled", True), ("enabled", False), ("isActive", False), ("is_active", False))
_LONGEST: Final = 2_000  # words of a command line that are read
# Characters that are read of one text of an entry, and of all: forms of tokens are searched in them many times.
LONGEST_TEXT: Final = 4_096
LONGEST_ENTRY: Final = 32 * LONGEST_TEXT
_DEEPEST: Final = 6  # what is read of an entry is not nested deeper
_BUILT_IN: Final = frozenset({"builtin", "platform", "frontend"})  # parts of the client itself


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file that holds servers: where it is in the data, and for whom it counts.

    `lines` has the line of each name, twice where it stands twice; `places` the last of each.
    `entries` have texts up to `LONGEST_TEXT`, and `LONGEST_ENTRY` together; `cut` are the names of those that had more, with their characters.
    """

    file: ClientFile
    container: tuple[str, ...]
    scope: str
    entries: Mapping[str, Any]
    lines: tuple[tuple[str, int], ...]
    cut: tuple[tuple[str, int], ...] = ()
    places: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    def line(self, name: str) -> int:
        """Return where an entry stands, the last of that name; 1 where that is not known."""
        return self.places.get(name, 1)


@dataclass(frozen=True, slots=True)
class OddEntry:
    """What stands among servers and starts nothing and names no URL."""

    section: Section
    name: str


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """A server that a client starts or connects to.

    Attributes:
        file: the file that says so, and `line` where; `scope` for whom: user, project, local (one project of a user), named.
        words: the command line; `url` is "" with one.
        origin: what the command starts.
        environ: variables with values in the file; `passed` are names of variables that are handed on.
        headers: of a URL, with values as they stand.
        approved: tools that run without being asked about; `*` means all.
        secrets: in clear text.
    """

    file: ClientFile
    scope: str
    name: str
    line: int
    words: tuple[str, ...] = field(default=(), repr=False)
    url: str = field(default="", repr=False)
    transport: str = ""
    origin: CommandOrigin = field(default=CommandOrigin("none"), repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    passed: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    folder: str = ""
    enabled: bool = True
    approved: tuple[str, ...] = ()
    secrets: tuple[SecretMention, ...] = field(default=(), repr=False)

    @property
    def client(self) -> str:
        """The id of the client; "" where it is not known."""
        return self.file.client

    @property
    def key(self) -> str:
        """What a lock calls it: `cursor/user/github`."""
        return f"{self.client or 'any'}/{self.scope}/{self.name}"

    @property
    def address(self) -> str:
        """The URL that it leads to in the end: its own, or the one that a bridge on this machine is given."""
        return self.url or next((word for word in self.words[1:] if re.match(r"https?://", word) and self._bridges), "")

    @property
    def _bridges(self) -> bool:
        return self.origin.name in {
            "mcp-remote",
            "supergateway",
            "mcp-proxy",
            "mcp-remote-client",
            "@pyroprompts/mcp-stdio-to-streamable-http-adapter",
        }


def sections(file: ClientFile) -> list[Section]:
    """Return the parts of a file that hold servers."""
    if not isinstance(file.data, dict):
        return []
    found = [(container, file.scope) for container in _containers(file)]
    row = file.profile
    if row is not None and row.nested and not file.settings and file.scope != "project":
        found += [(path, f"local {path[-2]}") for path in _paths(file.data, row.nested)]
    return [one for container, scope in found if (one := _section(file, container, scope)) is not None]


def configured_servers(section: Section) -> Iterator[ConfiguredServer | OddEntry]:
    """Yield what stands in a section."""
    for name, kept in section.entries.items():
        entry = _flat(kept)
        if isinstance(entry, dict) and str(entry.get("type")) in _BUILT_IN:
            continue
        words = _split_command(_words(entry), entry) if isinstance(entry, dict) else ()
        url = entry_url(entry) if isinstance(entry, dict) else ""
        if not isinstance(entry, dict) or not (words or url):
            yield OddEntry(section, name)
            continue
        yield _server(section, name, entry, words, url, line=section.line(name))


def value_at(data: Any, dotted: str) -> Any:
    """Return the value under a dotted key, which may be one key with dots, too; None where there is none."""
    if not isinstance(data, dict):
        return None
    if dotted in data:
        return data[dotted]
    head, dot, rest = dotted.partition(".")
    return value_at(data.get(head), rest) if dot else None


def _containers(file: ClientFile) -> list[tuple[str, ...]]:
    row = file.profile
    if file.settings:
        return [row.older] if row is not None and row.older else []
    if row is None or file.scope == "named":
        every = [form.container for form in file.forms]
        there = [one for one in every if isinstance(_at(file.data, one), dict | list)]
        return [one for one in there if not any(one != other and other[: len(one)] == one for other in there)]
    return [edits.form_of(file.data, row.forms).container]


def _paths(data: Any, pattern: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the paths in data that fit a pattern, `*` being any key."""
    found: list[tuple[tuple[str, ...], Any]] = [((), data)]
    for part in pattern:
        found = [
            ((*path, key), value[key])
            for path, value in found
            if isinstance(value, dict)
            for key in (value if part == "*" else (part,) if part in value else ())
        ]
    return [path for path, value in found if isinstance(value, dict) and value]


def _at(data: Any, path: Sequence[str]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _section(file: ClientFile, container: tuple[str, ...], scope: str) -> Section | None:
    found = _at(file.data, container)
    if isinstance(found, list):
        found = {str(one["name"]): one for one in found if isinstance(one, dict) and "name" in one}
    if not isinstance(found, dict):
        return None
    entries = {str(name): entry for name, entry in found.items()}
    bounds = {name: _Bound() for name in entries}
    bounded = {name: _bounded(entry, bounds[name]) for name, entry in entries.items()}
    cut = tuple((name, bound.length) for name, bound in bounds.items() if bound.cut)
    lines = tuple(_lines(file, container, entries))
    return Section(file, container, scope, bounded, lines, cut, dict(lines))  # the last of a name


class _Bound:
    """What is read of an entry: how many characters its texts have so far, and whether some of them are not read."""

    length = 0
    read = 0
    cut = False

    def text(self, text: str) -> str:
        """Return as much of a text as is read of it."""
        found = text[: min(LONGEST_TEXT, LONGEST_ENTRY - self.read)]
        self.length += len(text)
        self.read += len(found)
        self.cut = self.cut or len(found) < len(text)
        return found


def _bounded(value: Any, bound: _Bound, depth: int = 0) -> Any:
    """Return a value with its texts cut."""
    if isinstance(value, str):
        return bound.text(value)
    if depth < _DEEPEST and isinstance(value, list):
        return [_bounded(one, bound, depth + 1) for one in value]
    if depth < _DEEPEST and isinstance(value, dict):
        return {_bounded(key, bound, depth + 1): _bounded(one, bound, depth + 1) for key, one in value.items()}
    return value


def _lines(file: ClientFile, container: tuple[str, ...], names: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return the names in a section with the line of each; one that is there twice comes twice."""
    if file.format == "json":
        try:
            return jsonc.lines(file.text.removeprefix("\ufeff"), container)
        except (UnreadableError, RecursionError):
            return []
    if file.format == "toml":
        pattern = rf"^[ \t]*\[{re.escape('.'.join(container))}\.(?:\"([^\"\n]*)\"|'([^'\n]*)'|([\w-]+))\]"
        return list(_toml_lines(file.text, re.compile(pattern, re.MULTILINE)))
    return _yaml_lines(file.text, container, names)


def _toml_lines(text: str, header: re.Pattern[str]) -> Iterator[tuple[str, int]]:
    line, counted = 1, 0
    for found in header.finditer(text):
        line, counted = line + text.count("\n", counted, found.start()), found.start()
        yield next(filter(None, found.groups()), ""), line


def _yaml_lines(text: str, container: tuple[str, ...], names: Mapping[str, Any]) -> list[tuple[str, int]]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return []
    for key in container:
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        node = next((value for name, value in pairs if name.value == key), None)
    if isinstance(node, yaml.MappingNode):
        return [(str(name.value), name.start_mark.line + 1) for name, _ in node.value]
    items = node.value if isinstance(node, yaml.SequenceNode) else []
    starts = [one.start_mark.line + 1 for one in items]
    return list(zip(names, starts, strict=False))


def _flat(entry: Any) -> Any:
    """Return an entry of Zed's older form, whose `command` holds path, arguments and variables, as others write it."""
    command = entry.get("command") if isinstance(entry, dict) else None
    return {**entry, **command, "command": command.get("path", "")} if isinstance(command, dict) else entry


def _words(entry: Mapping[str, Any]) -> tuple[str, ...]:
    command = entry.get("command", entry.get("cmd", ""))
    words = command if isinstance(command, list) else [command]
    rest = entry.get("args")
    found = [*words, *(rest if isinstance(rest, list) else [])][:_LONGEST]
    return (
        tuple(str(word) for word in found if isinstance(word, str | int | float))
        if isinstance(words[0] if words else "", str) and words and words[0]
        else ()
    )


def _server(
    section: Section, name: str, entry: Mapping[str, Any], words: tuple[str, ...], url: str, *, line: int
) -> ConfiguredServer:
    environ = _strings(next((entry[key] for key in _ENVIRONMENTS if isinstance(entry.get(key), dict)), {}))
    origin = read_command(words) if words else CommandOrigin("none")
    environ |= origin.environ
    options = entry.get("requestOptions")
    headers = _strings(
        entry.get("headers")
        or entry.get("http_headers")
        or (options.get("headers") if isinstance(options, dict) else None)
    )
    named = [str(one) for key in _PASSED if isinstance(entry.get(key), list) for one in entry[key]]
    named += origin.run.passed if origin.run else ()
    named += [key for key, value in environ.items() if is_reference(value)]
    secrets = [*in_variables(environ), *in_headers(headers), *in_url(url)]
    secrets += [one for one in in_arguments(words) if one.value not in set(environ.values())] if words else []
    return ConfiguredServer(
        section.file,
        section.scope,
        name,
        line,
        words,
        url,
        str(entry.get("type") or entry.get("transport") or ""),
        origin,
        environ,
        tuple(dict.fromkeys(named)),
        headers,
        str(entry.get("cwd") or ""),
        not any(entry.get(key) is value for key, value in _OFF),
        tuple(_approved(entry)),
        tuple(dict.fromkeys(secrets)),
    )


def _split_command(words: tuple[str, ...], entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the words; a command that is one text with its arguments in it is split, as clients that start it by a shell do."""
    first = words[0] if words else ""
    if len(words) == 1 and " " in first.strip() and "args" not in entry and not re.match(r"([A-Za-z]:)?[/\\]", first):
        return tuple(first.split())
    return words


def _strings(found: Any) -> dict[str, str]:
    if not isinstance(found, dict):
        return {}
    return {
        str(key): value if isinstance(value, str) else str(value)
        for key, value in found.items()
        if not isinstance(value, dict | list)
    }


def _approved(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the tools that run without a question, as the entry says."""
    for key in _APPROVED:
        value = entry.get(key)
        if value is True:
            yield "*"
        elif isinstance(value, list):
            yield from (str(one) for one in value)
    if entry.get("trust") is True or entry.get("default_tools_approval_mode") == "approve":
        yield "*"
    tools = entry.get("tools")
    if isinstance(tools, dict):
        for name, settings in tools.items():
            if isinstance(settings, dict) and settings.get("approval_mode") == "approve":
                yield str(name)
