"""The servers of an API: which one is the root, and what the others are called. All at once, so that no name depends on an order.

Operations name servers by URL in a document, and by name after this. An address that is the root's, however it is written, is the
root; the others get a name of their own, which leads the variable that moves them: `uploads.github.com` of the server github is
moved by GITHUB_UPLOADS_BASE_URL. Such a variable is none of a credential, for it ends as no part of a credential does.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mcpfactory_codegen.ir import ApiOperation, ApiServer
from mcpfactory_codegen.text import digest, words

__all__ = ["SettledServers", "is_same_server", "name_servers", "settle_servers"]

_PORTS: Final = {"http": 80, "https": 443}
_EMPTY_LABELS: Final = frozenset({"www", "api", "apis", "rest"})
_LONGEST: Final = 40  # characters of a name


@dataclass(frozen=True, slots=True)
class SettledServers:
    """What `settle_servers` found. `assumed` is the root that only operations name, while others name none; "" when that is not so."""

    root: tuple[str, ...]
    own: tuple[ApiServer, ...]
    operations: tuple[ApiOperation, ...]
    assumed: str = ""


def settle_servers(roots: tuple[str, ...], operations: Sequence[ApiOperation], *, stated: bool) -> SettledServers:
    """Return the root, the other servers by name, and the operations with names in place of URLs.

    Where the document does not state a root, it is the server that most operations have: of all when there is no other to be had, of
    none at the document's own address else.

    Args:
        roots: the document's, best first.
        operations: with the URL of their own server each, "" for the root.
        stated: the document itself names its root; else it is the address that it came from.
    """
    same = _spellings({operation.server for operation in operations if operation.server})
    operations = [dataclasses.replace(one, server=same[one.server]) if one.server else one for one in operations]
    counts = Counter(operation.server for operation in operations)
    at_root = counts.pop("", 0)
    if not counts:
        return SettledServers(roots, (), tuple(operations))
    common, times = max(
        sorted(counts.items(), key=lambda one: (len(one[0]), one[0])), key=lambda one: one[1]
    )  # of equals, the shortest
    taken = not (stated and roots) and (not at_root or (not roots and 2 * times > len(operations)))
    root = (common,) if taken else roots
    base = root[0] if root else ""
    named = name_servers([url for url in counts if not is_same_server(url, base)], base)
    names = {one.url: one.name for one in named}
    return SettledServers(
        root,
        named,
        tuple(dataclasses.replace(one, server=names.get(one.server, "")) if one.server else one for one in operations),
        assumed=common if taken and at_root else "",
    )


def _spellings(urls: Collection[str]) -> dict[str, str]:
    """Return for each address the one that stands for it: the same server is written in several ways, and as https before http."""
    found: dict[str, str] = {}
    for url in sorted(urls, key=lambda one: (not one.startswith("https:"), len(one), one)):
        found[url] = next((other for other in found.values() if is_same_server(url, other)), url)
    return found


def is_same_server(url: str, root: str) -> bool:
    """Whether an address is the root's: the same host, port and path; `http` of a host whose root is `https` is, too."""
    ours, theirs = _split(url), _split(root)
    same = ours.scheme == theirs.scheme or (ours.scheme, theirs.scheme) == ("http", "https")
    return bool(root) and same and ours[1:] == theirs[1:]


def name_servers(urls: Collection[str], root: str) -> tuple[ApiServer, ...]:
    """Return a server for each address, sorted by name: short words of its host and path that tell it from the root and the others."""
    named: dict[str, str] = {}
    taken: set[str] = set()
    waiting = [(url, _candidates(url, root)) for url in sorted(urls)]
    while waiting:
        proposals = [(url, next(candidates), candidates) for url, candidates in waiting]
        claims = Counter(name for _, name, _ in proposals)
        waiting = []
        for url, name, candidates in proposals:
            if name and name not in taken and claims[name] == 1:
                named[url] = name
            else:
                waiting.append((url, candidates))
        taken |= claims.keys()
    return tuple(sorted((ApiServer(name, url) for url, name in named.items()), key=lambda one: one.name))


class _ServerParts(NamedTuple):
    """What an address consists of. `port` is "" for that of the scheme."""

    scheme: str
    host: str
    port: str
    path: tuple[str, ...]


def _split(url: str) -> _ServerParts:
    try:
        split = urlsplit(url)
        port = "" if split.port in (None, _PORTS.get(split.scheme)) else str(split.port)
    except ValueError:
        return _ServerParts("", url, "", ())
    path = tuple(one for one in split.path.split("/") if one)
    return _ServerParts(split.scheme, (split.hostname or "").rstrip("."), port, path)


def _candidates(url: str, root: str) -> Iterator[str]:
    ours, theirs = _split(url), _split(root)
    labels = ours.host.split(".")
    if ours.host == theirs.host:
        if further := [one for one in ours.path if one not in theirs.path]:
            yield _name(further[:1])
            yield _name(further)
        elif ours.path == theirs.path:
            yield ours.port or ours.scheme
        elif not ours.path:
            yield "origin"
    elif not labels[-1].isdigit():  # an IPv4 address has no labels
        other = [one for one in labels[:-1] or labels if one not in theirs.host.split(".")]
        telling = [one for one in other if one not in _EMPTY_LABELS] or other
        yield _name(telling[:1])
        yield _name(telling)
        yield _name([*telling[:1], *ours.path])
    every = [*labels, *([ours.port] if ours.port else []), *ours.path]
    yield _name(every)
    yield _name([ours.scheme, *every])
    length = 6
    while True:
        yield f"{_name(labels) or 'server'}_{digest(url, length)}"
        length += 2


def _name(parts: Sequence[str]) -> str:
    """`dl_boxcloud`: the words of a host or path, as a part of a variable's name in small letters; "" when there are none, or too many."""
    name = "_".join(word for part in parts for word in words(part))
    return name if len(name) <= _LONGEST else ""
