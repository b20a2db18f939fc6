"""Results and notifications as the peer's revision knows them.

Handlers build the newest form; here fields and content types that the peer's revision does not have are taken away,
by the tables of `records` and the nesting below. What is not in the tables passes unchanged. Inputs are never changed.
"""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.revisions.model import Revision
from mcpfactory_runtime.revisions.records import RELEASED
from mcpfactory_runtime.types import Json

RESULT_TYPES: Final[dict[str, str]] = {row.name: row.result for row in METHODS.values() if row.result}
"""Method → wire type of its complete result."""

# (type, field) → type of the value or, where the value is a list, of its elements
_NESTED: Final[dict[str, dict[str, str]]] = {
    "CallToolResult": {"content": "ContentBlock"},
    "PromptMessage": {"content": "ContentBlock"},
    "SamplingMessage": {"content": "ContentBlock"},
    "CreateMessageRequestParams": {"messages": "SamplingMessage", "tools": "Tool"},
    "DiscoverResult": {"capabilities": "ServerCapabilities"},
    "EmbeddedResource": {"resource": "ResourceContents", "annotations": "Annotations"},
    "GetPromptResult": {"messages": "PromptMessage"},
    "Implementation": {"icons": "Icon"},
    "InitializeResult": {"capabilities": "ServerCapabilities", "serverInfo": "Implementation"},
    "ListPromptsResult": {"prompts": "Prompt"},
    "ListResourceTemplatesResult": {"resourceTemplates": "ResourceTemplate"},
    "ListResourcesResult": {"resources": "Resource"},
    "ListToolsResult": {"tools": "Tool"},
    "Prompt": {"arguments": "PromptArgument", "icons": "Icon"},
    "ReadResourceResult": {"contents": "ResourceContents"},
    "Resource": {"annotations": "Annotations", "icons": "Icon"},
    "ResourceLink": {"annotations": "Annotations", "icons": "Icon"},
    "ResourceTemplate": {"annotations": "Annotations", "icons": "Icon"},
    "Tool": {"annotations": "ToolAnnotations", "icons": "Icon", "execution": "ToolExecution"},
    "AudioContent": {"annotations": "Annotations"},
    "ImageContent": {"annotations": "Annotations"},
    "TextContent": {"annotations": "Annotations"},
}

_CONTENT_TYPES: Final[dict[str, str]] = {
    "text": "TextContent",
    "image": "ImageContent",
    "audio": "AudioContent",
    "resource": "EmbeddedResource",
    "resource_link": "ResourceLink",
}

# Revisions whose content blocks are those of the newest one: nothing to do for a tool's result.
_NEWEST: Final = RELEASED[-1]
_KNOW_ALL_CONTENT: Final = frozenset(
    revision
    for revision in RELEASED
    if revision.content == _NEWEST.content
    and all(revision.fields.get(kind) == _NEWEST.fields[kind] for kind in _CONTENT_TYPES.values())
)


def project(value: Any, wire_type: str, revision: Revision) -> Any:
    """`value` (an object of `wire_type`, or a list of such) without what `revision` does not know."""
    if isinstance(value, list):
        return [project(item, wire_type, revision) for item in value]
    if not isinstance(value, dict):
        return value
    if wire_type == "ContentBlock":
        return project_content(value, revision)
    if wire_type == "ResourceContents":
        wire_type = "BlobResourceContents" if "blob" in value else "TextResourceContents"
    known = revision.fields.get(wire_type)
    if known is None:
        return value
    nested = _NESTED.get(wire_type, {})
    result = {}
    for key, item in value.items():
        if key in known:
            inner = nested.get(key)
            result[key] = project(item, inner, revision) if inner else item
    if wire_type == "Tool":
        _fit_output_schema(result, revision)
    return result


def project_content(block: Json, revision: Revision) -> Json:
    """Return a content block as the revision knows it; a kind that it does not know becomes a note in text."""
    kind = block.get("type")
    if kind not in revision.content:
        if kind not in _CONTENT_TYPES:  # tool use and tool results of sampling, or custom types: unchanged
            return block
        return {"type": "text", "text": _note(block)}
    projected: Json = project(block, _CONTENT_TYPES[kind], revision)
    return projected


def project_tool_result(result: Json, revision: Revision) -> Json:
    """`project` for the result of tools/call, quick where nothing has to go (this is the hot path)."""
    structured = result.get("structuredContent")
    if not revision.structured_any and structured is not None and not isinstance(structured, dict):
        result = {key: value for key, value in result.items() if key != "structuredContent"}
    if revision in _KNOW_ALL_CONTENT:
        return result
    projected: Json = project(result, "CallToolResult", revision)
    return projected


def _fit_output_schema(tool: Json, revision: Revision) -> None:
    """Take away an output schema that does not describe an object, where structured content must be one."""
    schema = tool.get("outputSchema")
    if schema is not None and not revision.structured_any and schema.get("type") != "object":
        del tool["outputSchema"]


def _note(block: Json) -> str:
    if block["type"] == "audio":
        return f"[audio, {block.get('mimeType', 'unknown type')}: this client's protocol revision cannot carry it]"
    title = block.get("title") or block.get("name") or ""
    description = f" - {block['description']}" if block.get("description") else ""
    return f"{title}: {block.get('uri', '')}{description}".removeprefix(": ")
