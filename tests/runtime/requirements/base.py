"""Messages, lifecycle, versioning and batches."""

from __future__ import annotations

from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_03_26, R2025_06_18
from tests.runtime.requirements.model import area, must, should

MESSAGES = area(
    "message",
    "basic",
    (
        must("id-types", "takes strings and integers as request ids and gives them back unchanged", "Requests"),
        must("id-null", "refuses a request whose id is null", "Requests"),
        must("id-other", "refuses a request whose id is a boolean, a fraction, a list or an object", "Requests"),
        must("id-in-flight", "refuses a request whose id belongs to another request that is still running", "Requests"),
        must("response-id", "gives every response the id of its request", "Responses"),
        must("result-xor-error", "puts either a result or an error into a response, never both", "Responses"),
        must("error-shape", "gives every error an integer code and a message", "Error Responses"),
        must(
            "error-id",
            "gives an error the id of its request wherever the request had a readable one",
            "Error Responses",
        ),
        must(
            "error-without-id",
            "writes an error for an unreadable request as the revision's schema wants it: with a null id, or without",
            "Error Responses",
        ),
        must("notification-silence", "never answers a notification, not even a wrong one", "Notifications"),
        must("notification-no-id", "sends notifications without an id", "Notifications"),
        must("response-silence", "never answers a response, not even one to a request that nobody made", "Responses"),
        must("utf-8", "reads and writes UTF-8, and refuses bytes that are not", "Transports"),
        must("not-json", "answers text that is not JSON with -32700", "Error Codes"),
        must("not-json-rpc", "answers JSON that is not a JSON-RPC 2.0 message with -32600", "Error Codes"),
        must("params-object", "answers params that are no object with -32602", "Error Codes"),
        must("unknown-method", "answers a method that the revision does not have with -32601", "Error Codes"),
        must(
            "internal-error", "answers failures of its own with -32603 and tells nothing of its inside", "Error Codes"
        ),
        must(
            "reserved-codes",
            "uses no code of the range reserved for the protocol but those that the revision defines, in their meaning",
            "Error Codes",
            since=LATEST,
        ),
        must("retired-codes", "no longer emits the codes -32002 and -32042", "Error Codes", since=LATEST),
        should(
            "own-codes",
            "keeps error codes of its own outside -32768 to -32000",
            "Error Codes",
            since=LATEST,
            author="a handler chooses the code of the McpError that it raises; the reference says the range",
        ),
        must("schema", "says nothing that the revision's schema does not allow", "Schema"),
        must("unknown-members", "takes requests with members that it does not know", "General fields"),
    ),
)

META = area(
    "meta",
    "basic, _meta",
    (
        must("unknown-keys", "assumes nothing about metadata keys that it does not know", ""),
        must(
            "key-grammar", "names its own metadata keys by the grammar: labels, a slash, a name", "", since=R2025_06_18
        ),
        must(
            "required-keys",
            "refuses a request without protocol version or client capabilities in its metadata with -32602",
            "Request metadata",
            since=LATEST,
        ),
        must("required-keys-status", "and with HTTP status 400", "Request metadata", since=LATEST, on=("http",)),
        must(
            "undeclared-capability",
            "refuses with -32021 and data.requiredCapabilities what needs a client capability that was not declared",
            "Client capabilities",
            since=LATEST,
        ),
        must(
            "undeclared-capability-status",
            "and with HTTP status 400",
            "Client capabilities",
            since=LATEST,
            on=("http",),
        ),
        must(
            "no-memory",
            "takes version, identity and capabilities of a client from each request, never from an earlier one",
            "Statelessness",
            since=LATEST,
        ),
        should("server-info", "names itself in the metadata of every result", "Result metadata", since=LATEST),
        must(
            "subscription-id",
            "marks everything on a listening stream with the id of the request that opened it",
            "Subscription id",
            since=LATEST,
        ),
        must("trace-context", "hands trace context on as it came", "Trace context", since=LATEST),
    ),
)

RESULTS = area(
    "result-type",
    "basic, Responses",
    (
        must("every", "puts resultType into every result", "", since=LATEST),
        must("values", "uses only the values of the core and of extensions that both sides declared", "", since=LATEST),
        must("absent-before", "puts no resultType into results of revisions that have none", "", until=LATEST_LEGACY),
    ),
)

HANDSHAKE = area(
    "initialize",
    "basic/lifecycle, Initialization",
    (
        must("answer", "answers initialize with version, capabilities and its name", ""),
        must("same-version", "agrees to the version asked for when it speaks it", "Version Negotiation"),
        must(
            "other-version",
            "answers with a version that it speaks when it does not speak the one asked for",
            "Version Negotiation",
        ),
        should("latest-version", "and that is the newest that has a handshake", "Version Negotiation"),
        should("malformed", "answers an initialize without a usable version with -32602", "Error Handling"),
        must("first", "serves no other request than ping before initialize", ""),
        must("ping-before", "answers ping before initialize", ""),
        should("quiet", "sends no request of its own before it was told `notifications/initialized`", ""),
        must(
            "offer",
            "offers a capability for each feature that it has, and none that it has not",
            "Capability Negotiation",
        ),
        must("respect-capabilities", "uses only client features that were declared", "Operation"),
        must("respect-version", "sends only what the agreed version knows", "Operation"),
        must("not-in-batch", "refuses initialize inside a batch", "", since=R2025_03_26, until=R2025_03_26),
        should(
            "request-timeouts",
            "gives requests to the client a time limit and cancels those that exceed it",
            "Timeouts",
            note="an hour unless the server says otherwise",
        ),
    ),
    until=LATEST_LEGACY,
)

VERSIONING = area(
    "version",
    "basic/versioning",
    (
        must("discover", "answers server/discover with its versions and capabilities", "Discovery"),
        must("discover-all", "names every version that it would serve", "Discovery"),
        must(
            "unsupported",
            "refuses a version that it does not serve with -32022, data.supported and data.requested",
            "Unsupported versions",
        ),
        must("unsupported-status", "and with HTTP status 400", "Unsupported versions", on=("http",)),
        must("per-request", "serves each request in the version that it names", "Per-request metadata"),
        must(
            "handshake-beside",
            "serves initialize beside it, with everything that the handshake's version has",
            "Backward Compatibility",
        ),
        must(
            "modern-after-handshake",
            "serves requests with metadata on a stream that began with a handshake",
            "Backward Compatibility",
            on=("stdio",),
        ),
        must(
            "handshake-after-probe",
            "serves initialize after a request with metadata, served or refused",
            "Backward Compatibility",
            on=("stdio",),
        ),
        must("same-endpoint", "serves both lifecycles on one endpoint", "Backward Compatibility", on=("http",)),
        must(
            "no-cross-talk",
            "keeps the two lifecycles apart: nothing of the one shows in the other's answers",
            "Backward Compatibility",
        ),
        must("retired-methods", "answers methods that the version no longer has with -32601", "Methods"),
        must("lists-alike", "lists the same for every connection with the same authorization", "Statelessness"),
        must("extensions-off", "offers no extension to clients that did not declare it", "Extensions"),
    ),
    since=LATEST,
)

BATCHES = area(
    "batch",
    "basic, Batching",
    (
        must("accept", "takes an array of requests and notifications", ""),
        must("one-answer", "answers all requests of a batch in one array, in any order", ""),
        must("no-answer", "answers nothing to a batch without requests", ""),
        must("http-202", "answers a posted batch without requests with 202 and no body", "", on=("http",)),
        must("responses", "takes an array of responses", ""),
        must("partial", "answers the good requests of a batch though others are wrong", ""),
        must("empty", "refuses an empty array with -32600", ""),
    ),
    since=R2025_03_26,
    until=R2025_03_26,
)

NO_BATCHES = area(
    "batch",
    "basic/transports, Sending Messages to the Server",
    (must("refused", "refuses arrays in revisions that have none", "", since=R2025_06_18),),
)

ROWS = (*MESSAGES, *META, *RESULTS, *HANDSHAKE, *VERSIONING, *BATCHES, *NO_BATCHES)
