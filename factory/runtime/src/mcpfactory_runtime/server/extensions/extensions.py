"""The part of `Server` that not all servers use: generated tools, rates, tasks, skills, apps; loaded at their first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from mcpfactory_runtime.server.rates import VARIABLE, Rates

if TYPE_CHECKING:
    from mcpfactory_runtime.server.generated.catalogue import Generated
    from mcpfactory_runtime.server.generated.hooks import Hook, Hooks
    from mcpfactory_runtime.server.registry import Registry, Resource
    from mcpfactory_runtime.server.server import Server
    from mcpfactory_runtime.server.tasks.manager import TaskManager
    from mcpfactory_runtime.server.tasks.methods import TaskMethods
    from mcpfactory_runtime.server.tasks.options import TaskOptions
    from mcpfactory_runtime.server.tasks.store import TaskStore

    RatesOption = Rates | Mapping[str, str | None] | None
    TasksOption = TaskOptions | TaskStore | str | PathLike[str] | None

__all__ = ["Extensions"]


class Extensions:
    """What `Server` inherits."""

    registry: Registry
    _given_rates: RatesOption = None
    _rates: Rates | None = None
    _task_options: TasksOption = None
    _task_manager: TaskManager | None = None
    _task_methods: TaskMethods | None = None

    if TYPE_CHECKING:
        info: dict[str, object]

        def add_resource(self, resource: Resource) -> None:
            """See `Server`."""

        def notify_changed(self, what: Literal["tools", "resources", "prompts"]) -> None:
            """See `Server`."""

    def _server(self) -> Server:
        return cast("Server", self)  # the one class that inherits from this

    # -- rates ---------------------------------------------------------------------------------------------------

    @property
    def rates(self) -> Rates:
        """How often one client may call and be told; MCPFACTORY_RATES goes before what the author said.

        Raises:
            ValueError: the variable cannot be read.
        """
        if self._rates is None:
            given = self._given_rates
            rates = given if isinstance(given, Rates) else Rates(given)
            rates.replace(os.environ.get(VARIABLE, ""))
            self._rates = rates
        return self._rates

    # -- generated tools -----------------------------------------------------------------------------------------

    def mount_manifest(self, folder: str | Path) -> int:
        """Offer the generated tools of a `_generated` package; returns how many there are.

        Which of them are listed, and whether by way of search, is what the manifest says, MCPFACTORY_MODE,
        MCPFACTORY_PROFILE and MCPFACTORY_DIALECT, and `offer`.

        Raises:
            ManifestError: the manifest is missing or damaged.
            ValueError: a tool's name is taken.
        """
        from mcpfactory_runtime.server.generated.manifest import mount  # noqa: PLC0415 - only for generated servers

        path = Path(folder).resolve()
        parts = [path.name]
        for parent in path.parents:
            if not (parent / "__init__.py").exists():
                break
            parts.append(parent.name)
        title = str(self.info.get("title") or self.info["name"])
        return mount(self.registry, path, ".".join(reversed(parts)), title, os.environ)

    def offer(self, mode: str | None = None, profile: str | None = None, dialect: str | None = None) -> tuple[str, str]:
        """Offer the generated tools otherwise; connected clients are told.

        Args:
            mode: `full` lists each tool, `search` three that find, describe and call them; None leaves it as it is.
            profile: `full`, `read-only`, or one that `mcpfactory.toml` defines; None leaves it as it is.
            dialect: `standard`, or `plain` or `flat` for clients with limits; None leaves it as it is.

        Returns:
            Mode and profile as they were.

        Raises:
            CatalogueError: there is no such mode, profile or dialect. A ValueError.
            ValueError: there are no generated tools.
        """
        if self.registry.catalogue is None:
            raise ValueError("this server has no generated tools to offer\nhint: mount_manifest comes first")
        catalogue = self.registry.catalogue
        before = catalogue.mode, catalogue.profile
        catalogue.offer(mode, profile, dialect)
        self.notify_changed("tools")
        return before

    def before(self, *tools: str) -> Callable[[Hook], Hook]:
        """Decorate a function `(ToolCall) -> None` that runs before a generated tool; without names, before each.

        Raises:
            ValueError: there is no generated tool of that name.
        """
        return lambda hook: self._hooks().add_before(tools, hook, self._generated())

    def after(self, *tools: str) -> Callable[[Hook], Hook]:
        """Decorate a function `(ToolCall, ToolResult) -> ToolResult | None` that runs after a generated tool.

        None keeps the result as it is.

        Raises:
            ValueError: there is no generated tool of that name.
        """
        return lambda hook: self._hooks().add_after(tools, hook, self._generated())

    def _hooks(self) -> Hooks:
        from mcpfactory_runtime.server.generated.hooks import Hooks  # noqa: PLC0415 - only for servers that have some

        self.registry.hooks = self.registry.hooks or Hooks()
        return self.registry.hooks

    def _generated(self) -> Mapping[str, Generated]:
        return {} if self.registry.catalogue is None else self.registry.catalogue.rows

    def refuse_unknown_offer(self) -> None:
        """See `Server.running`."""
        if self.registry.catalogue is not None and self.registry.catalogue.complaint:
            from mcpfactory_runtime.server.generated.catalogue import CatalogueError  # noqa: PLC0415 - only for generated servers

            raise CatalogueError(self.registry.catalogue.complaint)

    # -- tasks ---------------------------------------------------------------------------------------------------

    @property
    def tasks(self) -> TaskMethods:
        """What answers for tasks."""
        if self._task_methods is None:
            from mcpfactory_runtime.server.tasks.manager import TaskManager  # noqa: PLC0415 - most servers have no tasks
            from mcpfactory_runtime.server.tasks.methods import TaskMethods  # noqa: PLC0415 - most servers have no tasks
            from mcpfactory_runtime.server.tasks.options import read_options  # noqa: PLC0415 - most servers have no tasks

            self._task_manager = TaskManager(read_options(self._task_options))
            self._task_methods = TaskMethods(self._server(), self._task_manager)
        return self._task_methods

    async def _close_tasks(self) -> None:
        if self._task_manager is not None:
            await self._task_manager.close()

    # -- skills --------------------------------------------------------------------------------------------------

    def add_skill(self, folder: str | PathLike[str], *, prefix: str = "") -> str:
        """Publish a skill: a folder with a SKILL.md and whatever belongs to it.

        Args:
            folder: named like the skill.
            prefix: what stands before the name in the skill's URI, `acme/billing` for `skill://acme/billing/refunds`.

        Returns:
            The URI of its SKILL.md.

        Raises:
            SkillError: the folder is no skill that can be published.
            ValueError: there is one of the same URI.
        """
        from mcpfactory_runtime.server.extensions.skills import publish  # noqa: PLC0415 - most servers have no skills

        return publish(self._server(), folder, prefix)

    def add_skills(self, folder: str | PathLike[str], *, prefix: str = "") -> list[str]:
        """`add_skill` for every folder in `folder` that has a SKILL.md; the URIs in the order of names.

        Raises:
            SkillError: there is none, or one of them cannot be published.
        """
        from mcpfactory_runtime.server.extensions.skills import publish_all  # noqa: PLC0415 - most servers have no skills

        return publish_all(self._server(), folder, prefix)

    # -- apps ----------------------------------------------------------------------------------------------------

    def app(
        self,
        uri: str,
        *,
        html: str | None = None,
        path: str | PathLike[str] | None = None,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        csp: Mapping[str, Sequence[str]] | None = None,
        permissions: Sequence[str] = (),
        domain: str | None = None,
        prefers_border: bool | None = None,
    ) -> None:
        """Publish a page that hosts show for results of tools with `app=uri`.

        Args:
            uri: `ui://…`.
            html: the page, complete and self-contained.
            path: a file with the page instead; read at every request.
            name: the resource's name; the part of the URI after `ui://` by default.
            title: for people.
            description: likewise.
            csp: origins that the page may use: connectDomains, resourceDomains, frameDomains, baseUriDomains.
            permissions: camera, microphone, geolocation, clipboardWrite.
            domain: origin that the host should give the page.
            prefers_border: whether the host should draw a border.

        Raises:
            TypeError: neither or both of html and path.
            ValueError: the URI is taken or is none of `ui://`; an unknown member of csp or permissions.
        """
        from mcpfactory_runtime.server.extensions.apps import make_app  # noqa: PLC0415 - most servers have no apps

        resource = make_app(
            uri,
            html=html,
            path=path,
            name=name,
            title=title,
            description=description,
            csp=csp,
            permissions=permissions,
            domain=domain,
            prefers_border=prefers_border,
        )
        self.registry.has_apps = True
        self.add_resource(resource)
