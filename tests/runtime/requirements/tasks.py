"""Tasks in the core of one revision, and the extensions of the newest: Tasks and Skills."""

from __future__ import annotations

from mcpfactory_runtime.revisions import LATEST, R2025_11_25
from tests.runtime.requirements.model import EXTENSION, area, must, should

CORE = area(
    "task-core",
    "basic/utilities/tasks",
    (
        must("capability", "declares `tasks`, with the requests that can be tasks", "Capabilities"),
        must("undeclared", "serves a request with task metadata plainly where it declared no tasks", "Task Support"),
        must("created", "answers a call that becomes a task with the task", "Creating Tasks"),
        must("id", "makes task ids that are strings, unique and not to be guessed", "Task ID Requirements"),
        must("begins-working", "begins every task in status working", "Task Status Lifecycle"),
        must(
            "transitions",
            "moves a task only along the permitted ways, and never out of an end",
            "Task Status Lifecycle",
        ),
        must("timestamps", "says when a task was made and changed, by ISO 8601", "TTL and Resource Management"),
        must("ttl", "says how long a task is kept", "TTL and Resource Management"),
        must("get", "answers tasks/get with the task", "Getting Tasks"),
        must("result", "answers tasks/result with exactly what the plain request would have got", "Result Retrieval"),
        must("result-waits", "holds tasks/result back until the task has ended", "Result Retrieval"),
        must(
            "related",
            "marks the result, and what is asked for a task, with the task's id",
            "Associating Task-Related Messages",
        ),
        should(
            "not-related",
            "marks the answers to get, list and cancel with no such id",
            "Associating Task-Related Messages",
        ),
        must("list", "lists every task that the requestor could get, in pages", "Task Listing"),
        must("cancel", "cancels a task, and has done so when it answers", "Task Cancellation"),
        must("cancel-ended", "refuses to cancel a task that has ended with -32602", "Task Cancellation"),
        must("cancelled-stays", "leaves a cancelled task cancelled whatever becomes of the work", "Task Cancellation"),
        must(
            "failed",
            "calls a task failed whose request failed, or whose tool reported an error",
            "Task Execution Errors",
        ),
        must("unknown", "answers an unknown task id with -32602", "Protocol Errors"),
        must("required", "refuses a tool that needs a task, called without, with -32601", "Tool-Level Negotiation"),
        must("forbidden", "refuses a tool that cannot be a task, called as one, with -32601", "Tool-Level Negotiation"),
        must(
            "progress", "goes on to report progress with the token of the request until the task has ended", "Progress"
        ),
        should(
            "input-required",
            "moves a task that waits for the client to input_required, and back",
            "Input Required Status",
        ),
        must(
            "owner",
            "shows a task to nobody but its requestor's authorization context",
            "Task Isolation and Access Control",
        ),
        should(
            "listed-to-known",
            "offers tasks/list only where requestors can be told apart",
            "Task Isolation and Access Control",
        ),
        should(
            "rate-limit",
            "limits how often tasks are asked for",
            "Task Isolation and Access Control",
            note="a million in a minute for each client unless the author or the operator says otherwise (server-api.md, Rates)",
        ),
        should("limits", "limits how many tasks there are, and for how long", "Resource Management"),
    ),
    since=R2025_11_25,
    until=R2025_11_25,
)

TASKS = area(
    "task",
    "io.modelcontextprotocol/tasks",
    (
        must(
            "declared",
            "returns tasks only to clients that declared the extension in that request",
            "Capability Negotiation",
        ),
        must(
            "required",
            "refuses with -32021 what can only be a task to clients that did not declare it",
            "Capability Negotiation",
        ),
        must("advertised", "declares the extension in server/discover", "Capability Negotiation"),
        must("result-type", "marks a created task with resultType `task`, and nothing else", "Creating Tasks"),
        must("durable", "returns a task only when tasks/get would find it", "Creating Tasks"),
        should("asks-first", "asks what it must ask before it creates the task", "Creating Tasks"),
        must("get", "answers tasks/get with the state and what belongs to it: questions, result or error", "Polling"),
        must("complete", "marks the answers to get, update and cancel as complete", "Polling"),
        must("all-questions", "names every open question of a task that waits for input", "Polling"),
        must("keys", "uses no key for two questions in the life of a task", "Input"),
        must("update", "acknowledges tasks/update with an empty result", "Input"),
        should("update-partial", "takes answers to some of the questions, and ignores unknown keys", "Input"),
        must("cancel", "acknowledges tasks/cancel with an empty result", "Cancellation"),
        must("unknown-get", "answers tasks/get of an unknown id with -32602", "Error Handling"),
        should("unknown-other", "answers tasks/update and tasks/cancel of an unknown id with -32602", "Error Handling"),
        must(
            "undeclared-methods",
            "refuses the three methods to clients that did not declare the extension, with -32021",
            "Error Handling",
        ),
        must("failed", "calls a task failed for a JSON-RPC error only, and says which", "Task Status"),
        must("tool-error", "calls a task completed whose tool reported an error", "Task Status"),
        must("retired", "answers tasks/result and tasks/list with -32601", "Removed methods"),
        must("ignores-old", "takes no notice of `task` in the parameters of a call", "Removed methods"),
        must("status-listen", "tells listening streams of the tasks that they named", "Notifications"),
        must(
            "status-undeclared",
            "refuses such a stream to clients that did not declare the extension, with -32021",
            "Notifications",
        ),
        must("no-progress", "sends neither progress nor log messages for a task", "Notifications"),
        must("header", "routes by Mcp-Name, which repeats the task's id", "Streamable HTTP"),
        must("unguessable", "makes ids that cannot be guessed", "Security"),
        must("owner", "checks with every request that the task is the caller's", "Security"),
    ),
    since=LATEST,
    on=(EXTENSION,),
)

SKILLS = area(
    "skill",
    "io.modelcontextprotocol/skills",
    (
        must("advertised", "declares the extension when it has skills, and only then", "Capability Negotiation"),
        must("list", "lists skills in pages, with caching hints", "skills/list"),
        must("get", "answers skills/get with frontmatter and the files of the skill", "skills/get"),
        must("digest", "gives SHA-256 and size of every file", "skills/get"),
        must("read", "serves the files as resources", "Resources"),
        must("unknown", "answers an unknown skill with -32602", "Error Handling"),
        must("limits", "offers no skill of more than 512 files or 16 MiB", "Limits"),
        should("directories", "lists folders of a skill where it declared that it can", "resources/directory/read"),
    ),
    since=LATEST,
    on=(EXTENSION,),
)

ROWS = (*CORE, *TASKS, *SKILLS)
