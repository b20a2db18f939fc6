"""Optional server features: generated tools, hooks, tasks, skills and apps.

All features except apps are loaded at their first use.

Apps are pages that hosts show for tool results (`io.modelcontextprotocol/ui`). Messages between a page and the host do
not pass through the server.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from mcpfactory_runtime.schemas.client_limits import DEFAULT_DIALECT
from mcpfactory_runtime.server.registry import Resource, make_resource
from mcpfactory_runtime.server.results import EmbeddedText
from mcpfactory_runtime.types import Json

if TYPE_CHECKING:
    from mcpfactory_runtime.server.generated.catalog import Catalog
    from mcpfactory_runtime.server.generated.manifest import Hooks
    from mcpfactory_runtime.server.interfaces import ServerInterface
    from mcpfactory_runtime.server.registry import Tool
    from mcpfactory_runtime.server.skills import Skills
    from mcpfactory_runtime.server.tasks.manager import TaskManager, TaskOptions
    from mcpfactory_runtime.server.tasks.methods import TaskMethods
    from mcpfactory_runtime.storage.base import ProcessRegistry, SharedStore
    from mcpfactory_runtime.storage.tasks import TaskStore

    TasksOption = TaskOptions | TaskStore | str | PathLike[str] | None


class Extensions:
    """The optional features of one server.

    Attributes:
        catalog: the generated tools, or None.
        packages: import names of the mounted `_generated` packages.
    """

    def __init__(self, host: ServerInterface, tasks: TasksOption) -> None:
        self.catalog: Catalog | None = None
        self._dialect = os.environ.get("MCPFACTORY_DIALECT") or DEFAULT_DIALECT
        self.packages: list[str] = []
        self.task_manager: TaskManager | None = None
        self._host = host
        self._task_options = tasks
        self._shares_tasks = False
        self._task_methods: TaskMethods | None = None
        self._skills: Skills | None = None
        self._hooks: Hooks | None = None

    # -- generated tools -----------------------------------------------------------------------------------------

    def mount_manifest(self, folder: str | PathLike[str]) -> int:
        """Register the tools of a `_generated` package; see `Server.mount_manifest`."""
        from mcpfactory_runtime.server.generated.catalog import Catalog  # noqa: PLC0415 - only for generated servers
        from mcpfactory_runtime.server.generated.manifest import mount  # noqa: PLC0415 - only for generated servers

        path = Path(folder).resolve()
        parts = [path.name]
        for parent in path.parents:
            if not (parent / "__init__.py").exists():
                break
            parts.append(parent.name)
        package = ".".join(reversed(parts))
        title = str(self._host.info.get("title") or self._host.name)
        if self.catalog is None:
            self.catalog = Catalog(self._host.registry)
        count = mount(self.catalog, path, package, title=title, environ=os.environ, loaded=self._wrap)
        self.packages.append(package)
        return count

    @property
    def dialect(self) -> str:
        """Return the dialect of the list of tools."""
        return self._dialect if self.catalog is None else self.catalog.dialect

    def offer(self, mode: str | None = None, profile: str | None = None, dialect: str | None = None) -> tuple[str, str]:
        """Change the list of tools, and return the previous mode and profile; see `Server.offer`."""
        if self.catalog is not None:
            before = self.catalog.mode, self.catalog.profile
            self.catalog.select(mode, profile, dialect)
            return before
        if mode or profile:
            raise ValueError("this server has no generated tools to offer\nhint: call mount_manifest first")
        from mcpfactory_runtime.server.generated.catalog import check_dialect  # noqa: PLC0415 - few servers change it

        self._dialect = check_dialect(dialect or self._dialect)
        self._host.registry.version += 1
        return "full", "full"

    @property
    def hooks(self) -> Hooks:
        """Return the hooks of generated tools."""
        if self._hooks is None:
            from mcpfactory_runtime.server.generated.manifest import Hooks  # noqa: PLC0415 - only for servers that have some

            self._hooks = Hooks()
        return self._hooks

    def _wrap(self, tool: Tool) -> None:
        if self._hooks is not None:
            self._hooks.wrap(tool)

    def check_environment(self) -> None:
        """Check the tool selection in the environment variables. Write the catalog's notices to stderr."""
        if self.catalog is None:
            if self._dialect != DEFAULT_DIALECT:
                self.offer()  # refuses an unknown dialect
            return
        if self.catalog.environment_error:
            from mcpfactory_runtime.server.generated.catalog import CatalogError  # noqa: PLC0415 - only for generated servers

            raise CatalogError(self.catalog.environment_error)
        for notice in self.catalog.notices:
            sys.stderr.write(f"{notice}\n")

    # -- tasks and skills ----------------------------------------------------------------------------------------

    @property
    def tasks(self) -> TaskMethods:
        """Return the implementation of the task methods."""
        if self._task_methods is None:
            from mcpfactory_runtime.server.tasks.manager import TaskManager, read_task_options  # noqa: PLC0415 - most servers have no tasks
            from mcpfactory_runtime.server.tasks.methods import TaskMethods  # noqa: PLC0415 - most servers have no tasks

            self.task_manager = TaskManager(read_task_options(self._task_options))
            self._task_methods = TaskMethods(self._host, self.task_manager)
        return self._task_methods

    @property
    def skills(self) -> Skills:
        """Return the published skills."""
        if self._skills is None:
            from mcpfactory_runtime.server.skills import Skills  # noqa: PLC0415 - most servers have no skills

            self._skills = Skills(self._host)
        return self._skills

    def share(self, store: SharedStore, processes: ProcessRegistry) -> None:
        """Store tasks in a store that several processes share, unless the author or the environment chose a store."""
        from mcpfactory_runtime.server.tasks.manager import ENVIRONMENT  # noqa: PLC0415 - only with a shared store

        if (self._task_options is None and not os.environ.get(ENVIRONMENT)) or self._shares_tasks:
            from mcpfactory_runtime.storage.tasks import TaskStore  # noqa: PLC0415 - likewise

            self._shares_tasks = True
            self._task_options = TaskStore(store, processes)
            self.task_manager = self._task_methods = None  # both objects may remain from an earlier run of the server

    async def close(self) -> None:
        """Close the opened features."""
        if self.task_manager is not None:
            await self.task_manager.close()


MIME_TYPE: Final = "text/html;profile=mcp-app"
_CSP: Final = ("connectDomains", "resourceDomains", "frameDomains", "baseUriDomains")
_PERMISSIONS: Final = ("camera", "microphone", "geolocation", "clipboardWrite")
_VISIBLE: Final = ("model", "app")


class AppOptions(TypedDict, total=False):
    """Keyword arguments of `Server.app`."""

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
    """App page whose resource contents include metadata (ext-apps, UI Resource Format)."""

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
    """Return the resource of an app page (see `Server.app`)."""
    _check_uri(uri)
    if (html is None) == (path is None):
        raise TypeError(f"app {uri} needs exactly one of html= and path=\nhint: set path='page.html'")
    if path is not None and not Path(path).is_file():
        raise ValueError(f"app {uri}: no file {path}")
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


def link_tool_to_app(wire: Json, uri: str | None, visibility: Sequence[str]) -> None:
    """Add an app's URI and the permitted callers to a tool's object (ext-apps, Resource Discovery)."""
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
        raise ValueError(f"{uri!r} is not a valid app URI\nhint: use ui://name")


def _check_names(where: str, what: str, given: Mapping[str, Any] | Sequence[str], known: Sequence[str]) -> None:
    if isinstance(given, str):
        raise ValueError(f"{where}: {what} must be a list\nhint: write [{given!r}]")
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"{where}: {what} cannot have {', '.join(unknown)}\nhint: use only {', '.join(known)}")
