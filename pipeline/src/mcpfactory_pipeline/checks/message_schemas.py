"""Types of the messages that servers send, with the names of the MCP schema.

Members without `Required` are optional, and must not be null. Additional members are valid. Some required members are
missing here, because separate rules check them: for example, the name of a tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Final, Literal, Required

from pydantic import Discriminator, Field, Tag, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mcpfactory_runtime.types import Json

_SHOWN: Final = 40  # maximum characters of an invalid value in a message
Role = Literal["user", "assistant"]
_Count = Annotated[float, Field(ge=0)]


class Annotations(TypedDict, total=False):
    """Annotations of content for clients."""

    audience: list[Role]
    priority: Annotated[float, Field(ge=0, le=1)]
    lastModified: str


class Icon(TypedDict, total=False):
    """Icon of a server, a tool, a resource or a prompt."""

    src: Required[str]
    mimeType: str
    sizes: list[str]
    theme: Literal["light", "dark"]


class _Named(TypedDict, total=False):
    name: Required[str]
    title: str
    description: str
    icons: list[Icon]
    _meta: Json


class Resource(_Named, total=False):
    """Entry of `resources/list`, and resource link."""

    uri: Required[str]
    mimeType: str
    size: _Count
    annotations: Annotations


class ResourceTemplate(_Named, total=False):
    """Entry of `resources/templates/list`."""

    uriTemplate: Required[str]
    mimeType: str
    annotations: Annotations


class PromptArgument(_Named, total=False):
    """Argument of a prompt."""

    required: bool


class Prompt(_Named, total=False):
    """Entry of `prompts/list`."""

    arguments: list[PromptArgument]


class ToolAnnotations(TypedDict, total=False):
    """Hints of a tool about its effects."""

    title: str
    readOnlyHint: bool
    destructiveHint: bool
    idempotentHint: bool
    openWorldHint: bool


class ToolExecution(TypedDict, total=False):
    """Execution of a tool: as a task or not."""

    taskSupport: Literal["forbidden", "optional", "required"]


class Tool(TypedDict, total=False):
    """Entry of `tools/list`; `schemas.tool-shape` checks its name and its input schema."""

    title: str
    description: str
    icons: list[Icon]
    annotations: ToolAnnotations
    execution: ToolExecution
    _meta: Json


class _Contents(TypedDict, total=False):
    uri: Required[str]
    mimeType: str
    _meta: Json


class TextResourceContents(_Contents):
    """Text of a resource."""

    text: Required[str]


class BlobResourceContents(_Contents):
    """Bytes of a resource, encoded in base64."""

    blob: Required[str]


ResourceContents = Annotated[
    Annotated[TextResourceContents, Tag("<text>")] | Annotated[BlobResourceContents, Tag("<blob>")],
    Discriminator(lambda found: "<blob>" if isinstance(found, dict) and "blob" in found else "<text>"),
]


class _Block(TypedDict, total=False):
    annotations: Annotations
    _meta: Json


class TextContent(_Block):
    """Block of text."""

    type: Required[Literal["text"]]
    text: Required[str]


class EncodedContent(_Block):
    """Image or audio, encoded in base64."""

    type: Required[Literal["image", "audio"]]
    data: Required[str]
    mimeType: Required[str]


class ResourceLink(Resource):
    """Link to a resource."""

    type: Required[Literal["resource_link"]]


class EmbeddedResource(_Block):
    """Block with the contents of a resource."""

    type: Required[Literal["resource"]]
    resource: Required[ResourceContents]


class ToolUseContent(TypedDict, total=False):
    """Call of a tool by a model (sampling)."""

    type: Required[Literal["tool_use"]]
    id: Required[str]
    name: Required[str]
    input: Required[Json]


class ToolResultContent(TypedDict, total=False):
    """Result of a tool for a model (sampling)."""

    type: Required[Literal["tool_result"]]
    toolUseId: Required[str]


_KINDS: Final = {"audio": "<image>"}  # type → tag of a union below; by default, the type in angle brackets


def _by(member: str) -> Discriminator:
    """Return the discriminator of a union of objects by the value of a member."""

    def tag(found: Any) -> str | None:
        value = found.get(member) if isinstance(found, dict) else None
        return _KINDS.get(str(value), f"<{value}>")

    return Discriminator(tag, custom_error_type="unknown", custom_error_message=f"its {member} is unknown")


ContentBlock = Annotated[
    Annotated[TextContent, Tag("<text>")]
    | Annotated[EncodedContent, Tag("<image>")]
    | Annotated[ResourceLink, Tag("<resource_link>")]
    | Annotated[EmbeddedResource, Tag("<resource>")],
    _by("type"),
]
SamplingContent = Annotated[
    Annotated[TextContent, Tag("<text>")]
    | Annotated[EncodedContent, Tag("<image>")]
    | Annotated[ToolUseContent, Tag("<tool_use>")]
    | Annotated[ToolResultContent, Tag("<tool_result>")],
    _by("type"),
]


class PromptMessage(TypedDict, total=False):
    """Message of a prompt."""

    role: Required[Role]
    content: Required[ContentBlock]


class SamplingMessage(TypedDict, total=False):
    """Message for the model of the client."""

    role: Required[Role]
    content: Required[
        Annotated[
            Annotated[SamplingContent, Tag("<one>")] | Annotated[list[SamplingContent], Tag("<list>")],
            Discriminator(lambda found: "<list>" if isinstance(found, list) else "<one>"),
        ]
    ]


class _Changes(TypedDict, total=False):
    listChanged: bool
    subscribe: bool


class _TaskRequests(TypedDict, total=False):
    tools: dict[str, Json]


class _Tasks(TypedDict, total=False):
    list: Json
    cancel: Json
    requests: _TaskRequests


class ServerCapabilities(TypedDict, total=False):
    """Capabilities that a server declares."""

    tools: _Changes
    resources: _Changes
    prompts: _Changes
    logging: Json
    completions: Json
    experimental: dict[str, Json]
    tasks: _Tasks
    extensions: dict[str, Json]


class Implementation(TypedDict, total=False):
    """Description of a server; `legacy.server-info` checks its name and version."""

    title: str
    description: str
    websiteUrl: str
    icons: list[Icon]


class _Result(TypedDict, total=False):
    _meta: Json


class _Page(_Result, total=False):
    nextCursor: str


class InitializeResult(_Result, total=False):
    """Result of `initialize`; `legacy.server-info` checks the required members."""

    instructions: str
    capabilities: ServerCapabilities
    serverInfo: Implementation


class DiscoverResult(_Result, total=False):
    """Result of `server/discover`; `modern.discover` checks the required members."""

    instructions: str
    capabilities: ServerCapabilities


class ListToolsResult(_Page, total=False):
    """Result of `tools/list`."""

    tools: list[Tool]


class ListResourcesResult(_Page, total=False):
    """Result of `resources/list`."""

    resources: list[Resource]


class ListResourceTemplatesResult(_Page, total=False):
    """Result of `resources/templates/list`."""

    resourceTemplates: list[ResourceTemplate]


class ListPromptsResult(_Page, total=False):
    """Result of `prompts/list`."""

    prompts: list[Prompt]


class CallToolResult(_Result, total=False):
    """Result of `tools/call`."""

    content: Required[list[ContentBlock]]
    isError: bool


class GetPromptResult(_Result, total=False):
    """Result of `prompts/get`."""

    description: str
    messages: Required[list[PromptMessage]]


class ReadResourceResult(_Result, total=False):
    """Result of `resources/read`."""

    contents: Required[list[ResourceContents]]


class Completion(TypedDict, total=False):
    """Proposed values of an argument."""

    values: Required[list[str]]
    total: _Count
    hasMore: bool


class CompleteResult(_Result, total=False):
    """Result of `completion/complete`."""

    completion: Required[Completion]


class ElicitProperty(TypedDict, total=False):
    """Field of a form: the form has no nested objects."""

    type: Required[Literal["string", "number", "integer", "boolean", "array"]]
    title: str
    description: str


class ElicitSchema(TypedDict, total=False):
    """Schema of a form."""

    type: Required[Literal["object"]]
    properties: Required[dict[str, ElicitProperty]]
    required: list[str]


class ElicitFormParams(TypedDict, total=False):
    """Params of `elicitation/create` for a form."""

    message: Required[str]
    requestedSchema: Required[ElicitSchema]


class ElicitUrlParams(TypedDict, total=False):
    """Params of `elicitation/create` for a URL."""

    message: Required[str]
    url: Required[str]


class CreateMessageParams(TypedDict, total=False):
    """Params of `sampling/createMessage`."""

    messages: Required[list[SamplingMessage]]
    maxTokens: Required[int]
    systemPrompt: str
    temperature: float
    stopSequences: list[str]


ElicitParams = Annotated[
    Annotated[ElicitFormParams, Tag("<form>")] | Annotated[ElicitUrlParams, Tag("<url>")],
    Discriminator(lambda found: "<url>" if isinstance(found, dict) and found.get("mode") == "url" else "<form>"),
]


class _ElicitRequest(TypedDict, total=False):
    method: Required[Literal["elicitation/create"]]
    params: Required[ElicitParams]


class _CreateMessageRequest(TypedDict, total=False):
    method: Required[Literal["sampling/createMessage"]]
    params: Required[CreateMessageParams]


class _ListRootsRequest(TypedDict, total=False):
    method: Required[Literal["roots/list"]]


class InputRequiredResult(_Result, total=False):
    """Result that asks the client for input (per-request lifecycle)."""

    inputRequests: dict[
        str,
        Annotated[
            Annotated[_ElicitRequest, Tag("<elicitation/create>")]
            | Annotated[_CreateMessageRequest, Tag("<sampling/createMessage>")]
            | Annotated[_ListRootsRequest, Tag("<roots/list>")],
            _by("method"),
        ],
    ]
    requestState: str


class LoggingMessageParams(TypedDict, total=False):
    """Params of `notifications/message`."""

    level: Required[Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]]
    data: Required[Any]
    logger: str


class ProgressParams(TypedDict, total=False):
    """Params of `notifications/progress`; `server-messages.progress-*` check the token and the progress."""

    total: float
    message: str


class ResourceUpdatedParams(TypedDict, total=False):
    """Params of `notifications/resources/updated`."""

    uri: Required[str]


class CancelledParams(TypedDict, total=False):
    """Params of `notifications/cancelled`."""

    reason: str


class ElicitationCompleteParams(TypedDict, total=False):
    """Params of `notifications/elicitation/complete`."""

    elicitationId: Required[str]


_RESULTS: Final[Mapping[str, Any]] = {
    "initialize": InitializeResult,
    "server/discover": DiscoverResult,
    "tools/list": ListToolsResult,
    "tools/call": CallToolResult,
    "tasks/result": CallToolResult,
    "resources/list": ListResourcesResult,
    "resources/templates/list": ListResourceTemplatesResult,
    "resources/read": ReadResourceResult,
    "prompts/list": ListPromptsResult,
    "prompts/get": GetPromptResult,
    "completion/complete": CompleteResult,
}
_PARAMS: Final[Mapping[str, Any]] = {
    "elicitation/create": ElicitParams,
    "sampling/createMessage": CreateMessageParams,
    "notifications/message": LoggingMessageParams,
    "notifications/progress": ProgressParams,
    "notifications/resources/updated": ResourceUpdatedParams,
    "notifications/cancelled": CancelledParams,
    "notifications/elicitation/complete": ElicitationCompleteParams,
}


def result_errors(method: str, result: Json) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for each member of a result that does not match the schema."""
    kind = InputRequiredResult if result.get("resultType") == "input_required" else _RESULTS.get(method)
    return _errors(kind, result)


def params_errors(method: str, params: Json) -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for each member of a server's request or notification that does not match the schema."""
    return _errors(_PARAMS.get(method), params)


def _errors(kind: Any, value: Json) -> Iterator[tuple[str, str]]:
    try:
        _adapter(kind or _Result).validate_python(value, strict=True)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False):
            path = ".".join(str(part) for part in one["loc"] if not str(part).startswith("<"))  # without tags of unions
            yield (
                path,
                "is missing" if one["type"] == "missing" else f"is {_short(one['input'])}: {_problem(one['msg'])}",
            )


def _problem(message: str) -> str:
    return message[:1].lower() + message[1:].replace("dictionary", "object")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
