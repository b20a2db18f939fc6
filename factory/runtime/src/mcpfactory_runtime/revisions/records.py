"""The released revisions as data. The first revision is complete, and the others are differences from the previous one.

Rules for changes to this module:

1. Only this package mentions a revision by name. Other code uses the attributes of a record.
2. Each line describes one change from the previous revision.
3. Methods are rows of `protocol/methods.py`. If a revision renames a method, `wire_names` has the new name.
4. `tests/runtime/protocol/test_revisions.py` compares methods, notifications and fields with the specification's
   schema.json.

Comments cite sections of the revision's specification.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from mcpfactory_runtime.protocol.methods import METHODS

Names = frozenset[str]

# Attributes of a revision that contain names from `METHODS`.
_METHOD_SETS: Final = ("methods", "client_requests", "notifications", "client_notifications")


@dataclass(frozen=True, eq=False)  # no slots: cached properties need a `__dict__`
class Revision:
    """One released revision. The fields are from the revision's schema, unless a section is cited.

    Attributes:
        name: name in messages.
        modern: True for the lifecycle with metadata in each request. False for the lifecycle with a handshake.
        requests: methods that a client may request.
        extensions: identifier of an extension → additional methods that a client may request. The schema of the
            revision does not contain these methods. A server has the methods if the server advertises the extension.
        client_requests: methods that a server may request. In the per-request lifecycle, `inputRequests` contains the
            requests.
        notifications: notifications that a server may send.
        client_notifications: notifications that a client may send.
        fields: wire type → names of its fields.
        content: content block types of tool results and prompts.
        cacheable: methods whose complete results have `ttlMs` and `cacheScope`.
        input_required: True if results may be `resultType: input_required` (basic/patterns/mrtr). The method's row must
            also permit such results.
        client_capabilities: capability names that a client may declare.
        elicitation_modes: `form`, `url`.
        batches: True if JSON-RPC arrays must be accepted (basic/index, Batching).
        structured_any: True if structured content and output schemas need not be objects.
        result_type: True if each result has `resultType`.
        null_id: True if an error without a request ID has `"id": null`. Otherwise, the member is omitted.
        version_header: True if HTTP requests have `MCP-Protocol-Version` (basic/transports).
        priming: True if an SSE stream begins with an event that has an ID and empty data (basic/transports, polling).
        resource_not_found: the error code of `resources/read` for an unknown URI (server/resources).
        form_fields: kind of field in an elicitation form → keywords (client/elicitation, Requested Schema). A kind
            without an entry is not supported.
        wire_names: row of `METHODS` → name in messages of this revision, if the two names differ.
        method_header: True if HTTP requests have `Mcp-Method` and `Mcp-Name`. Calls of tools with `x-mcp-header` also
            have `Mcp-Param-*`.
    """

    name: str
    modern: bool
    requests: Names
    client_requests: Names
    notifications: Names
    client_notifications: Names
    fields: Mapping[str, Names]
    content: Names
    cacheable: Names = frozenset()
    input_required: bool = False
    client_capabilities: Names = frozenset()
    elicitation_modes: Names = frozenset()
    batches: bool = False
    structured_any: bool = False
    result_type: bool = False
    null_id: bool = True
    version_header: bool = False
    priming: bool = False
    resource_not_found: int = -32002
    method_header: bool = False
    extensions: Mapping[str, Names] = field(default_factory=dict)
    form_fields: Mapping[str, Names] = field(default_factory=dict)
    wire_names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        named = self.methods.union(self.client_requests, self.notifications, self.client_notifications, self.cacheable)
        if unknown := named.union(self.wire_names).difference(METHODS):
            raise ValueError(
                f"internal error: revision {self.name} uses unknown methods: {', '.join(sorted(unknown))} "
                "(this is a bug; please report it)"
            )

    @cached_property
    def methods(self) -> Names:
        """Return the methods that a client may request, with the methods of extensions."""
        return self.requests.union(*self.extensions.values())

    @cached_property
    def input_requests(self) -> Names:
        """Return the methods that may return `resultType: input_required`."""
        return frozenset(name for name in self.methods if self.input_required and METHODS[name].input_required)

    @cached_property
    def rows(self) -> Mapping[str, Mapping[str, str]]:
        """Return a nested table: set of methods → name in messages → row of `METHODS`."""
        return {kind: {self.wire_names.get(row, row): row for row in getattr(self, kind)} for kind in _METHOD_SETS}

    def wire(self, row: str) -> str:
        """Return a method's name in messages of this revision."""
        return self.wire_names.get(row, row)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<revision {self.name}>"


def successor(
    before: Revision,
    name: str,
    *,
    add: Mapping[str, str] | None = None,
    drop: Mapping[str, str] | None = None,
    add_fields: Mapping[str, str] | None = None,
    drop_fields: Mapping[str, str] | None = None,
    **changes: Any,
) -> Revision:
    """Return the revision after `before`.

    `add` and `drop` map an attribute to members of a set, separated by spaces. `add_fields` and `drop_fields` map a
    wire type to fields.
    """
    sets: dict[str, Names] = {}
    for attribute, members in _words(add or {}).items():
        sets[attribute] = getattr(before, attribute) | members
    for attribute, members in _words(drop or {}).items():
        old: Names = sets.get(attribute, getattr(before, attribute))
        assert old.issuperset(members), f"{name}: {attribute} never had {set(members) - old}"
        sets[attribute] = old - members
    fields = dict(before.fields)
    for wire_type, names in _words(add_fields or {}).items():
        fields[wire_type] = fields.get(wire_type, frozenset()) | names
    for wire_type, names in _words(drop_fields or {}).items():
        assert fields[wire_type].issuperset(names), f"{name}: {wire_type} never had {set(names) - fields[wire_type]}"
        fields[wire_type] -= names
    changes.update(sets)
    return replace(before, name=name, fields=fields, **changes)


# Identifiers of extensions, which are keys in `capabilities.extensions`.
TASKS: Final = "io.modelcontextprotocol/tasks"
SKILLS: Final = "io.modelcontextprotocol/skills"
APPS: Final = "io.modelcontextprotocol/ui"


def _names(text: str) -> Names:
    return frozenset(text.split())


def _words(table: Mapping[str, str]) -> dict[str, Names]:
    return {key: _names(text) for key, text in table.items()}


# Kind of field in an elicitation form → keywords (client/elicitation, Requested Schema).
_COMMON: Final = frozenset({"type", "title", "description"})
_STRING: Final = _COMMON | {"minLength", "maxLength", "format"}
_NUMBER: Final = _COMMON | {"minimum", "maximum"}
_DEFAULT: Final = frozenset({"default"})

_PLAIN_FIELDS: Final[dict[str, frozenset[str]]] = {
    "string": _STRING,
    "number": _NUMBER,
    "boolean": _COMMON | _DEFAULT,
    "enum": _COMMON | {"enum", "enumNames"},
}
_TITLED_FIELDS: Final[dict[str, frozenset[str]]] = {
    "string": _STRING | _DEFAULT,
    "number": _NUMBER | _DEFAULT,
    "boolean": _COMMON | _DEFAULT,
    "enum": _COMMON | {"enum", "enumNames"} | _DEFAULT,
    "titled": _COMMON | {"oneOf"} | _DEFAULT,
    "several": _COMMON | {"items", "minItems", "maxItems"} | _DEFAULT,
}

R2024_11_05: Final = Revision(
    name="2024-11-05",
    modern=False,
    requests=_names("""
        initialize ping tools/list tools/call resources/list resources/templates/list resources/read
        resources/subscribe resources/unsubscribe prompts/list prompts/get completion/complete logging/setLevel
    """),
    client_requests=_names("ping sampling/createMessage roots/list"),
    notifications=_names("""
        notifications/cancelled notifications/progress notifications/message notifications/tools/list_changed
        notifications/prompts/list_changed notifications/resources/list_changed notifications/resources/updated
    """),
    client_notifications=_names("""
        notifications/initialized notifications/cancelled notifications/progress notifications/roots/list_changed
    """),
    fields=_words(
        {
            "Annotations": "audience priority",
            "BlobResourceContents": "uri mimeType blob",
            "CallToolResult": "_meta content isError",
            "CompleteResult": "_meta completion",
            "CreateMessageRequestParams": "messages modelPreferences systemPrompt includeContext temperature maxTokens "
            "stopSequences metadata",
            "EmbeddedResource": "type resource annotations",
            "GetPromptResult": "_meta description messages",
            "ImageContent": "type data mimeType annotations",
            "Implementation": "name version",
            "InitializeResult": "_meta protocolVersion capabilities serverInfo instructions",
            "ListPromptsResult": "_meta nextCursor prompts",
            "ListResourceTemplatesResult": "_meta nextCursor resourceTemplates",
            "ListResourcesResult": "_meta nextCursor resources",
            "ListToolsResult": "_meta nextCursor tools",
            "LoggingMessageNotificationParams": "level logger data",
            "ProgressNotificationParams": "progressToken progress total",
            "Prompt": "name description arguments",
            "PromptArgument": "name description required",
            "PromptMessage": "role content",
            "ReadResourceResult": "_meta contents",
            "Resource": "uri name description mimeType size annotations",
            "ResourceTemplate": "uriTemplate name description mimeType annotations",
            "ResourceUpdatedNotificationParams": "uri",
            "SamplingMessage": "role content",
            "ServerCapabilities": "experimental logging prompts resources tools",
            "TextContent": "type text annotations",
            "TextResourceContents": "uri mimeType text",
            "Tool": "name description inputSchema",
        }
    ),
    content=_names("text image resource"),
    client_capabilities=_names("experimental roots sampling"),
)

R2025_03_26: Final = successor(
    R2024_11_05,
    "2025-03-26",
    add={"content": "audio"},  # server/tools, Audio Content
    batches=True,  # basic/index, Batching: implementations MUST be able to receive batches
    add_fields={
        "AudioContent": "type data mimeType annotations",
        "ProgressNotificationParams": "message",  # basic/utilities/progress
        "ServerCapabilities": "completions",  # server/utilities/completion, Capabilities
        "Tool": "annotations",
        "ToolAnnotations": "title readOnlyHint destructiveHint idempotentHint openWorldHint",
    },
)

R2025_06_18: Final = successor(
    R2025_03_26,
    "2025-06-18",
    batches=False,  # removed according to the changelog
    version_header=True,  # basic/transports, Protocol Version Header
    form_fields=_PLAIN_FIELDS,  # client/elicitation
    add={
        "client_requests": "elicitation/create",  # client/elicitation
        "client_capabilities": "elicitation",
        "elicitation_modes": "form",
        "content": "resource_link",  # server/tools, Resource Links
    },
    add_fields={
        "Annotations": "lastModified",
        "AudioContent": "_meta",
        "BlobResourceContents": "_meta",
        "CallToolResult": "structuredContent",  # server/tools, Structured Content
        "ElicitRequestFormParams": "message requestedSchema",
        "EmbeddedResource": "_meta",
        "ImageContent": "_meta",
        "Implementation": "title",
        "Prompt": "_meta title",
        "PromptArgument": "title",
        "Resource": "_meta title",
        "ResourceLink": "type uri name title description mimeType size annotations _meta",
        "ResourceTemplate": "_meta title",
        "TextContent": "_meta",
        "TextResourceContents": "_meta",
        "Tool": "_meta title outputSchema",
    },
)

R2025_11_25: Final = successor(
    R2025_06_18,
    "2025-11-25",
    null_id=False,  # JSONRPCErrorResponse: id is optional and never null
    form_fields=_TITLED_FIELDS,  # client/elicitation: titled choices, multiple choices, defaults
    priming=True,  # basic/transports, Sending Messages to the Server, 6
    add={
        "requests": "tasks/get tasks/result tasks/list tasks/cancel",  # basic/utilities/tasks
        "client_requests": "tasks/get tasks/result tasks/list tasks/cancel",
        "notifications": "notifications/tasks/status notifications/elicitation/complete",
        "client_notifications": "notifications/tasks/status",
        "client_capabilities": "tasks",
        "elicitation_modes": "url",  # client/elicitation, URL Mode
    },
    add_fields={
        "CreateMessageRequestParams": "_meta task tools toolChoice",  # client/sampling, Tools
        "ElicitRequestFormParams": "_meta task mode",
        "ElicitRequestURLParams": "_meta task mode message elicitationId url",
        "Icon": "src mimeType sizes theme",
        "Implementation": "description icons websiteUrl",
        "LoggingMessageNotificationParams": "_meta",
        "ProgressNotificationParams": "_meta",
        "Prompt": "icons",
        "Resource": "icons",
        "ResourceLink": "icons",
        "ResourceTemplate": "icons",
        "ResourceUpdatedNotificationParams": "_meta",
        "SamplingMessage": "_meta",
        "ServerCapabilities": "tasks",
        "Tool": "execution icons",
        "ToolExecution": "taskSupport",
    },
)

R2026_07_28: Final = successor(
    R2025_11_25,
    "2026-07-28",
    modern=True,  # basic/versioning: no handshake, each request has its own metadata
    structured_any=True,  # server/tools, Structured Content: any JSON value
    result_type=True,  # basic/index, Results
    input_required=True,  # basic/patterns/mrtr
    priming=False,  # basic/transports/streamable-http: streams are not resumed
    method_header=True,  # basic/transports/streamable-http, Request Headers
    resource_not_found=-32602,  # server/resources, Error Handling
    extensions=_words(
        {
            TASKS: "tasks/get tasks/update tasks/cancel",  # ext-tasks, specification/tasks
            SKILLS: "skills/list skills/get resources/directory/read",  # ext-skills, specification/skills
            APPS: "",  # ext-apps, specification/apps: resources and metadata only
        }
    ),
    add={
        "requests": "server/discover subscriptions/listen",
        "notifications": "notifications/subscriptions/acknowledged",
        "client_capabilities": "extensions",
        # server/utilities/caching
        "cacheable": "server/discover tools/list prompts/list resources/list resources/templates/list resources/read",
    },
    drop={
        "requests": """
            initialize ping logging/setLevel resources/subscribe resources/unsubscribe
            tasks/get tasks/result tasks/list tasks/cancel
        """,
        "client_requests": "ping tasks/get tasks/result tasks/list tasks/cancel",
        "notifications": "notifications/tasks/status notifications/elicitation/complete",
        "client_notifications": """
            notifications/initialized notifications/progress notifications/roots/list_changed
            notifications/tasks/status
        """,
        "client_capabilities": "tasks",
    },
    add_fields={
        "CallToolResult": "resultType",
        "CompleteResult": "resultType",
        "DiscoverResult": "_meta resultType ttlMs cacheScope supportedVersions capabilities instructions",
        "GetPromptResult": "resultType",
        "InputRequiredResult": "_meta resultType inputRequests requestState",
        "ListPromptsResult": "resultType ttlMs cacheScope",
        "ListResourceTemplatesResult": "resultType ttlMs cacheScope",
        "ListResourcesResult": "resultType ttlMs cacheScope",
        "ListToolsResult": "resultType ttlMs cacheScope",
        "ReadResourceResult": "resultType ttlMs cacheScope",
        "ServerCapabilities": "extensions",
    },
    drop_fields={
        "CreateMessageRequestParams": "_meta task",
        "ElicitRequestFormParams": "_meta task",
        "ElicitRequestURLParams": "_meta task elicitationId",
        "InitializeResult": "_meta protocolVersion capabilities serverInfo instructions",
        "ServerCapabilities": "tasks",
        "Tool": "execution",
        "ToolExecution": "taskSupport",
    },
)

RELEASED: Final = (R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28)
"""All revisions, oldest first."""
