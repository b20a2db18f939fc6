"""Servers: absolute base URLs with their variables filled in (OpenAPI 3.1 §4.8.5, §4.8.6), and the root.

Operations reference servers by URL in a document, and by name after `settle_servers`. Any spelling of the root's URL
is the root; the others get separate names (`naming.variables`).
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit, urlunsplit

from mcpfactory_codegen.ir import ApiOperation, ApiServer
from mcpfactory_codegen.naming.variables import is_loopback, is_mock, is_same_server, is_sandbox, name_servers
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.reading import Reading, check_object
from mcpfactory_codegen.openapi.references import LocatedNode, Location

_HINT: Final = "set the BASE_URL variable of the server where it runs, or write an absolute URL into `servers`"
_HOST: Final = re.compile(r"[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:/|\Z)")
_LOCAL_PORT: Final = re.compile(r"[\w.-]+:\d+(?:/|\Z)")  # `localhost:8080/api`, which urlsplit takes for a scheme
_UNUSABLE: Final = re.compile(r"[\s\x00-\x1f<>\"{}|\\^`]")
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")


def root_servers(reading: Reading) -> tuple[str, ...]:
    """Return the document's servers, none where it names no usable one. None at all means the address that the document came from."""
    if reading.spec.shape == "2":
        urls = swagger2.server_urls(reading)
    else:
        urls = _listed(reading, reading.document.data.get("servers"), Location("", "/servers"))
        if not reading.document.data.get("servers"):
            urls = [("/", Location("", "/servers"))]
    found = [url for url in (_absolute(reading, url, location, "") for url, location in urls) if url]
    return _real_first(reading, tuple(dict.fromkeys(found)))


def _real_first(reading: Reading, urls: tuple[str, ...]) -> tuple[str, ...]:
    """Return the URLs with the first real one before a leading mock or example.

    A leading sandbox stays first, and is reported.
    """
    real = next((url for url in urls if not is_mock(url) and not is_sandbox(url)), "")
    # what somebody runs at home is theirs: its key goes nowhere else
    if not real or urls[0] == real or is_loopback(urls[0]):
        return urls
    said = f"the first address, {urls[0][:200]}, is "
    if is_sandbox(urls[0]):
        message, hint = (
            f"{said}a sandbox, and is used",
            f"set the BASE_URL variable of the server to {real[:200]} for real data",
        )
        reading.report("server-mock", Location("", "/servers/0"), message, hint)
        return urls
    message = f"{said}a mock or an example; {real[:200]} is used, unless the server was made with the other"
    reading.report("server-mock", Location("", "/servers/0"), message, "write the address of the API first")
    return (real, *(url for url in urls if url != real))


def report_rootless(reading: Reading, assumed: str) -> None:
    """Report that the document does not say where its root is. `assumed` is taken for it, "" for nothing."""
    message = "the document does not say at which address the API is"
    if assumed:
        message += f"; taken to be {assumed[:200]}, as most operations say"
    reading.report("server-none", Location("", ""), message, _HINT)


def own_server(reading: Reading, owners: tuple[tuple[dict[str, Any], Location], ...], roots: tuple[str, ...]) -> str:
    """Return the URL of an operation's own server: the operation's, else the path's; "" when neither has one, or the root is among its servers."""
    root = roots[0] if roots else ""
    for node, location in owners:
        if reading.spec.shape == "2":
            schemes = node.get("schemes")
            if root and isinstance(schemes, list) and schemes and urlsplit(root).scheme not in schemes:
                urls = swagger2.server_urls(reading, schemes)
                return next(
                    (url for url in (_absolute(reading, url, at, root) for url, at in urls) if url and url != root), ""
                )
            continue
        listed = _listed(reading, node.get("servers"), location.down("servers"))
        found = [absolute for url, at in listed if (absolute := _absolute(reading, url, at, root))]
        if found:
            return "" if any(is_same_server(one, root) for one in found) else found[0]
    return ""


def _listed(reading: Reading, node: Any, location: Location) -> list[tuple[str, Location]]:
    """Return the URLs of a `servers` list with their variables filled in."""
    if node is None:
        return []
    if isinstance(node, (dict, str)):
        reading.report(
            "server-invalid", location, "`servers` has to be a list; read as a list of one", "write `- url: …`"
        )
        node = [node]
    if not isinstance(node, list):
        reading.report("server-invalid", location, "`servers` has to be a list; ignored")
        return []
    found = []
    for index, one in enumerate(node):
        at = location.down(index)
        target = reading.follow(one, at)
        if target is None:
            continue
        if isinstance(target.node, str):
            reading.report("server-invalid", at, "a server is a text; read as its `url`", "write `- url: …`")
            target = LocatedNode({"url": target.node}, target.location)
        if not isinstance(target.node, dict) or not isinstance(target.node.get("url"), str):
            reading.report("server-invalid", at, "a server has to be an object with a `url`; ignored")
            continue
        check_object(reading, "Server", target.node, target.location)
        if (url := _filled(reading, target.node, target.location)) is not None:
            found.append((url, at))
    return found


def _filled(reading: Reading, node: dict[str, Any], location: Location) -> str | None:
    variables = node.get("variables")
    variables = variables if isinstance(variables, dict) else {}
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        variable = variables.get(match[1])
        default = variable.get("default") if isinstance(variable, dict) else None
        if default is None and isinstance(variable, dict) and isinstance(variable.get("enum"), list):
            default = next(iter(variable["enum"]), None)
        if default is None or isinstance(default, (dict, list)):
            missing.append(match[1])
            return ""
        return str(default)

    url = _VARIABLE.sub(value, node["url"].strip())
    if missing:
        message = f"the variable {missing[0][:80]!r} of the server has no default; the server is ignored"
        reading.report("server-invalid", location, message, "add it to `variables` with a `default`")
        return None
    return url


def _absolute(reading: Reading, url: str, location: Location, root: str) -> str:
    """Return an absolute http(s) URL without query, fragment and trailing slash, or "" (and a problem)."""
    try:
        joined = _joined(reading, url, location, root)
        parts = urlsplit(joined)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        joined, usable = url, False
    if joined and usable and not _UNUSABLE.search(joined):
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    if joined:
        reading.report("server-invalid", location, f"{url[:200]!r} is no http or https URL; ignored", _HINT)
    return ""


def _joined(reading: Reading, url: str, location: Location, root: str) -> str:
    """Return the absolute form of a URL; "" (and a problem) if the missing parts are unknown."""
    source = reading.document.source
    if urlsplit(url).scheme:
        if not _LOCAL_PORT.match(url):
            return url
        reading.report("server-invalid", location, f"{url[:200]!r} has no scheme; http is used", "write http://…")
        return f"http://{url}"
    if url.startswith("//"):
        return ("http:" if source.startswith("http:") else "https:") + url
    if _HOST.match(url):
        reading.report("server-invalid", location, f"{url[:200]!r} has no scheme; https is used", "write https://…")
        return f"https://{url}"
    if urlsplit(source).scheme in {"http", "https"}:
        return urljoin(source, url)
    if root:
        reading.report(
            "server-relative", location, f"{url[:200]!r} is relative; read from {root}", "write an absolute URL"
        )
        return urljoin(root, url)
    reading.report("server-relative", location, f"{url[:200]!r} is relative, and the document comes from a file", _HINT)
    return ""


# --- the root, and the others ---


@dataclass(frozen=True, slots=True)
class SettledServers:
    """Result of `settle_servers`.

    `assumed` is the root if only some operations name it and the others name no server; "" otherwise.
    """

    root: tuple[str, ...]
    own: tuple[ApiServer, ...]
    operations: tuple[ApiOperation, ...]
    assumed: str = ""


def settle_servers(roots: tuple[str, ...], operations: Sequence[ApiOperation], *, stated: bool) -> SettledServers:
    """Return the root, the other servers by name, and the operations with names in place of URLs.

    A root that the document does not state is replaced by the most common server if every operation names a server.
    If roots are missing entirely, more than half of the operations must name that server.

    Args:
        roots: the document's, best first.
        operations: each with the URL of its server, "" for the root.
        stated: the document itself names its root; otherwise the root is the URL that the document came from.
    """
    same = _spellings({operation.server for operation in operations if operation.server})
    operations = [dataclasses.replace(one, server=same[one.server]) if one.server else one for one in operations]
    counts = Counter(operation.server for operation in operations)
    at_root = counts.pop("", 0)
    if not counts:
        return SettledServers(roots, (), tuple(operations))
    # of equals, the shortest
    common, times = max(sorted(counts.items(), key=lambda one: (len(one[0]), one[0])), key=lambda one: one[1])
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
    """Return the preferred spelling of each URL: the same server has several spellings, and https wins over http."""
    found: dict[str, str] = {}
    for url in sorted(urls, key=lambda one: (not one.startswith("https:"), len(one), one)):
        found[url] = next((other for other in found.values() if is_same_server(url, other)), url)
    return found
