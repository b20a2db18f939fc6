"""Servers that differ from the healthy one in the response to one method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.broken_servers.healthy import VERSION, Json, RpcError, SampleServer, text

GIF = "R0lGODlhAQABAAAAADs="
Answer = Json | RpcError | Callable[[Json], Json]


class Change(NamedTuple):
    """Another response to `method`, for params that match `when`."""

    rule: str
    method: str
    answer: Answer
    when: Callable[[Json], bool] = lambda _params: True
    follows: tuple[str, ...] = ()


def modern(params: Json) -> bool:
    return VERSION in params.get("_meta", {})


def legacy(params: Json) -> bool:
    return not modern(params)


def of_moon(params: Json) -> bool:
    return params.get("name") == "moon_phase"


def block(**members: Any) -> Json:
    return {"content": [{"type": "text", "text": "waxing"}, members]}


def entry(kind: str, **members: Any) -> Json:
    """Return a list with one entry: that of the healthy server, with changed members."""
    healthy = {
        "resources": {"uri": "zoo://plan", "name": "plan", "mimeType": "text/plain"},
        "prompts": {"name": "tour", "arguments": [{"name": "who", "required": True}]},
        "resourceTemplates": {"uriTemplate": "zoo://{cage}", "name": "cage"},
    }
    return {kind: [{**healthy[kind], **members}]}


def read(**members: Any) -> Json:
    return {"contents": [{"uri": "zoo://plan", **members}]}


def said(role: str = "user", content: Any = None) -> Json:
    return {"messages": [{"role": role, "content": content or {"type": "text", "text": "Go."}}]}


def unknown(key: str) -> Callable[[Json], bool]:
    return lambda params: params.get(key) in ("mcpfactory_nothing", "mcpfactory://nothing/here", "loud")


def of_plan(params: Json) -> bool:
    return params.get("uri") == "zoo://plan"


def of_nothing(params: Json) -> bool:
    return params.get("ref", {}).get("name") == "mcpfactory_nothing"


def of_something(params: Json) -> bool:
    return "argument" in params and not of_nothing(params)


NEWER = ("audio", "resource_link")
OOPS = RpcError(-32603, "oops")
CALL, READ, GET, FILL = "tools/call", "resources/read", "prompts/get", "completion/complete"

# One change each; the name describes it.
CHANGES: dict[str, Change] = {
    # revisions and messages
    "YesMan": Change(
        "legacy.unknown-version",
        "initialize",
        lambda params: {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "zoo", "version": "1"}},
        lambda params: params.get("protocolVersion", "").startswith("1999"),
    ),
    "Guesser": Change(
        "legacy.incomplete-initialize",
        "initialize",
        lambda _params: {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "zoo", "version": "1"}},
        lambda params: "protocolVersion" not in params,
    ),
    "Purist": Change("legacy.unknown-members", "tools/list", RpcError(-32602, "what is that?"), lambda params: "mcpfactoryUnknown" in params),
    # resources
    "EmptyHanded": Change("features.unknown-resource", READ, {"contents": []}, unknown("uri")),
    "Untypical": Change("features.resource-uri", READ, read(text="five"), lambda params: params["uri"] == 5),
    "Unsubscribable": Change("features.subscribe", "resources/subscribe", RpcError(-32601, "no")),
    "Sticky": Change("features.unsubscribe", "resources/unsubscribe", RpcError(-32601, "no")),
    "Anonymiser": Change("content.schema", READ, {"contents": [{"text": "Lions."}]}, of_plan),
    "Blobber": Change("content.base64", READ, read(blob="no base64 at all!"), of_plan),
    "Wrapper": Change("content.base64", READ, read(blob="R0lGODlhAQABAAAAADs\n="), of_plan),
    "Mislabelled": Change("content.mime-type", READ, read(blob=GIF, mimeType="image/png"), of_plan),
    "Unparsed": Change("content.mime-type", READ, read(text="{not json", mimeType="application/json"), of_plan),
    "Unclosed": Change("content.mime-type", READ, read(text="<zoo><plan>", mimeType="image/svg+xml"), of_plan),
    "HealthyWriter": Change("", READ, read(text='<?xml version="1.0" encoding="utf-16"?><zoo/>', mimeType="text/xml"), of_plan),
    "NotAPdf": Change("content.mime-type", READ, read(blob=GIF, mimeType="application/pdf"), of_plan),
    "Unreadable": Change("lists.resources", "resources/list", OOPS),
    "Patternless": Change("lists.templates", "resources/templates/list", OOPS),
    "Entitled": Change("content.schema", "resources/list", entry("resources", title=5)),
    "Oversized": Change("content.schema", "resources/list", entry("resources", size=-1)),
    "Argumentative": Change("content.schema", "prompts/list", entry("prompts", arguments={"who": "text"})),
    "Relative": Change("lists.uris", "resources/list", {"resources": [{"uri": "plan.txt", "name": "plan"}]}),
    "Blank": Change("lists.uris", "resources/templates/list", entry("resourceTemplates", uriTemplate="zoo://a b/{cage}")),
    # prompts
    "Speechless": Change("features.prompt", GET, RpcError(-32601, "no such method"), lambda params: bool(params.get("arguments"))),
    "Messageless": Change("content.schema", GET, {"prompt": "Go."}, lambda params: bool(params.get("arguments"))),
    "Director": Change("content.schema", GET, said("system"), lambda params: bool(params.get("arguments"))),
    "PromptTeller": Change("features.unknown-prompt", GET, said(), unknown("name")),
    "Presuming": Change("features.prompt-arguments", GET, said(), lambda params: params["name"] == "tour" and not params["arguments"]),
    # completion and logging
    "Incomplete": Change("features.completion", FILL, OOPS, of_something),
    "Numeric": Change("content.schema", FILL, {"completion": {"values": [1, 2]}}, of_something),
    "Argumentless": Change("features.completion-argument", FILL, {"completion": {"values": ["Ada"]}}, lambda params: "argument" not in params),
    "Anachronist": Change("content.revision", CALL, block(type="resource_link", uri="zoo://plan", name="plan"), of_moon),
    "Underscorer": Change("content.meta-keys", CALL, text("waxing", _meta={"_zoo": 1}), of_moon),
    "Pathfinder": Change("content.meta-keys", CALL, text("waxing", _meta={"zoo/cage/lion": 1}), of_moon),
    "HealthyKeys": Change("", CALL, text("waxing", _meta={"a": 1, "zoo.example/a.b_c-d": 1, "x/": 1, "z-oo.e2/9": 1}), of_moon),
    "Finisher": Change("features.unknown-completion", FILL, {"completion": {"values": []}}, of_nothing),
    "Levelless": Change("features.log-level", "logging/setLevel", OOPS, lambda params: params["level"] == "emergency"),
    "Loud": Change("features.unknown-log-level", "logging/setLevel", {}, unknown("level")),
    # content of tool results
    "Innovator": Change("content.schema", CALL, block(type="hologram", data="x"), of_moon),
    "Suffixed": Change("content.mime-syntax", CALL, block(type="image", data=GIF, mimeType="gif"), of_moon),
    "Imageless": Change("content.schema", CALL, block(type="image", data=GIF), of_moon),
    "Soundless": Change("content.schema", CALL, block(type="audio", mimeType="audio/wav"), of_moon),
    "Bodiless": Change("content.schema", CALL, block(type="resource", resource={"uri": "zoo://plan"}), of_moon),
    "Urgent": Change("content.schema", CALL, block(type="text", text="!", annotations={"priority": 7}), of_moon),
    "Crowded": Change("content.schema", CALL, block(type="text", text="!", annotations={"audience": ["everyone"]}), of_moon),
    "Bare": Change("content.structured-object", CALL, text("waxing", structuredContent=["waxing"]), of_moon),
    "Telepath": Change("content.structured-text", CALL, {"content": [], "structuredContent": {"moon": "waxing"}}, of_moon),
    # errors of tools
    "HealthyTracker": Change("", CALL, text("Issue 12: TypeError: the moon is undefined"), of_moon),
    "HealthyPainter": Change("", CALL, text("TypeError: see the picture" + "." * 100_000), of_moon),
    "Formalist": Change("tool-calls.error-in-result", CALL, RpcError(-32603, "no moon tonight"), of_moon),
    "Inventive": Change("tool-calls.error-in-result", CALL, RpcError(-32000, "no moon tonight"), of_moon),
    "Credulous": Change("tool-calls.argument-validation", CALL, text("3", structuredContent={"sum": 3}), lambda params: params["name"] == "add" and "a" not in params["arguments"]),
    "Coercer": Change("tool-calls.argument-validation", CALL, text("0", structuredContent={"sum": 0}), lambda params: isinstance(params["arguments"].get("a"), dict)),
    "Panicker": Change("tool-calls.argument-errors", CALL, OOPS, lambda params: isinstance(params["arguments"].get("a"), dict)),
    "Monosyllabic": Change("tool-calls.argument-errors", CALL, text("", isError=True), lambda params: params["name"] == "add" and "a" not in params["arguments"]),
    # the per-request lifecycle
    "Nostalgic": Change("modern.removed-methods", "ping", {}, modern),
    "Inquirer": Change("modern.input-required", "prompts/list", {"resultType": "input_required", "requestState": "x"}, modern, ("lists.prompts",)),
    "Antiquarian": Change("modern.error-codes", READ, RpcError(-32002, "no such resource"), lambda params: modern(params) and unknown("uri")(params)),
    "Squatter": Change("modern.error-codes", GET, RpcError(-32050, "no such prompt"), lambda params: modern(params) and unknown("name")(params), ("features.unknown-prompt",)),
    # healthy but unusual: valid behavior of other servers
    "HealthyBriefNotFound": Change("", READ, RpcError(-32602, "no such resource"), unknown("uri")),
    "HealthyJson": Change("", READ, read(text='{"lions": "left"}', mimeType="application/json"), of_plan),
    "HealthyBlob": Change("", READ, read(blob=GIF, mimeType="image/gif"), of_plan),
    "HealthyUnknownBytes": Change("", READ, read(blob="AAECAw==", mimeType="application/x-zoo"), of_plan),
    "HealthyManyContents": Change("", READ, {"contents": [{"uri": "zoo://a", "text": ""}, {"uri": "zoo://b", "blob": ""}]}, of_plan),
    "HealthyUrn": Change("", "resources/templates/list", entry("resourceTemplates", uriTemplate="urn:zoo:{+cage}{?from,to}")),
    "HealthyPath": Change("", "resources/templates/list", entry("resourceTemplates", uriTemplate="file:///zoo/{path*}")),
    "HealthyAssistant": Change("", GET, said("assistant", {"type": "image", "data": GIF, "mimeType": "image/gif"}), lambda params: bool(params.get("arguments"))),
    "HealthySilentPrompt": Change("", GET, {"messages": [], "description": ""}, lambda params: bool(params.get("arguments"))),
    "HealthyNothingToComplete": Change("", FILL, {"completion": {"values": []}}, of_something),
    "HealthyStrict": Change("", CALL, RpcError(-32602, "a must be a number"), lambda params: params["name"] == "add" and type(params["arguments"].get("a")) not in (int, float)),
    "HealthyTerse": Change("", CALL, {"content": []}, of_moon),
    "HealthyGenerous": Change("", CALL, text("waxing", extra={"a": 1}, _meta={"zoo.example/x": None}), of_moon),
    "HealthyTitled": Change("", "prompts/list", entry("prompts", title="A tour", description="", icons=[{"src": "https://zoo.example/i.png", "sizes": ["48x48"]}])),
    "HealthyBig": Change("", "resources/list", entry("resources", size=5_000_000_000, description="")),
    "HealthyFreeLevels": Change("", "logging/setLevel", {"_meta": {}}, lambda params: params["level"] == "emergency"),
}  # fmt: skip

# Faults that appear only in the per-request lifecycle, so the server supports no other.
YOUNG = frozenset({"Inquirer", "Antiquarian", "Squatter"})


class Changed(SampleServer):
    """Base of servers with another response to one method."""

    change: Change
    young = False

    def handshake(self, method: str, params: Json) -> Json:
        if self.young:
            raise RpcError(-32602, "protocolVersion is missing in _meta")
        return self.changed(method, params, super().handshake)

    def per_request(self, method: str, params: Json) -> Json:
        return self.changed(method, params, super().per_request)

    def changed(self, method: str, params: Json, healthy: Callable[[str, Json], Json]) -> Json:
        answer = self.change.answer
        if method != self.change.method or not self.change.when(params):
            return healthy(method, params)
        if isinstance(answer, RpcError):
            raise answer
        result = answer(params) if callable(answer) else answer
        old = not modern(params) and self.agreed in self.handshakes[:2]  # their clients support no audio and no links
        if (
            old
            and self.rule != "content.revision"
            and any(one.get("type") in NEWER for one in result.get("content", []))
        ):
            return healthy(method, params)
        if not modern(params):
            return result
        envelope = self.envelope(method, result)
        return envelope | result | {"_meta": {**envelope["_meta"], **result.get("_meta", {})}}


def answering() -> dict[str, type[SampleServer]]:
    """Return the servers of the table."""
    return {
        name: type(
            name,
            (Changed,),
            {
                "rule": change.rule,
                "follows": frozenset(change.follows),
                "change": change,
                "young": name in YOUNG,
                "__doc__": f"Answers {change.method} otherwise.",
            },
        )
        for name, change in CHANGES.items()
    }
