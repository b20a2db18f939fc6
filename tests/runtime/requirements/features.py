"""Tools, resources, prompts, completion, and the utilities around them."""

from __future__ import annotations

from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_03_26, R2025_06_18, R2025_11_25
from tests.runtime.requirements.model import area, must, should

RATES = "a million in a minute for each client unless the author or the operator says otherwise (server-api.md, Rates)"

TOOLS = area(
    "tools",
    "server/tools",
    (
        must("capability", "declares `tools` when it has tools", "Capabilities"),
        must("list", "lists its tools with name and input schema", "Listing Tools"),
        should("order", "lists them in the same order each time", "Listing Tools", since=LATEST),
        must("call", "calls a tool with its arguments and returns its content", "Calling Tools"),
        should("list-changed", "tells clients when the list changed", "List Changed Notification"),
        must("input-schema", "gives every tool an input schema that is valid and of type object", "Tool"),
        must("unknown-tool", "answers a call of an unknown tool with -32602", "Error Handling"),
        must("malformed-call", "answers a call whose arguments are no object with -32602", "Error Handling"),
        must("tool-failure", "reports a tool's failure inside the result, with isError", "Error Handling"),
        should(
            "input-error",
            "reports arguments that do not fit inside the result, for the model to mend",
            "Error Handling",
            since=R2025_11_25,
        ),
        must("validate", "checks every argument before the tool runs", "Security Considerations"),
        must("access-control", "can bind tools to what a caller may do", "Security Considerations"),
        must("rate-limit", "limits how often tools are called", "Security Considerations", note=RATES),
        must(
            "sanitize",
            "sends nothing of a tool's inside that the tool did not mean to send",
            "Security Considerations",
            note="what a handler returns is sent as it is; what it raises is not",
        ),
        should("unique-names", "has no two tools of one name", "Tool Names", since=R2025_11_25),
        should(
            "name-letters",
            "names tools with 1 to 128 letters, digits, `_`, `-` and `.`",
            "Tool Names",
            since=R2025_11_25,
        ),
        must("image", "sends images as base64 with a MIME type", "Image Content"),
        must("audio", "sends audio as base64 with a MIME type", "Audio Content", since=R2025_03_26),
        must("embedded", "sends embedded resources with URI and text or blob", "Embedded Resources"),
        must("link", "sends resource links with URI and name", "Resource Links", since=R2025_06_18),
        must("annotations", "lists annotations of tools", "Tool", since=R2025_03_26),
        must("title", "lists titles of tools", "Tool", since=R2025_06_18),
        must("icons", "lists icons of tools", "Tool", since=R2025_11_25),
        must("structured", "sends structured content", "Structured Content", since=R2025_06_18),
        must(
            "structured-object",
            "sends structured content only when it is an object",
            "Structured Content",
            since=R2025_06_18,
            until=LATEST_LEGACY,
        ),
        must("structured-any", "sends structured content of any JSON type", "Structured Content", since=LATEST),
        should("structured-text", "sends it as text, too", "Structured Content", since=R2025_06_18),
        must(
            "output-schema",
            "returns what the listed output schema promises, or an error",
            "Output Schema",
            since=R2025_06_18,
        ),
        must(
            "output-schema-object",
            "lists only output schemas of objects",
            "Output Schema",
            since=R2025_06_18,
            until=LATEST_LEGACY,
        ),
    ),
)

FALLBACKS = area(
    "fallback",
    "schema",
    (
        must("fields", "leaves out fields that the revision does not have", "Tool, Resource, Prompt"),
        must(
            "no-structured", "sends neither structured content nor output schemas", "CallToolResult", until=R2025_03_26
        ),
        must("no-link", "sends resource links as text", "CallToolResult", until=R2025_03_26),
    ),
)

RESOURCES = area(
    "resources",
    "server/resources",
    (
        must("capability", "declares `resources` when it has resources", "Capabilities"),
        must("list", "lists its resources with URI and name", "Listing Resources"),
        must("templates", "lists its resource templates by RFC 6570", "Resource Templates"),
        must("read-text", "sends text as it is", "Reading Resources"),
        must("read-blob", "sends bytes as base64", "Reading Resources"),
        must("mime-type", "sends the MIME type where it is known", "Reading Resources"),
        must("template-read", "reads a URI that fits a template, and only such", "Resource Templates"),
        must("subscribe", "takes subscriptions and tells subscribers of updates", "Subscriptions", until=LATEST_LEGACY),
        must("unsubscribe", "tells no more after the subscription ended", "Subscriptions", until=LATEST_LEGACY),
        must("not-subscribed", "tells nobody who did not subscribe", "Subscriptions", until=LATEST_LEGACY),
        should("list-changed", "tells clients when the list changed", "List Changed Notification"),
        should("not-found-legacy", "answers an unknown URI with -32002", "Error Handling", until=LATEST_LEGACY),
        must("not-found", "answers an unknown URI with -32602 and the URI", "Error Handling", since=LATEST),
        must("no-empty-contents", "never answers an unknown URI with empty contents", "Error Handling", since=LATEST),
        should("internal-error", "answers failures with -32603", "Error Handling"),
        must("validate-uri", "checks each URI, and takes none that is no string", "Security Considerations"),
        must("traversal", "lets no URI climb out of a template's variable", "Security Considerations", since=LATEST),
        should(
            "access",
            "checks permissions before it reads",
            "Security Considerations",
            author="who may read what is the handler's knowledge; ctx.principal names the caller",
        ),
        must(
            "scheme",
            "uses URI schemes by RFC 3986",
            "Common URI Schemes",
            since=R2025_06_18,
            author="the author chooses the URIs",
        ),
        must("metadata", "lists size and annotations", "Resource"),
        must("title", "lists titles, and lastModified among the annotations", "Resource", since=R2025_06_18),
        must("icons", "lists icons", "Resource", since=R2025_11_25),
    ),
)

PROMPTS = area(
    "prompts",
    "server/prompts",
    (
        must("capability", "declares `prompts` when it has prompts", "Capabilities"),
        must("list", "lists its prompts with their arguments", "Listing Prompts"),
        must("get", "fills a prompt in", "Getting a Prompt"),
        should("list-changed", "tells clients when the list changed", "List Changed Notification"),
        should("unknown", "answers an unknown name with -32602", "Error Handling"),
        should("missing-argument", "answers a missing required argument with -32602", "Error Handling"),
        should("internal-error", "answers failures with -32603", "Error Handling"),
        should("validate", "checks arguments before the prompt is filled in", "Implementation Considerations"),
        must(
            "content", "sends images and audio as base64 with a MIME type, and resources with their URI", "Data Types"
        ),
        must("title", "lists titles of prompts and arguments", "Data Types", since=R2025_06_18),
        must("icons", "lists icons", "Data Types", since=R2025_11_25),
    ),
)

COMPLETION = area(
    "completion",
    "server/utilities/completion",
    (
        must("capability", "declares `completions` when it completes", "Capabilities", since=R2025_03_26),
        must("no-capability", "declares no capability for it", "Capabilities", until=R2025_03_26),
        must("complete", "completes arguments of prompts and of resource templates", "Requesting Completions"),
        must("at-most-100", "gives at most 100 values and says whether there are more", "Completion Results"),
        must("context", "hands arguments that are settled to the handler", "Requesting Completions", since=R2025_06_18),
        should("not-offered", "answers with -32601 when it completes nothing", "Error Handling", since=R2025_03_26),
        should("bad-reference", "answers an unknown prompt with -32602", "Error Handling", since=R2025_03_26),
        should("bad-argument", "answers missing parts of the request with -32602", "Error Handling", since=R2025_03_26),
        must("validate", "checks its input", "Security"),
        should(
            "relevance",
            "sorts suggestions by relevance",
            "Implementation Considerations",
            author="the handler makes the suggestions; their order is kept",
        ),
        must("rate-limit", "limits how often it completes", "Security", note=RATES),
    ),
)

LOGGING = area(
    "logging",
    "server/utilities/logging",
    (
        must("capability", "declares `logging` when it sends log messages", "Capabilities"),
        must("level", "sends only messages of the level asked for and above", "Setting Log Level"),
        must("levels", "knows the eight levels of syslog", "Log Levels"),
        should("bad-level", "answers an unknown level with -32602", "Error Handling"),
        must("silent", "sends no log messages for a request that named no level", "Per-request level", since=LATEST),
        must(
            "own-stream",
            "sends them on the stream of the request that named the level, and nowhere else",
            "Per-request level",
            since=LATEST,
        ),
        must(
            "no-secrets",
            "writes nothing into log messages by itself",
            "Security",
            note="what a handler logs is the author's; the runtime sends no message of its own",
        ),
        should("rate-limit", "limits how often it logs", "Implementation Considerations", note=RATES),
    ),
)

UTILITIES = (
    *area(
        "ping",
        "basic/utilities/ping",
        (must("answer", "answers ping with an empty result at once", "Behavior Requirements", until=LATEST_LEGACY),),
    ),
    *area(
        "cancel",
        "basic/utilities/cancellation",
        (
            should("stop", "stops the work of a cancelled request", "Behavior Requirements"),
            should("silence", "does not answer a cancelled request", "Behavior Requirements"),
            should("ignore", "ignores cancellations that are malformed or name no running request", "Error Handling"),
            must(
                "not-initialize", "does not let initialize be cancelled", "Behavior Requirements", until=LATEST_LEGACY
            ),
            must(
                "late",
                "survives a cancellation that arrives when the request has been answered",
                "Timing Considerations",
            ),
            should(
                "own-requests",
                "cancels its own requests when the call that they belong to was cancelled",
                "Behavior Requirements",
                until=LATEST_LEGACY,
            ),
            must(
                "only-listen",
                "sends `notifications/cancelled` for nothing but a listening stream",
                "Cancellation",
                since=LATEST,
            ),
        ),
    ),
    *area(
        "progress",
        "basic/utilities/progress",
        (
            must(
                "asked-for",
                "reports progress only of requests with a token, and with that token",
                "Behavior Requirements",
            ),
            must("token-types", "takes strings and integers as tokens", "Progress Flow"),
            must("increases", "reports only progress that grows", "Progress Flow"),
            must("stops", "reports nothing after the request was answered", "Implementation Notes"),
            should("message", "can say in words how far it is", "Progress Flow", since=R2025_03_26),
            should("rate-limit", "limits how often it reports", "Implementation Notes", note=RATES),
        ),
    ),
    *area(
        "pages",
        "server/utilities/pagination",
        (
            must("four-lists", "gives all four lists in pages when there is much", "Operations Supporting Pagination"),
            must("complete", "gives everything once, whoever follows the cursors", "Pagination Flow"),
            must("end", "gives no cursor with the last page", "Response Format"),
            should("invalid-cursor", "answers an unknown cursor with -32602", "Error Handling"),
            should("stable", "keeps cursors good while the list changes elsewhere", "Implementation Guidelines"),
        ),
    ),
    *area(
        "caching",
        "server/utilities/caching",
        (
            must(
                "hints", "says of all six cacheable results how long and for whom they may be kept", "Cacheable results"
            ),
            must("ttl", "gives a lifetime that is a whole number and not negative", "ttlMs"),
            must("scope", "gives `public` or `private`, and `private` unless told otherwise", "cacheScope"),
            must("pages", "gives the same scope on all pages of a list", "Pagination"),
            must("not-input-required", "gives no hints with a result that asks for input", "Cacheable results"),
        ),
        since=LATEST,
    ),
    *area(
        "caching",
        "server/utilities/caching",
        (must("absent-before", "gives none to revisions that have none", "Cacheable results", until=LATEST_LEGACY),),
    ),
    *area(
        "json-schema",
        "basic, JSON Schema Usage",
        (
            must("default-dialect", "reads schemas without `$schema` as 2020-12", "Schema Dialect", since=R2025_11_25),
            must(
                "unchanged",
                "lists schemas with every keyword that they were given",
                "Schema Dialect",
                since=R2025_11_25,
            ),
            must(
                "other-dialect",
                "says so when a schema is of a dialect that it does not support",
                "Schema Dialect",
                since=R2025_11_25,
                note="read are 2020-12, 2019-09, draft-07 and draft-06",
            ),
            must("no-fetch", "fetches no schema over the network", "References", since=LATEST),
            should(
                "unresolved",
                "refuses a schema whose reference leads nowhere",
                "References",
                since=LATEST,
            ),
            should("bounds", "bounds depth and time of validation", "Resource limits", since=LATEST),
        ),
    ),
)

ROWS = (*TOOLS, *FALLBACKS, *RESOURCES, *PROMPTS, *COMPLETION, *LOGGING, *UTILITIES)
