"""Apps: pages that hosts show for the results of tools (`io.modelcontextprotocol/ui`).

The server's part is metadata and resources; what page and host say to each other does not pass through here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypedDict

from mcpfactory_runtime.server.registry import Resource, make_resource
from mcpfactory_runtime.server.results import EmbeddedText
from mcpfactory_runtime.types import Json

MIME_TYPE: Final = "text/html;profile=mcp-app"
_CSP: Final = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_PERMISSIONS: Final = ("camera", "microphone", "geolocation", "clipboardWrite")
_VISIBLE: Final = ("model", "app")


class AppOptions(TypedDict, total=False):
    """Keywords of `Server.app`."""

    html: str | None
    path: str | PathLike[str] | None
    name: str | None
    title: str | None
    description: str | None
    csp: Mapping[str, Sequence[str]] | None
    permissions: Sequence[str]
    domain: str | None
    prefers_border: bool | None


class _Page(EmbeddedText):
    """A page whose metadata hosts read with its contents (ext-apps, UI Resource Format)."""

    def contents(self) -> Json:
        return super().contents() if self.meta is None else {**super().contents(), "_meta": dict(self.meta)}


def make_app(
    uri: str,
    *,
    html: str | None = None,
    path: str | PathLike[str] | None = None,
    csp: Mapping[str, Sequence[str]] | None = None,
    permissions: Sequence[str] = (),
    domain: str | None = None,
    prefers_border: bool | None = None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> Resource:
    """Return the resource for a page; see `Server.app`."""
    _check_uri(uri)
    if (html is None) == (path is None):
        raise TypeError(f"app {uri} takes either html= or path=\nhint: path='page.html'")
    if path is not None and not Path(path).is_file():
        raise ValueError(f"app {uri}: there is no file {path}")
    ui: Json = {}
    if csp is not None:
        _check_names(uri, "csp", csp, _CSP)
        ui["csp"] = {key: list(origins) for key, origins in csp.items()}
    if permissions:
        _check_names(uri, "permissions", permissions, _PERMISSIONS)
        ui["permissions"] = {permission: {} for permission in permissions}
    if domain is not None:
        ui["domain"] = domain
    if prefers_border is not None:
        ui["prefersBorder"] = prefers_border
    meta = {"ui": ui} if ui else None

    def read() -> EmbeddedText:
        return _Page(uri, _content(html, path), MIME_TYPE, meta=meta)

    return make_resource(
        uri,
        read,
        name=name or uri.removeprefix("ui://"),
        title=title,
        description=description,
        mime_type=MIME_TYPE,
        meta=meta,
    )


def link(wire: Json, uri: str | None, visibility: Sequence[str]) -> None:
    """Set in a tool's object the page for its results and its permitted callers (ext-apps, Resource Discovery).

    Raises:
        ValueError: the URI does not begin with `ui://`; an unknown kind of visibility.
    """
    ui: Json = {}
    if uri is not None:
        _check_uri(uri)
        ui["resourceUri"] = uri
    if visibility:
        _check_names(str(wire["name"]), "visibility", visibility, _VISIBLE)
        ui["visibility"] = list(visibility)
    meta = wire.setdefault("_meta", {})
    wire["_meta"] = {**meta, "ui": {**meta.get("ui", {}), **ui}}


def _content(html: str | None, path: str | PathLike[str] | None) -> str:
    if html is not None:
        return html
    assert path is not None, "one of the two is there"
    return Path(path).read_text("utf-8")


def _check_uri(uri: str) -> None:
    if not uri.startswith("ui://") or "{" in uri or len(uri) == len("ui://"):
        raise ValueError(f"{uri!r} is not the URI of an app\nhint: ui://name")


def _check_names(where: str, what: str, given: Mapping[str, Any] | Sequence[str], known: Sequence[str]) -> None:
    if isinstance(given, str):
        raise ValueError(f"{where}: {what} must be a list\nhint: [{given!r}]")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"{where}: {what} cannot have {', '.join(unknown)}\nhint: {', '.join(known)}")
