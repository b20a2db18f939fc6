"""Everything an MCP server needs at run time; names are loaded when they are first used.

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

_WHERE: Final = {
    "Audio": "server.results",
    "Completion": "server.inputs",
    "Context": "server.context",
    "Depends": "server.dependencies",
    "Elicit": "server.inputs",
    "EmbeddedBlob": "server.results",
    "EmbeddedText": "server.results",
    "Image": "server.results",
    "McpError": "protocol.errors",
    "MemoryTaskStore": "storage.tasks",
    "Message": "server.results",
    "Middleware": "server.middleware.layers",
    "RemoteServer": "server.remote.server",
    "Request": "server.middleware.layers",
    "ResourceLink": "server.results",
    "Roots": "server.inputs",
    "Sample": "server.inputs",
    "Server": "server.server",
    "SqliteTaskStore": "storage.tasks",
    "Task": "storage.tasks",
    "TaskOptions": "server.tasks.manager",
    "TaskStore": "storage.tasks",
    "Text": "server.results",
    "ToolCall": "server.generated.manifest",
    "ToolError": "server.errors",
    "ToolRequest": "server.middleware.layers",
    "ToolResult": "server.results",
    "remote_servers": "server.remote.server",
    "safe_join": "server.errors",
}

__all__ = [  # noqa: PLE0604 - the list is the table above; __version__ is read from the installed package
    *_WHERE,
    "__version__",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module at first use (PEP 562), so that `import mcpfactory_runtime` costs nothing."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - costs 20 ms and is rarely asked for

        return version("mcpfactory-runtime")
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - only for the first use of a name

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
