"""Optional server features: generated tools, hooks, tasks and skills. Each is loaded at its first use."""

from __future__ import annotations

import os
import sys
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcpfactory_runtime.server.extensions.skills import Skills
    from mcpfactory_runtime.server.generated.catalogue import Catalogue
    from mcpfactory_runtime.server.generated.manifest import Hooks
    from mcpfactory_runtime.server.host import Host
    from mcpfactory_runtime.server.registry import Tool
    from mcpfactory_runtime.server.tasks.manager import TaskManager, TaskOptions
    from mcpfactory_runtime.server.tasks.methods import TaskMethods
    from mcpfactory_runtime.server.tasks.store import TaskStore
    from mcpfactory_runtime.store.base import SharedStore
    from mcpfactory_runtime.store.processes import Processes

    TasksOption = TaskOptions | TaskStore | str | PathLike[str] | None


class Extensions:
    """The optional parts of one server.

    Args:
        host: the server.
        tasks: where tasks are kept, as for `Server`.

    Attributes:
        catalogue: the generated tools and how they are listed; None without any.
        packages: import names of the mounted `_generated` packages.
    """

    def __init__(self, host: Host, tasks: TasksOption) -> None:
        self.catalogue: Catalogue | None = None
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
        from mcpfactory_runtime.server.generated.catalogue import Catalogue  # noqa: PLC0415 - only for generated servers
        from mcpfactory_runtime.server.generated.manifest import mount  # noqa: PLC0415 - only for generated servers

        path = Path(folder).resolve()
        parts = [path.name]
        for parent in path.parents:
            if not (parent / "__init__.py").exists():
                break
            parts.append(parent.name)
        package = ".".join(reversed(parts))
        title = str(self._host.info.get("title") or self._host.name)
        if self.catalogue is None:
            self.catalogue = Catalogue(self._host.registry)
        count = mount(self.catalogue, path, package, title=title, environ=os.environ, loaded=self._wrap)
        self.packages.append(package)
        return count

    @property
    def hooks(self) -> Hooks:
        """The functions before and after generated tools."""
        if self._hooks is None:
            from mcpfactory_runtime.server.generated.manifest import Hooks  # noqa: PLC0415 - only for servers that have some

            self._hooks = Hooks()
        return self._hooks

    def _wrap(self, tool: Tool) -> None:
        if self._hooks is not None:
            self._hooks.wrap(tool)

    def check_environment(self) -> None:
        """Refuse a choice of generated tools that the environment asks for and that does not exist; write the notices to stderr.

        Raises:
            CatalogueError: there is no such mode, profile or dialect.
        """
        if self.catalogue is None:
            return
        if self.catalogue.environment_error:
            from mcpfactory_runtime.server.generated.catalogue import CatalogueError  # noqa: PLC0415 - only for generated servers

            raise CatalogueError(self.catalogue.environment_error)
        for notice in self.catalogue.notices:
            sys.stderr.write(f"{notice}\n")

    # -- tasks and skills ----------------------------------------------------------------------------------------

    @property
    def tasks(self) -> TaskMethods:
        """The methods of tasks."""
        if self._task_methods is None:
            from mcpfactory_runtime.server.tasks.manager import TaskManager, read_options  # noqa: PLC0415 - most servers have no tasks
            from mcpfactory_runtime.server.tasks.methods import TaskMethods  # noqa: PLC0415 - most servers have no tasks

            self.task_manager = TaskManager(read_options(self._task_options))
            self._task_methods = TaskMethods(self._host, self.task_manager)
        return self._task_methods

    @property
    def skills(self) -> Skills:
        """The published skills and their methods."""
        if self._skills is None:
            from mcpfactory_runtime.server.extensions.skills import Skills  # noqa: PLC0415 - most servers have no skills

            self._skills = Skills(self._host)
        return self._skills

    def share(self, store: SharedStore, processes: Processes) -> None:
        """Keep tasks in a store that other processes share, unless the server's author or the environment said where."""
        from mcpfactory_runtime.server.tasks.manager import ENVIRONMENT  # noqa: PLC0415 - for those who share only

        if (self._task_options is None and not os.environ.get(ENVIRONMENT)) or self._shares_tasks:
            from mcpfactory_runtime.server.tasks.store import TaskStore  # noqa: PLC0415 - likewise

            self._shares_tasks = True
            self._task_options = TaskStore(store, processes)
            self.task_manager = self._task_methods = None  # of an earlier life of the server, if any

    async def close(self) -> None:
        """Close the opened features."""
        if self.task_manager is not None:
            await self.task_manager.close()
