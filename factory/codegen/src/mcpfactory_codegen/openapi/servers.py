"""Servers: absolute base URLs with the defaults of their variables (OpenAPI 3.1 §4.8.5, §4.8.6), and the root.

Operations reference servers by URL in a document, and by name after `resolve_servers`. Another spelling of the root's
URL also counts as the root. Every other server gets a name.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.naming.environment_variables import (
    is_loopback_url,
    is_mock_url,
    is_sandbox_url,
    matches_root_url,
    name_server_urls,
)
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.context import Node
from mcpfactory_runtime.upstream.operation import ServerAddress

_HINT: Final = "set the BASE_URL variable of the server where it runs, or write an absolute URL into `servers`"
_HOST: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/|\Z)")
_LOCAL_PORT: Final = re.compile(r"[\w.-]+:\d+(?:/|\Z)")  # urlsplit reads `localhost:8080/api` as scheme `localhost`
_UNUSABLE: Final = re.compile(r"[\s\x00-\x1f<>\"{}|\\^`]")
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


def root_server_urls(root: Node) -> tuple[str, ...]:
    """Return the usable servers of the document, or else the URL that the document came from."""
    servers = root.at("servers")
    if root.context.spec.shape == "2":
        urls = swagger2.server_urls(root)
    else:
        urls = _listed(servers)
        if not servers.value:
            urls = [("/", servers)]
    found = [url for url in (_absolute(url, at, "") for url, at in urls) if url]
    return _real_first(servers, tuple(dict.fromkeys(found)))


def _real_first(servers: Node, urls: tuple[str, ...]) -> tuple[str, ...]:
    """Move the first real URL before a mock or an example, and report a sandbox."""
    real = next((url for url in urls if not is_mock_url(url) and not is_sandbox_url(url)), "")
    # the API key for a loopback server must not be sent to any other host
    if not real or urls[0] == real or is_loopback_url(urls[0]):
        return urls
    first = Node(servers.context, None, servers.location.down(0))
    said = f"the first server URL, {urls[0][:200]}, is "
    if is_sandbox_url(urls[0]):
        hint = f"set the BASE_URL variable of the server to {real[:200]} for real data"
        first.report("server-mock", f"{said}a sandbox, and is used", hint)
        return urls
    message = f"{said}a mock or an example; {real[:200]} is used, but existing servers keep the first one"
    first.report("server-mock", message, "write the address of the API first")
    return (real, *(url for url in urls if url != real))


def report_missing_root(root: Node, assumed: str) -> None:
    """Report that the document has no root URL, and that the URL `assumed`, if any, is used instead."""
    message = "the document does not contain the base URL of the API"
    if assumed:
        message += f"; {assumed[:200]} is used, as in most operations"
    root.report("server-missing", message, _HINT)


def operation_server_override(owners: tuple[Node, ...], roots: tuple[str, ...]) -> str:
    """Return the server URL of the operation, else of the path, or "" for the root."""
    root = roots[0] if roots else ""
    for owner in owners:
        if owner.context.spec.shape == "2":
            schemes = owner.value.get("schemes")
            if root and isinstance(schemes, list) and schemes and urlsplit(root).scheme not in schemes:
                urls = (_absolute(url, at, root) for url, at in swagger2.server_urls(owner.context.root, schemes))
                return next((url for url in urls if url and url != root), "")
            continue
        found = [absolute for url, at in _listed(owner.at("servers")) if (absolute := _absolute(url, at, root))]
        if found:
            return "" if any(matches_root_url(one, root) for one in found) else found[0]
    return ""


def _listed(servers: Node) -> list[tuple[str, Node]]:
    if isinstance(servers.value, (dict, str)):
        servers.report("server-invalid", "`servers` has to be a list; read as a list of one", "write `- url: …`")
        servers = servers.with_value([servers.value])
    if not isinstance(servers.value, list | None):
        servers.report("server-invalid", "`servers` has to be a list; ignored")
    found = []
    for one in servers.elements():
        server = one.target()
        if server is None:
            continue
        if isinstance(server.value, str):
            one.report("server-invalid", "a server is a string; read as its `url`", "write `- url: …`")
            server = server.with_value({"url": server.value})
        if not isinstance(server.table.get("url"), str):
            one.report("server-invalid", "a server has to be an object with a `url`; ignored")
            continue
        server.check("Server", server.value)
        if (url := _filled(server)) is not None:
            found.append((url, one))
    return found


def _filled(server: Node) -> str | None:
    variables = server.at("variables")
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        variable = variables.at(match[1]).table
        default = variable.get("default")
        if default is None and isinstance(variable.get("enum"), list):
            default = next(iter(variable["enum"]), None)
        if default is None or isinstance(default, (dict, list)):
            missing.append(match[1])
            return ""
        return str(default)

    url = _VARIABLE.sub(value, server.value["url"].strip())
    if missing:
        message = f"the variable {missing[0][:80]!r} of the server has no default; the server is ignored"
        server.report("server-invalid", message, "add it to `variables` with a `default`")
        return None
    return url


def _absolute(url: str, at: Node, root: str) -> str:
    """Return an absolute http(s) URL without query, fragment and trailing slash, or report a problem and return ""."""
    try:
        joined = _joined(url, at, root)
        parts = urlsplit(joined)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        joined, usable = url, False
    if joined and usable and not _UNUSABLE.search(joined):
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    if joined:
        at.report("server-invalid", f"{url[:200]!r} is not an http or https URL; ignored", _HINT)
    return ""


def _joined(url: str, at: Node, root: str) -> str:
    """Return the absolute form of a URL, or report an unknown base of the URL and return ""."""
    source, shown = at.context.document.source, repr(url[:200])
    if urlsplit(url).scheme:
        if not _LOCAL_PORT.match(url):
            return url
        at.report("server-invalid", f"{shown} has no scheme; http is used", "write http://…")
        return f"http://{url}"
    if url.startswith("//"):
        return ("http:" if source.startswith("http:") else "https:") + url
    if _HOST.match(url):
        at.report("server-invalid", f"{shown} has no scheme; https is used", "write https://…")
        return f"https://{url}"
    if urlsplit(source).scheme in {"http", "https"}:
        return urljoin(source, url)
    if root:
        at.report("server-relative", f"{shown} is relative; resolved against {root}", "write an absolute URL")
        return urljoin(root, url)
    at.report("server-relative", f"{shown} is relative, and the document comes from a file", _HINT)
    return ""


@dataclass(frozen=True, slots=True)
class ResolvedServers:
    """Result of `resolve_servers`. `assumed` is the root if mcpfactory chose the most common server as the root."""

    root: tuple[str, ...]
    own: tuple[ServerAddress, ...]
    operations: tuple[ApiOperation, ...]
    assumed: str = ""


def resolve_servers(roots: tuple[str, ...], operations: Sequence[ApiOperation], *, stated: bool) -> ResolvedServers:
    """Return the root, the other servers by name, and the operations with server names instead of URLs.

    Each of the `operations` has the URL of its server, or "" for the root. If `stated` is False, the root is only the
    URL that the document came from. If `stated` is False and every operation names a server, the most common server
    replaces the root. Without a root, the most common server becomes the root if more than half of the operations name
    it.
    """
    same = _spellings({operation.server for operation in operations if operation.server})
    operations = [dataclasses.replace(one, server=same[one.server]) if one.server else one for one in operations]
    counts = Counter(operation.server for operation in operations)
    at_root = counts.pop("", 0)
    if not counts:
        return ResolvedServers(roots, (), tuple(operations))
    # if several servers are equally common, use the shortest URL
    common, times = max(sorted(counts.items(), key=lambda one: (len(one[0]), one[0])), key=lambda one: one[1])
    taken = not (stated and roots) and (not at_root or (not roots and 2 * times > len(operations)))
    root = (common,) if taken else roots
    base = root[0] if root else ""
    named = name_server_urls([url for url in counts if not matches_root_url(url, base)], base)
    names = {one.url: one.name for one in named}
    return ResolvedServers(
        root,
        named,
        tuple(dataclasses.replace(one, server=names.get(one.server, "")) if one.server else one for one in operations),
        assumed=common if taken and at_root else "",
    )


def _spellings(urls: Collection[str]) -> dict[str, str]:
    """Return the preferred spelling of each URL: https before http, and short spellings before long spellings."""
    found: dict[str, str] = {}
    for url in sorted(urls, key=lambda one: (not one.startswith("https:"), len(one), one)):
        found[url] = next((other for other in found.values() if matches_root_url(url, other)), url)
    return found
