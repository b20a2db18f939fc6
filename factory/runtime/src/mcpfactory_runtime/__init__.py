"""Public names of the runtime for MCP servers, loaded at first use.

>>> from mcpfactory_runtime import Server
>>> server = Server("hello")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcpfactory_runtime.protocol.errors import McpError as McpError
    from mcpfactory_runtime.server.context import Context as Context
    from mcpfactory_runtime.server.dependencies import Depends as Depends
    from mcpfactory_runtime.server.errors import ToolError as ToolError
    from mcpfactory_runtime.server.errors import safe_join as safe_join
    from mcpfactory_runtime.server.generated.manifest import ToolCall as ToolCall
    from mcpfactory_runtime.server.inputs import Completion as Completion
    from mcpfactory_runtime.server.inputs import Elicit as Elicit
    from mcpfactory_runtime.server.inputs import Roots as Roots
    from mcpfactory_runtime.server.inputs import Sample as Sample
    from mcpfactory_runtime.server.middleware.layers import Middleware as Middleware
    from mcpfactory_runtime.server.middleware.layers import Request as Request
    from mcpfactory_runtime.server.middleware.layers import ToolRequest as ToolRequest
    from mcpfactory_runtime.server.remote.server import RemoteServer as RemoteServer
    from mcpfactory_runtime.server.remote.server import remote_servers as remote_servers
    from mcpfactory_runtime.server.results import Audio as Audio
    from mcpfactory_runtime.server.results import EmbeddedBlob as EmbeddedBlob
    from mcpfactory_runtime.server.results import EmbeddedText as EmbeddedText
    from mcpfactory_runtime.server.results import Image as Image
    from mcpfactory_runtime.server.results import Message as Message
    from mcpfactory_runtime.server.results import ResourceLink as ResourceLink
    from mcpfactory_runtime.server.results import Text as Text
    from mcpfactory_runtime.server.results import ToolResult as ToolResult
    from mcpfactory_runtime.server.server import Server as Server
    from mcpfactory_runtime.server.tasks.manager import TaskOptions as TaskOptions
    from mcpfactory_runtime.storage.tasks import MemoryTaskStore as MemoryTaskStore
    from mcpfactory_runtime.storage.tasks import SqliteTaskStore as SqliteTaskStore
    from mcpfactory_runtime.storage.tasks import Task as Task
    from mcpfactory_runtime.storage.tasks import TaskStore as TaskStore

_NAMES: Final = {
    "protocol.errors": "McpError",
    "server.context": "Context",
    "server.dependencies": "Depends",
    "server.errors": "ToolError safe_join",
    "server.generated.manifest": "ToolCall",
    "server.inputs": "Completion Elicit Roots Sample",
    "server.middleware.layers": "Middleware Request ToolRequest",
    "server.remote.server": "RemoteServer remote_servers",
    "server.results": "Audio EmbeddedBlob EmbeddedText Image Message ResourceLink Text ToolResult",
    "server.server": "Server",
    "server.tasks.manager": "TaskOptions",
    "storage.tasks": "MemoryTaskStore SqliteTaskStore Task TaskStore",
}
_WHERE: Final = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [  # noqa: PLE0604 - the names of the table above
    *_WHERE,
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use (PEP 562), so that `import mcpfactory_runtime` is fast."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - the import takes 20 ms, and is rarely needed

        return version("mcpfactory-runtime")
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - needed only for the first use of a name

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
