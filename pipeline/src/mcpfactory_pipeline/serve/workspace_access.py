"""Access of the factory's MCP tools to a workspace, limited by caller, and outside the event loop."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Final, ParamSpec, TypeVar

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.base.ids import current_actor
from mcpfactory_pipeline.workspace.workspace import Workspace
from mcpfactory_runtime import Context, ToolError
from mcpfactory_runtime.urls import host_port_of, is_public, private_target_kind

Options = ParamSpec("Options")
Result = TypeVar("Result")

_NAME: Final = 60  # maximum characters of a client's name in the history
_POLL: Final = 0.2  # seconds between checks for cancellation


@dataclass(frozen=True, slots=True)
class WorkspaceAccess:
    """A workspace and its permitted API documents. Callers may use files of the workspace and public addresses.

    `documents` are other folders and hosts that a person permitted. Callers cannot find out whether another file or
    address exists. If `local` is False, callers use HTTP.
    """

    root: Path
    documents: tuple[str, ...] = ()
    local: bool = True
    permits_private: ClassVar[bool] = False  # private addresses need the permission of a person at a terminal

    def workspace(self) -> Workspace:
        """Return the workspace with its current configuration.

        Raises:
            ConfigError: the configuration is invalid.
            WorkspaceError: the workspace does not exist.
        """
        return Workspace.find(self.root)

    async def read(
        self,
        function: Callable[Concatenate[Workspace, Options], Result],
        *arguments: Options.args,
        **options: Options.kwargs,
    ) -> Result:
        """Run a function of the workspace in a thread, and return its result.

        Raises:
            ToolError: the function raised an error with a hint.
        """
        return await run_in_thread(lambda: function(self.workspace(), *arguments, **options))

    def document(self, name: str) -> str:
        """Return a permitted URL unchanged; resolve a file path against the workspace root.

        Raises:
            ConfigError: callers must not use this file or address. The error does not show whether it exists.
        """
        if re.match(r"(?i)https?://", name):
            if self._is_permitted_address(name):
                return name
            raise ConfigError(
                f"{name} is not at a public address",
                hint=f"ask the operator to permit the address: mcpfactory serve --documents {host_port_of(name) or 'HOST'}",
            )
        folders = (self.root, *(Path(one).expanduser() for one in self.documents if _is_folder(one)))
        with suppress(OSError, RuntimeError, ValueError):  # the path contains a circular link or an invalid name
            path = (self.root / name).resolve()
            if any(path.is_relative_to(folder.resolve()) for folder in folders):
                return str(path)
        raise ConfigError(
            f"{name} is not in the workspace",
            hint=(
                "give a URL or a file in the workspace, or ask the operator to permit another folder: mcpfactory serve "
                "--documents FOLDER"
            ),
        )

    def _is_permitted_address(self, url: str) -> bool:
        """Return True for a permitted host. An unknown host is permitted, because no request can reach it."""
        place = host_port_of(url)
        host, _, port = place.rpartition(":")
        if {place, host} & {one.lower() for one in self.documents}:
            return True
        if not place or private_target_kind(url):
            return False
        try:
            found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            return True
        return all(is_public(str(one[4][0])) for one in found)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Restrict fetches of documents to permitted addresses, even if a host's address changes."""
        from mcpfactory_codegen.read.document import restrict_to_public_hosts  # noqa: PLC0415 - heavy, and rarely needed

        with restrict_to_public_hosts([one for one in self.documents if not _is_folder(one)]):
            yield

    def template(self, name: str) -> str:
        """Return the name of a shipped template, or the path of a template folder (see `document`).

        Raises:
            ConfigError: the template comes from git or a package.
        """
        if name.startswith(("git+", "package:")):
            raise ConfigError(
                "a person must review templates from git and from packages before use",
                hint=f"ask a person to run: mcpfactory new NAME --template {name}",
            )
        return self.document(name) if re.search(r"[/\\.]", name) else name


def _is_folder(place: str) -> bool:
    return place.startswith(("/", ".", "~")) or Path(place).is_absolute()


def agent_name(ctx: Context) -> str:
    """Return `agent:` and the unverified name that the client states."""
    name = str(ctx.client_info.get("name") or "unknown")
    return f"agent:{re.sub(r'[^A-Za-z0-9 ._/@-]', '_', name)[:_NAME]}"


def client_person(ctx: Context) -> str:
    """Return the person at the client: the subject of the token, else the local user."""
    principal = ctx.principal
    return current_actor() if principal is None else principal.subject or principal.client


@contextmanager
def errors_as_tool_errors() -> Iterator[None]:
    """Convert an error with a `hint` into a `ToolError`. Other errors pass unchanged."""
    try:
        yield
    except Exception as error:
        hint = getattr(error, "hint", None)
        if hint is None:
            raise
        raise ToolError(f"{error}\nhint: {hint}" if hint else str(error)) from None


async def run_in_thread(function: Callable[..., Result], *arguments: Any, **options: Any) -> Result:
    """Run a slow function in a worker thread and return its result.

    Raises:
        ToolError: the function raised an error with a hint.
    """
    with errors_as_tool_errors():
        return await asyncio.to_thread(function, *arguments, **options)


async def run_in_stoppable_thread(function: Callable[[threading.Event], Result]) -> Result:
    """Run a slow function in a thread.

    If the task is canceled, set the event that the function received, and wait until the function ends.
    """
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(function, stop))
    with errors_as_tool_errors():
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            with suppress(Exception, asyncio.CancelledError):
                await work
            raise


async def run_in_own_loop(make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine in the event loop of a worker thread, because it would block this event loop."""

    async def watched(stop: threading.Event) -> Result:
        work = asyncio.ensure_future(make())
        while not work.done():
            await asyncio.wait((work,), timeout=_POLL)
            if stop.is_set():
                work.cancel()
        return work.result()

    return await run_in_stoppable_thread(lambda stop: asyncio.run(watched(stop)))
