"""Healthy servers with a faulty HTTP transport."""

from __future__ import annotations

import threading
from collections import defaultdict

from tests.broken_servers.healthy import Json, SampleServer, text
from tests.broken_servers.input_requests import HealthyDemanding

# Name → the rule that must report it. The fault of the handler has the name of the rule, or the name after the colon.
CHANGES = {
    "Reboundable": "http.origin",
    "Lookalike": "http.origin:origin-begins",
    "Impostor": "http.origin:origin-ends",
    "Sandboxed": "http.origin:origin-null",
    "Rebound": "http.origin:origin-rebound",
    "Crossing": "http.request-ids",
    "Plain": "http.content-type",
    "Unaccepting": "http.notification-status",
    "Receipter": "http.notification-status:receipt",
    "Getter": "http.get",
    "Counting": "http.session-guess",
    "Reissuer": "http.session-guess:one-session",
    "Obedient": "http.session-guess:chosen-session",
    "Sweeper": "http.other-session",
    "Gapped": "http.session-id",
    "Sessionless": "http.no-session",
    "Hospitable": "http.unknown-session",
    "Undying": "http.deleted-session",
    "Timetraveller": "http.version-header",
    "Batcher": "http.no-batches",
    "Unreceipted": "legacy.batch-without-requests",
    "Methodless": "http.modern-method",
    "Misnamed": "http.modern-name",
    "Halfnamed": "http.modern-name:tool-names-only",
    "Unnamed": "http.modern-name:unnamed",
    "Plaintexter": "http.content-type:plain-calls",
    "Alright": "http.modern-status",
    "Sessional": "http.modern-session",
    "ModernGetter": "http.modern-get",
    "Rebindable": "http.host",
    "Headstrong": "http.version-missing",
    "Lingering": "http.stream-ends",
    "Diverter": "http.answer-beside-stream",
    "Restreamer": "http.answer-beside-stream:streamed-answers",
    "Megaphone": "http.one-stream",
    "Rerunner": "http.replayed-messages",
    "Unprimed": "http.priming-event",
    "Restarter": "http.event-ids",
    "Primer": "http.priming-event:primes",
    "Refuser": "http.modern-no-event-ids:last-event",
    "Decoder": "http.modern-header-base64:one-marker",
    "Responder": "http.modern-no-batches:response",
    "ModernReceipted": "http.modern-notification-status",
    "Gatherer": "http.modern-no-batches",
    "Unidentified": "http.modern-error-id",
    "Orthographer": "http.modern-header-names",
    "Padder": "http.modern-header-whitespace",
    "Shouter": "http.modern-header-values",
    "Literalist": "http.modern-header-base64",
    "Numberer": "http.modern-no-event-ids",
    "Buffered": "http.modern-buffering",
    "Unchallenging": "authorization.challenge",
    "Undescribed": "authorization.metadata",
    "Displaced": "authorization.metadata:resource",
    "Unissued": "authorization.metadata:issuers",
    "Gullible": "authorization.token",
    "Halfreader": "authorization.token:prefix",
}


class Served(SampleServer):
    """Base of servers that are validated by URL."""

    at_url = True


class Versionless(Served):
    """Serves requests without MCP-Protocol-Version, as a server with the handshake may do."""

    rule = "http.modern-version"
    amiss = frozenset({"modern-version"})
    tolerated = True


class Tattler(Served):
    """Shows each client the last words that any client sent."""

    rule = "http.client-data"
    follows = frozenset({"tool-calls.side-effects"})
    last = "nothing"

    def tools(self) -> list[Json]:
        words = {"type": "string", "description": "What to say."}
        schema = {"type": "object", "properties": {"words": words}, "required": ["words"]}
        echo = {"name": "echo", "description": "Say words back to the visitor, as the parrot of the zoo does."}
        return [*super().tools(), {**echo, "inputSchema": schema, "annotations": {"readOnlyHint": True}}]

    def call(self, name: str, arguments: Json) -> Json:
        if name == "echo":
            self.last = arguments["words"]
            return text(self.last)
        return text(f"waxing, says {self.last}") if name == "moon_phase" else super().call(name, arguments)


class CrossCanceler(Served):
    """Ends a call if any client cancels a request with the same id."""

    rule = "http.foreign-cancellation"

    def __init__(self, *revisions: list[str]) -> None:
        super().__init__(*revisions)
        self.canceled: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def tools(self) -> list[Json]:
        count = {"name": "count_animals", "description": "Count all animals of the zoo, which takes half a second."}
        hints = {"readOnlyHint": True}
        return [*super().tools(), {**count, "inputSchema": {"type": "object"}, "annotations": hints}]

    def call(self, name: str, arguments: Json) -> Json:
        return text("42") if name == "count_animals" else super().call(name, arguments)

    def respond(self, message: Json) -> Json | None:
        params = message.get("params", {})
        if message.get("method") == "notifications/cancelled":
            self.canceled[str(params["requestId"])].set()
        slow = isinstance(params, dict) and params.get("name") == "count_animals"
        if slow and self.canceled[str(message["id"])].wait(0.5):
            return None
        return super().respond(message)


class HealthyTagger(Served):
    """Repeats the arguments of a call; the schema has examples of them."""

    def tools(self) -> list[Json]:
        texts = {"name": "Ada Lovelace", "company": "Analytical Engines"}
        shown = {
            key: {"type": "string", "description": f"The {key}.", "examples": [text]} for key, text in texts.items()
        }
        shown["name"]["pattern"] = "^Ada"  # so that validate always sends the example
        schema = {"type": "object", "properties": shown, "required": list(shown)}
        tag = {"name": "format_tag", "description": "Return the lines of the name tag that a guest wears."}
        return [*super().tools(), {**tag, "inputSchema": schema, "annotations": {"readOnlyHint": True}}]

    def call(self, name: str, arguments: Json) -> Json:
        if name != "format_tag":
            return super().call(name, arguments)
        return text(f"{arguments['name']}\n{arguments['company']}")


class Unstatused(HealthyDemanding):
    """Refuses clients without a capability with status 200."""

    rule = "http.modern-status"
    at_url = True
    amiss = frozenset({"json"})


class HealthyLogger(Served):
    """Sends log messages on one of the GET streams of a session."""

    amiss = frozenset({"streams"})


class HealthyRegional(Served):
    """Routes calls by a header that repeats an argument."""

    def tools(self) -> list[Json]:
        region = {
            "type": "string",
            "description": "Where to look.",
            "enum": ["north", "south"],
            "x-mcp-header": "Region",
        }
        schema = {"type": "object", "properties": {"region": region}, "additionalProperties": False}
        count = {"name": "count_animals", "description": "Return the number of animals in a part of the zoo."}
        return [{**count, "inputSchema": schema, "annotations": {"readOnlyHint": True}}, *super().tools()]

    def accept(self, name: str, arguments: Json) -> Json | None:
        known = ("north", "south", None)
        wrong = name == "count_animals" and (arguments.get("region") not in known or {*arguments} - {"region"})
        return text("region is north or south", isError=True) if wrong else super().accept(name, arguments)

    def call(self, name: str, arguments: Json) -> Json:
        if name == "count_animals":
            return text({"north": "12", "south": "30"}.get(str(arguments.get("region")), "42"))
        return super().call(name, arguments)


class Misrouted(HealthyRegional):
    """Does not compare the header with the argument."""

    rule = "http.modern-arguments"
    amiss = frozenset({"modern-arguments"})


class Halfrouted(HealthyRegional):
    """Does not require the header."""

    rule = "http.modern-arguments"
    amiss = frozenset({"unrepeated"})


_KINDS = (
    Versionless,
    Unstatused,
    Tattler,
    CrossCanceler,
    HealthyTagger,
    HealthyLogger,
    HealthyRegional,
    Misrouted,
    Halfrouted,
)


def served() -> dict[str, type[SampleServer]]:
    """Return the servers of the table."""
    return {kind.__name__: kind for kind in _KINDS} | {
        name: _served(name, *rule.split(":")) for name, rule in CHANGES.items()
    }


def _served(name: str, rule: str, amiss: str = "") -> type[SampleServer]:
    wrong = frozenset({amiss or rule.partition(".")[2]})
    credentials = "Bearer key-of-the-zoo-1234567890" if rule.startswith("authorization.") else ""
    members = {"rule": rule, "amiss": wrong, "credentials": credentials, "__doc__": f"Breaks {rule}."}
    return type(name, (Served,), members)
