"""Projection of results, notifications and elicitation forms to the peer's revision.

Handlers use the newest revision. This module removes fields and content types that the peer's revision does not have.
Types without an entry in `records` or in the table below stay unchanged.

`normalize_elicitation_form` converts any supported schema to a form of the newest revision, and
`project_elicitation_form` converts that form for an older peer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime.protocol.methods import METHODS
from mcpfactory_runtime.revisions.records import RELEASED, Revision
from mcpfactory_runtime.schemas.walk import (
    definitions_of,
    items_schema_of,
    properties_of,
    required_of,
    resolve_definition,
    subschemas_of,
    types_of,
)
from mcpfactory_runtime.types import Json

RESULT_TYPES: Final[dict[str, str]] = {row.name: row.result for row in METHODS.values() if row.result}
"""Method → wire type of its complete result."""

# Type → field → type of the value, or of the elements of a list.
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

# Revisions with the content blocks of the newest revision, so that tool results need no projection.
_NEWEST: Final = RELEASED[-1]
_KNOW_ALL_CONTENT: Final = frozenset(
    revision
    for revision in RELEASED
    if revision.content == _NEWEST.content
    and all(revision.fields.get(kind) == _NEWEST.fields[kind] for kind in _CONTENT_TYPES.values())
)


def project_to_revision(value: Any, wire_type: str, revision: Revision) -> Any:
    """Return an object of `wire_type`, or a list of objects, without the fields that `revision` does not have."""
    if isinstance(value, list):
        return [project_to_revision(item, wire_type, revision) for item in value]
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
            result[key] = project_to_revision(item, inner, revision) if inner else item
    if wire_type == "Tool":
        schema = result.get("outputSchema")
        if schema is not None and not revision.structured_any and schema.get("type") != "object":
            del result["outputSchema"]  # structured content must be an object in this revision
    return result


def project_content(block: Json, revision: Revision) -> Json:
    """Return a content block for a revision, or a text block if the revision does not have the type."""
    kind = block.get("type")
    if kind not in revision.content:
        # Do not change other types, such as custom types or the tool results of sampling.
        if kind not in _CONTENT_TYPES:
            return block
        return {"type": "text", "text": _note(block)}
    projected: Json = project_to_revision(block, _CONTENT_TYPES[kind], revision)
    return projected


def project_tool_result(result: Json, revision: Revision) -> Json:
    """Return the result of tools/call in the form of a revision."""
    structured = result.get("structuredContent")
    if not revision.structured_any and structured is not None and not isinstance(structured, dict):
        result = {key: value for key, value in result.items() if key != "structuredContent"}
    if revision in _KNOW_ALL_CONTENT:
        return result
    projected: Json = project_to_revision(result, "CallToolResult", revision)
    return projected


def _note(block: Json) -> str:
    if block["type"] == "audio":
        return f"[audio, {block.get('mimeType', 'unknown type')}: this client's protocol revision cannot carry it]"
    title = block.get("title") or block.get("name") or ""
    description = f" - {block['description']}" if block.get("description") else ""
    return f"{title}: {block.get('uri', '')}{description}".removeprefix(": ")


class ElicitationFormError(ValueError):
    """Error for an unsupported form."""


_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})

# Kind of field → keywords, in the result of `normalize_elicitation_form`.
_NEWEST_FIELDS: Final = RELEASED[-1].form_fields


def normalize_elicitation_form(schema: Mapping[str, Any]) -> Json:
    """Return the form for a JSON Schema, or raise ElicitationFormError if forms do not support a field.

    Local references and optional types are resolved, and unsupported keywords are removed.
    """
    if schema.get("type", "object") != "object" or not isinstance(schema.get("properties", {}), Mapping):
        raise ElicitationFormError("a form must be a schema of type object with properties")
    fields = {name: _read_field(name, field, definitions_of(schema)) for name, field in properties_of(schema).items()}
    form: Json = {"type": "object", "properties": fields}
    if required := required_of(schema):
        form["required"] = required
    return form


def project_elicitation_form(form: Json, revision: Revision) -> Json:
    """Convert a form from `normalize_elicitation_form` for `revision`, or raise ElicitationFormError."""
    return {
        **form,
        "properties": {
            name: _project_field(name, field, revision.form_fields) for name, field in properties_of(form).items()
        },
    }


def _read_field(name: str, field: Any, definitions: Mapping[str, Any]) -> Json:
    known = _resolve(field, definitions) if isinstance(field, Mapping) else {}
    if "const" in known:
        known = {**known, "enum": [known["const"]]}
    if "oneOf" not in known and "enum" in known and all(isinstance(value, str) for value in known["enum"]):
        known.setdefault("type", "string")
    if known.get("default") is None:
        known.pop("default", None)
    if known.get("format") not in _FORMATS:
        known.pop("format", None)
    kind = _kind(known)
    if kind is None:
        raise ElicitationFormError(
            f"the field {name!r} must be a string, number, boolean or choice of strings; forms cannot be nested"
        )
    if kind == "several":
        known["items"] = _resolve(items_schema_of(known), definitions)
    return {key: value for key, value in known.items() if key in _NEWEST_FIELDS[kind]}


def _resolve(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Json:
    """Follow a field's local references, and choose an alternative if only one is not null."""
    found = dict(field)
    for _ in range(8):
        found = dict(resolve_definition(found, definitions))
        several = subschemas_of(found, "anyOf") or subschemas_of(found, "allOf")
        if _choices(several):  # the parts are titled choices, not alternative schemas
            break
        real = [option for option in several if isinstance(option, Mapping) and types_of(option) != ["null"]]
        if len(real) != 1:
            break
        found = {**real[0], **{key: value for key, value in found.items() if key not in ("anyOf", "allOf")}}
    return found


def _kind(field: Json) -> str | None:
    match field.get("type"):
        case "string":
            if "oneOf" in field:
                return "titled" if _choices(subschemas_of(field, "oneOf")) else None
            return "enum" if "enum" in field else "string"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "boolean"
        case "array":
            items = items_schema_of(field)
            known = isinstance(items, Mapping) and (
                "enum" in items or _choices(subschemas_of(items, "anyOf")) or "$ref" in items
            )
            return "several" if known else None
    return None


def _choices(options: Any) -> bool:
    return (
        isinstance(options, list)
        and bool(options)
        and all(isinstance(option, Mapping) and "const" in option for option in options)
    )


def _project_field(name: str, field: Json, kinds: Mapping[str, frozenset[str]]) -> Json:
    kind = _kind(field)
    assert kind is not None, "normalize_elicitation_form let it through"
    if kind == "titled" and kind not in kinds:
        options = subschemas_of(field, "oneOf")
        names = [option.get("title", option["const"]) for option in options]
        field = {**field, "enum": [option["const"] for option in options], "enumNames": names}
        kind = "enum"
    if kind not in kinds:
        raise ElicitationFormError(f"field {name!r}: this protocol revision does not support multiple choice")
    return {key: value for key, value in field.items() if key in kinds[kind]}
