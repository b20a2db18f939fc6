"""stdio, Streamable HTTP of every revision, and the HTTP+SSE transport of the first."""

from __future__ import annotations

from mcpfactory_runtime.revisions import (
    LATEST,
    LATEST_LEGACY,
    R2024_11_05,
    R2025_03_26,
    R2025_06_18,
    R2025_11_25,
)
from tests.runtime.requirements.model import area, must, should

STDIO = area(
    "stdio",
    "basic/transports, stdio",
    (
        must("one-line", "writes each message on one line", ""),
        must(
            "only-messages", "writes nothing but messages to its output, whatever handlers and their children print", ""
        ),
        must("wrong-line", "answers a line that is no message, and reads on", ""),
        must("interleave", "answers requests as they finish, not in their order", ""),
        should(
            "end-of-input", "ends within the drain time after its input ended, though handlers still run", "Shutdown"
        ),
        should("drain", "answers what was asked before the input ended", "Shutdown"),
        should("signals", "ends on SIGTERM and SIGINT", "Shutdown"),
        must("no-requests", "writes no requests", "", since=LATEST),
        must("cancelled-silence", "sends nothing more for a request that was cancelled", "Cancellation", since=LATEST),
    ),
    on=("stdio",),
)

ORIGIN = area(
    "origin",
    "basic/transports, Security Warning",
    (
        must("validated", "serves no request that a web page of another site sent", ""),
        must("status", "refuses it with 403", "", since=R2025_11_25),
        must("first", "looks at the origin before anything else", ""),
        should("loopback", "listens on the loopback address only, unless told otherwise", ""),
        should("host", "serves no request that is addressed to another host name", ""),
        should("authentication", "can demand credentials for every connection", ""),
    ),
    on=("http",),
)

POST = area(
    "http",
    "basic/transports, Sending Messages to the Server",
    (
        must("one-endpoint", "has one endpoint for POST and GET", "", until=LATEST_LEGACY),
        must("accepted", "answers notifications and responses with 202 and no body", "", until=LATEST_LEGACY),
        must("not-accepted", "answers input that it cannot take with an HTTP error", ""),
        must("single", "takes exactly one message in a POST", "", since=R2025_06_18),
        must("request", "answers a request with JSON or with an event stream", ""),
        should("stream-has-response", "ends up with the response on the stream of its request", ""),
        should("stream-ends", "ends the stream after the response", ""),
        should("stream-related", "sends on that stream what belongs to the request", ""),
        should("no-early-end", "does not end the stream before the response", "", until=R2025_06_18),
        should("disconnect", "does not take a broken connection for a cancellation", "", until=LATEST_LEGACY),
    ),
    since=R2025_03_26,
    on=("http",),
)

GET = area(
    "http-get",
    "basic/transports, Listening for Messages from the Server",
    (
        must("stream", "answers GET with an event stream, or with 405", ""),
        should("unrelated", "sends there what belongs to no running request", ""),
        must("no-responses", "sends no response there, unless an earlier stream is resumed", ""),
        must("one-stream", "sends each message on one stream only", "Multiple Connections"),
    ),
    since=R2025_03_26,
    until=LATEST_LEGACY,
    on=("http",),
)

RESUME = area(
    "resume",
    "basic/transports, Resumability and Redelivery",
    (
        must("ids", "gives events ids that are unique in the session", ""),
        must("replay", "sends after Last-Event-ID what came after it on that stream", ""),
        must("own-stream", "replays nothing of other streams", ""),
        should("ids-name-stream", "lets an event id say which stream it belongs to", "", since=R2025_11_25),
        should("durable", "keeps events so that a client can resume after the process was replaced", ""),
    ),
    since=R2025_03_26,
    until=LATEST_LEGACY,
    on=("http",),
)

POLLING = area(
    "polling",
    "basic/transports, Sending Messages to the Server",
    (
        should("primed", "begins a stream with an event that has an id and no data", ""),
        must("early-end", "ends a stream before its response only after an event with an id", ""),
        should("retry", "says how long to wait before it ends the connection", ""),
        should(
            "not-before",
            "primes no stream of a revision whose clients do not expect it",
            "",
            since=R2025_03_26,
            until=R2025_06_18,
        ),
    ),
    since=R2025_11_25,
    until=R2025_11_25,
    on=("http",),
)

SESSIONS = area(
    "session",
    "basic/transports, Session Management",
    (
        must("begun", "gives the session's id with the answer to initialize, and only when that succeeded", ""),
        must("ascii", "makes ids of visible ASCII letters", ""),
        should("unguessable", "makes ids that cannot be guessed", ""),
        should("missing", "answers a request without session id with 400", ""),
        must("ended", "answers a request in an ended or unknown session with 404", ""),
        should("delete", "ends a session on DELETE", ""),
        must("foreign", "does not serve a session to others than those who began it", ""),
    ),
    since=R2025_03_26,
    until=LATEST_LEGACY,
    on=("http",),
)

VERSION_HEADER = area(
    "version-header",
    "basic/transports, Protocol Version Header",
    (
        must("unsupported", "answers an unknown MCP-Protocol-Version with 400", ""),
        should("missing", "takes a missing header for the version of the session", "", until=LATEST_LEGACY),
        should("mismatch", "refuses a header that is not the version of the session", "", until=LATEST_LEGACY),
    ),
    since=R2025_06_18,
    on=("http",),
)

MODERN = area(
    "http-modern",
    "basic/transports/streamable-http",
    (
        must(
            "single",
            "takes exactly one request or notification in a POST, no response and no array",
            "Sending Messages",
        ),
        must("notification", "answers a notification with 202 and no body", "Sending Messages"),
        must("no-requests", "sends no requests on the stream of a response", "Receiving Responses"),
        must("related", "sends on that stream only notifications that belong to its request", "Receiving Responses"),
        should("stream-ends", "ends the stream with the response", "Receiving Responses"),
        should("no-buffering", "asks proxies not to hold the stream back", "Receiving Responses"),
        must("disconnect", "takes a closed stream for a cancellation and says no more", "Cancellation"),
        must("no-resume", "gives events no ids and ignores Last-Event-ID", "Receiving Responses"),
        must("get-delete", "answers GET and DELETE with 405", "Backward Compatibility"),
        must("no-sessions", "ignores session ids and gives none", "Backward Compatibility"),
        must(
            "version-missing",
            "refuses a request without MCP-Protocol-Version with 400 and -32020",
            "Protocol Version Header",
        ),
        must(
            "version-mismatch",
            "refuses one whose header and metadata differ with 400 and -32020",
            "Protocol Version Header",
        ),
        must(
            "version-unsupported",
            "refuses a version that it does not serve with 400 and -32022",
            "Protocol Version Header",
        ),
        must("unknown-method", "answers a method that it does not have with 404 and -32601", "Protocol Version Header"),
        must("error-id", "repeats the request's id in the body of a refusal", "Protocol Version Header"),
        must(
            "mcp-method",
            "refuses a request whose Mcp-Method is missing or is not its method",
            "Standard Request Headers",
        ),
        must(
            "mcp-name",
            "refuses a request whose Mcp-Name is missing or is not its name or URI",
            "Standard Request Headers",
        ),
        must("encoded-name", "decodes a name that travels as base64", "Value Encoding"),
        must(
            "markers",
            "takes a value without both markers literally, and refuses broken base64 between them",
            "Value Encoding",
        ),
        must("header-case", "compares header names without case and values with it", "Case Sensitivity"),
        must("header-space", "takes blanks around a value for no part of it", "Case Sensitivity"),
    ),
    since=LATEST,
    on=("http",),
)

PARAM_HEADERS = area(
    "param-header",
    "basic/transports/streamable-http, Custom Headers from Tool Parameters",
    (
        must("missing", "refuses a call whose mirrored argument has no header", "Server Behavior"),
        must("mismatch", "refuses a call whose header is not its argument", "Server Behavior"),
        must("invalid", "refuses a header that is not decodable", "Server Behavior"),
        must("absent", "expects no header for an argument that is null or not there", "Server Behavior"),
        must("status", "refuses with 400 and -32020", "Server Behavior"),
        must("decoded", "decodes base64 before it compares", "Value Encoding"),
        should("numeric", "compares integers as numbers", "Server Behavior"),
        must("unknown", "ignores Mcp-Param headers that no argument of the tool is mirrored in", "Server Behavior"),
        must("reachable", "honours annotations that are reached by properties alone", "Schema Extension"),
        must("types", "honours annotations of strings, integers and booleans only", "Schema Extension"),
        must("names", "honours annotations that are header names and unique in their tool", "Schema Extension"),
        must(
            "definition",
            "lists no tool with an annotation that breaks these rules",
            "Schema Extension",
            note="such a tool is refused when it is made",
        ),
    ),
    since=LATEST,
    on=("http",),
)

HTTP_SSE = area(
    "http-sse",
    "basic/transports, HTTP with SSE",
    (
        must("endpoints", "has an endpoint for the event stream and one for posted messages", ""),
        must("endpoint-event", "sends an `endpoint` event with the URI for posts first", ""),
        must("messages", "sends its messages as `message` events", ""),
        must("origin", "serves no request that a web page of another site sent", ""),
        should("beside", "serves it beside the Streamable HTTP endpoint", "Backwards Compatibility"),
    ),
    since=R2024_11_05,
    until=R2024_11_05,
    on=("http+sse",),
)

ROWS = (
    *STDIO,
    *ORIGIN,
    *POST,
    *GET,
    *RESUME,
    *POLLING,
    *SESSIONS,
    *VERSION_HEADER,
    *MODERN,
    *PARAM_HEADERS,
    *HTTP_SSE,
)
