"""The forms of FastMCP (2 to 4) and of the official Python SDK that have an equal in the runtime: tables. Whatever is not here is left alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["CALLS", "CONTEXT", "DROPPED", "IMPORTS", "LIBRARIES", "METHODS", "RENAMED_ATTRIBUTES", "CallForm"]

LIBRARIES: Final = ("mcp.server", "mcp.types", "mcp_types", "fastmcp")

IMPORTS: Final[Mapping[str, str]] = {
    "FastMCP": "Server", "MCPServer": "Server", "Context": "Context", "Image": "Image", "Audio": "Audio", "ToolError": "ToolError",
    "Message": "Message", "UserMessage": "Message", "AssistantMessage": "Message", "Depends": "Depends",
    "ToolAnnotations": "dict", "Icon": "dict",
}  # fmt: skip
"""Names that are imported, and their names here; `dict`: a dict takes the place."""

DROPPED: Final = frozenset({"tags"})
"""Keywords that say nothing to callers."""


@dataclass(frozen=True, slots=True)
class CallForm:
    """A call that has an equal here.

    Attributes:
        becomes: its name here; "" where it keeps its own.
        positional: how many arguments may stand without their names.
        first: the keyword that is the first argument here.
        default: what stands first where nothing is given.
        kept: keywords that mean the same.
        renamed: keywords that have another name here.
        dropped: keywords that are left out, which callers do not notice.
        added: keywords that stand for what is the default there, where they are not given.
        literal: for `run`: transport → method, and what stands first in it.
    """

    becomes: str = ""
    positional: int = 1
    first: str = ""
    default: str = ""
    kept: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    added: Mapping[str, str] = field(default_factory=dict)
    literal: Mapping[str, tuple[str, tuple[str, ...]]] | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SERVER: Final = CallForm(
    first="name",
    default='"mcp-server"',
    kept=_words("version title description instructions website_url icons lifespan"),
    dropped=_words(
        "debug log_level dependencies warn_on_duplicate_tools warn_on_duplicate_resources warn_on_duplicate_prompts on_duplicate"
        " on_duplicate_tools on_duplicate_resources on_duplicate_prompts include_fastmcp_meta"
    ),
)
_HINTS: Final = {
    "read_only_hint": "readOnlyHint", "destructive_hint": "destructiveHint", "idempotent_hint": "idempotentHint",
    "open_world_hint": "openWorldHint",
}  # fmt: skip
_MEDIA: Final = CallForm(first="data", kept=_words("path annotations meta"), renamed={"format": "mime_type"})

CALLS: Final[Mapping[str, CallForm]] = {
    "FastMCP": _SERVER,
    "MCPServer": _SERVER,
    "Image": _MEDIA,
    "Audio": _MEDIA,
    "ToolError": CallForm(),
    "Message": CallForm(positional=2, first="content", kept=_words("role")),
    "UserMessage": CallForm(first="content"),
    "AssistantMessage": CallForm(first="content", added={"role": '"assistant"'}),
    "Depends": CallForm(),
    "ToolAnnotations": CallForm("dict", 0, kept=_words("title") | frozenset(_HINTS.values()), renamed=_HINTS),
    "Icon": CallForm("dict", 0, kept=_words("src sizes mimeType theme"), renamed={"mime_type": "mimeType"}),
}
"""Calls of imported names."""

METHODS: Final[Mapping[str, CallForm]] = {
    "tool": CallForm(
        kept=_words("name title description annotations icons meta output_schema"),
        renamed={"structured_output": "structured"},
    ),
    "resource": CallForm(
        first="uri",
        kept=_words("name title description mime_type annotations icons meta"),
        added={"mime_type": '"text/plain"'},
    ),
    "prompt": CallForm(kept=_words("name title description icons meta")),
    "mount": CallForm(first="server", kept=_words("prefix"), renamed={"namespace": "prefix"}, positional=2),
    "run": CallForm(
        literal={"stdio": ("run_stdio", ()), "http": ("run_http", ()), "streamable-http": ("run_http", ())},
        kept=_words("transport"),
    ),
    "run_async": CallForm(
        literal={
            "stdio": ("run_async", ('"stdio"',)),
            "http": ("run_async", ('"http"',)),
            "streamable-http": ("run_async", ('"http"',)),
        }
    ),
    "streamable_http_app": CallForm("http_app", 0),
    "http_app": CallForm("http_app", 0),
}
"""Methods of a server, as decorators too."""

CONTEXT: Final = _words("info debug warning error report_progress request_id session_id log")
"""Members of the context that are the same."""

RENAMED_ATTRIBUTES: Final[Mapping[str, str]] = {
    "fastmcp": "server",
    "mcp_server": "server",
    "protocol_version": "revision",
}
"""Members of the context that have another name here."""
