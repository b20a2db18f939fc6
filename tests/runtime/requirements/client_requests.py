"""Requests of a server to its client, in both lifecycles, and notifications."""

from __future__ import annotations

from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, R2025_06_18, R2025_11_25
from tests.runtime.requirements.model import area, must, should

SAMPLING = area(
    "sampling",
    "client/sampling",
    (
        must("declared", "asks for samples only clients that declared `sampling`", "Capabilities"),
        must("ask", "sends messages and the most tokens, and reads role, content and model", "Creating Messages"),
        must(
            "tools-declared",
            "sends tools only to clients that declared `sampling.tools`",
            "Tool Use",
            since=R2025_11_25,
        ),
        should(
            "context-declared",
            "asks for context only clients that declared `sampling.context`",
            "Capabilities",
            since=R2025_11_25,
        ),
        must("no-tools-before", "sends no tools in revisions that have none", "Creating Messages", until=R2025_06_18),
        must(
            "refused",
            "gives the handler the client's error when the user refused",
            "Error Handling",
            until=LATEST_LEGACY,
        ),
        must("malformed", "refuses an answer without content", "Message Content"),
        must(
            "tool-results",
            "answers each tool use with its result, in a message with nothing else",
            "Tool Use",
            since=R2025_11_25,
            author="the handler writes the conversation",
        ),
    ),
)

ROOTS = area(
    "roots",
    "client/roots",
    (
        should("declared", "asks only clients that declared `roots`", "Implementation Guidelines"),
        must("list", "reads the roots of the client", "Listing Roots"),
        should("unavailable", "gives the handler an error when they cannot be had", "Error Handling"),
        must("changed", "takes the client's notice that they changed", "Root List Changes", until=LATEST_LEGACY),
        should(
            "boundaries",
            "keeps within the roots",
            "Security Considerations",
            author="only the handler knows which paths it touches",
        ),
    ),
)

ELICITATION = area(
    "elicitation",
    "client/elicitation",
    (
        must("declared", "asks only clients that declared `elicitation`", "Capabilities"),
        must("mode-declared", "asks only in modes that the client declared", "Capabilities", since=R2025_11_25),
        must("empty-is-form", "takes an empty capability for forms only", "Capabilities", since=R2025_11_25),
        must("form", "sends a message and a flat schema of primitive fields", "Form Mode"),
        must("flat", "refuses to send a form with nested fields", "Form Mode"),
        must("default", "sends defaults of fields", "Form Mode", since=R2025_11_25),
        must(
            "no-default",
            "sends none but those of booleans to revisions that have none",
            "Requested Schema",
            until=R2025_06_18,
        ),
        must("enum", "sends choices as an enum, with titles as enumNames", "Requested Schema", until=R2025_06_18),
        must("titled-enum", "sends titled choices and choices of several", "Form Mode", since=R2025_11_25),
        must(
            "no-multi",
            "refuses to ask for several choices where the revision cannot",
            "Requested Schema",
            until=R2025_06_18,
        ),
        must("actions", "tells accept, decline and cancel apart", "Response Actions"),
        should("validated", "checks the answer against the form", "Security Considerations"),
        must("url", "sends a page's address with mode `url`", "URL Mode", since=R2025_11_25),
        must("url-id", "and with an id", "URL Mode", since=R2025_11_25, until=R2025_11_25),
        must("url-no-id", "and without an id", "URL Mode", since=LATEST),
        must("url-valid", "sends only addresses that are URLs", "URL Mode", since=R2025_11_25),
        must(
            "url-absent",
            "asks nobody to visit a page in revisions that have no such mode",
            "Capabilities",
            until=R2025_06_18,
        ),
        must("no-secrets", "asks for no secrets in forms", "Form Mode", author="the handler chooses the fields"),
        must("identity", "binds what it asks to the client and the user", "Safe URL Handling", since=R2025_11_25),
    ),
    since=R2025_06_18,
)

MRTR = area(
    "input-required",
    "basic/patterns/mrtr",
    (
        must("instead", "asks by the result of the request, never by a request of its own", "Overview"),
        must("methods", "does so for tools/call, prompts/get and resources/read only", "Supported requests"),
        must("shape", "sends requests or a state, or both", "Server Requirements"),
        must(
            "request-kinds",
            "sends elicitation, sampling and roots requests only, under unique keys",
            "Server Requirements",
        ),
        must("declared", "sends only requests that the client declared", "Server Requirements"),
        must("integrity", "refuses a state that was tampered with", "Server Requirements"),
        should("principal", "binds the state to who was asked", "Server Requirements"),
        should("expiry", "binds the state to a time", "Server Requirements"),
        should("request", "binds the state to method and parameters", "Server Requirements"),
        must("any-process", "goes on in any process with the same key", "Overview"),
        must("no-retry", "keeps nothing in memory for a client that never comes back", "Server Requirements"),
        should("malformed", "refuses answers that are no object, or do not fit", "Error Handling"),
        should("extra", "ignores answers that it did not ask for", "Error Handling"),
        should("missing", "asks again for answers that are missing", "Error Handling"),
        must("repeat", "takes the repeated request under another id", "Client Requirements"),
        must("several", "can ask several things at once, and again in a later round", "Overview"),
    ),
    since=LATEST,
)

LISTEN = area(
    "listen",
    "basic/patterns/subscriptions",
    (
        must(
            "acknowledged",
            "acknowledges the stream first, with the part of the filter that it honours",
            "Acknowledgement",
        ),
        must("only-wanted", "sends only kinds of notifications that were asked for", "Filter"),
        must("tagged", "marks each with the id of the request", "Notifications"),
        must("resources", "tells of updates of the resources that were named", "Filter"),
        must("several", "keeps several streams apart", "Multiple subscriptions"),
        must("no-listen-no-news", "tells clients that do not listen nothing", "Overview"),
        should("graceful-end", "ends the stream with a result when the server ends", "Ending"),
        should("malformed", "refuses a malformed filter with -32602", "Filter"),
    ),
    since=LATEST,
)

ROWS = (*SAMPLING, *ROOTS, *ELICITATION, *MRTR, *LISTEN)
