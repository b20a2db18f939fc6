"""Table of all protocol methods.

The facts in a row are valid in all revisions with the method. The record of a revision lists the names of its methods
(`revisions/records.py`), which may differ from the names in messages (`Revision.wire_names`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

CALL_TOOL: Final = "tools/call"

Sender = Literal["client", "server", "both"]


@dataclass(frozen=True, slots=True)
class Method:
    """A request or a notification.

    Attributes:
        name: name in code and in the records of revisions.
        sender: side that may send the message.
        capability: capability of the receiver that the method requires, or "".
        params: wire type of the parameters, if they differ between revisions.
        result: wire type of the complete result, if the result differs between revisions.
        named: the member of the parameters that the header `Mcp-Name` repeats
            (basic/transports/streamable-http, Request Headers).
        input_required: True if the result may be `resultType: input_required` (basic/patterns/mrtr).
        task: True if the request may be executed as a task (basic/utilities/tasks; ext-tasks).
        notification: True if the method has no response.
    """

    name: str
    sender: Sender
    capability: str = ""
    params: str = ""
    result: str = ""
    named: str = ""
    input_required: bool = False
    task: bool = False
    notification: bool = False


_ROWS: Final = (
    # lifecycle
    Method("initialize", "client", result="InitializeResult"),
    Method("server/discover", "client", result="DiscoverResult"),
    Method("ping", "both"),
    # tools, resources, prompts, completion, logging
    Method("tools/list", "client", "tools", result="ListToolsResult"),
    Method(CALL_TOOL, "client", "tools", result="CallToolResult", named="name", input_required=True, task=True),
    Method("resources/list", "client", "resources", result="ListResourcesResult"),
    Method("resources/templates/list", "client", "resources", result="ListResourceTemplatesResult"),
    Method("resources/read", "client", "resources", result="ReadResourceResult", named="uri", input_required=True),
    Method("resources/subscribe", "client", "resources"),
    Method("resources/unsubscribe", "client", "resources"),
    Method("prompts/list", "client", "prompts", result="ListPromptsResult"),
    Method("prompts/get", "client", "prompts", result="GetPromptResult", named="name", input_required=True),
    Method("completion/complete", "client", "completions", result="CompleteResult"),
    Method("logging/setLevel", "client", "logging"),
    Method("subscriptions/listen", "client"),
    # tasks, in both forms (basic/utilities/tasks; ext-tasks, Routing Headers)
    Method("tasks/get", "both", "tasks", named="taskId"),
    Method("tasks/result", "both", "tasks"),
    Method("tasks/list", "both", "tasks"),
    Method("tasks/update", "client", "tasks", named="taskId"),
    Method("tasks/cancel", "both", "tasks", named="taskId"),
    # skills (ext-skills)
    Method("skills/list", "client", "extensions"),
    Method("skills/get", "client", "extensions"),
    Method("resources/directory/read", "client", "extensions"),
    # requests of a server to its client
    Method("sampling/createMessage", "server", "sampling", params="CreateMessageRequestParams", task=True),
    Method("roots/list", "server", "roots"),
    Method("elicitation/create", "server", "elicitation", task=True),
    # notifications
    Method("notifications/initialized", "client", notification=True),
    Method("notifications/cancelled", "both", notification=True),
    Method("notifications/progress", "both", params="ProgressNotificationParams", notification=True),
    Method("notifications/message", "server", params="LoggingMessageNotificationParams", notification=True),
    Method("notifications/roots/list_changed", "client", notification=True),
    Method("notifications/tools/list_changed", "server", notification=True),
    Method("notifications/prompts/list_changed", "server", notification=True),
    Method("notifications/resources/list_changed", "server", notification=True),
    Method("notifications/resources/updated", "server", params="ResourceUpdatedNotificationParams", notification=True),
    Method("notifications/tasks/status", "both", notification=True),
    Method("notifications/tasks", "server", notification=True),  # ext-tasks, on streams of subscriptions/listen
    Method("notifications/elicitation/complete", "server", notification=True),
    Method("notifications/subscriptions/acknowledged", "server", notification=True),
)

UPDATED: Final = "notifications/resources/updated"

METHODS: Final[dict[str, Method]] = {row.name: row for row in _ROWS}
"""All methods by name."""
