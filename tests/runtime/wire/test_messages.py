"""Envelope, ids, codes, metadata and result types on the wire of each revision."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from mcpfactory_runtime import Context, Server
from mcpfactory_runtime.protocol import connection, errors
from mcpfactory_runtime.protocol.errors import CODES, INVALID_REQUEST
from mcpfactory_runtime.revisions import LATEST, LATEST_LEGACY, LEGACY, REVISIONS, SUPPORTED, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import Json, dressed, request, speak
from tests.runtime.wire.revision_ranges import HANDSHAKES

pytestmark = pytest.mark.anyio

BATCHED = [revision for revision in REVISIONS.values() if revision.batches]
UNBATCHED = [revision for revision in REVISIONS.values() if not revision.batches]
ADD = {"name": "add", "arguments": {"a": 1}}

# what makes every kind of error that a client can cause
WRONG: list[tuple[str, Json]] = [
    ("tools/call", {"name": "nothing"}),
    ("tools/call", {"name": "add", "arguments": []}),
    ("tools/call", {"name": "greet", "arguments": {}}),
    ("tools/call", {"name": "unencodable"}),
    ("resources/read", {"uri": "memo://none"}),
    ("resources/read", {"uri": "memo://broken"}),
    ("resources/read", {"uri": 5}),
    ("prompts/get", {"name": "nothing"}),
    ("completion/complete", {}),
    ("tools/list", {"cursor": "x"}),
    ("nonsense", {}),
]


@requirement("message.id-types", "message.response-id")
async def test_ids_come_back_as_they_were(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for request_id in (0, 1, -7, 2**53, "", "x", "ü", "1"):
            await client.say(dressed(revision, request("tools/call", ADD, request_id)))
            answer = await client.answer(request_id)
            assert type(answer["id"]) is type(request_id)
            assert "result" in answer


@requirement("message.error-shape", "message.result-xor-error", "message.error-id")
async def test_errors_have_an_integer_code_a_message_and_the_requests_id(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for method, params in WRONG:
            message = client.make(method, params)
            await client.say(message)
            answer = await client.answer(message["id"])
            assert set(answer) == {"jsonrpc", "id", "error"}
            assert set(answer["error"]) <= {"code", "message", "data"}
            assert type(answer["error"]["code"]) is int
            assert isinstance(answer["error"]["message"], str)


@requirement("message.reserved-codes", "message.retired-codes")
async def test_no_code_of_the_reserved_range_means_anything_else() -> None:
    async with speak(sample, LATEST) as client:
        used = {await client.code(method, params) for method, params in WRONG}
    reserved = {code for code in used if -32099 <= code <= -32000}
    assert reserved == {errors.MISSING_CAPABILITY}
    defined = {errors.HEADER_MISMATCH, errors.MISSING_CAPABILITY, errors.UNSUPPORTED_VERSION}
    assert {code for code in CODES if -32099 <= code <= -32020} - {errors.URL_ELICITATION_REQUIRED} == defined


@requirement("message.unknown-members", "meta.unknown-keys")
async def test_members_and_metadata_that_nobody_knows_change_nothing(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        plain = await client.ask("tools/call", ADD)
        strange = client.make("tools/call", {**ADD, "later": {"a": 1}}, {"com.example/x": [1], "y": None, "": 5})
        await client.say({**strange, "extra": True})
        assert (await client.answer(strange["id"]))["result"] == plain["result"]


@requirement("message.utf-8")
async def test_text_of_every_script_survives(revision: Revision) -> None:
    topic = "ü – 水 – 𝄞 – \u2028"
    async with speak(sample, revision) as client:
        message = client.make("prompts/get", {"name": "ask_for", "arguments": {"topic": topic}})
        for line in (json.dumps(message), json.dumps(message, ensure_ascii=False)):
            await client.say(line.encode() + b"\n")
            answer = await client.answer(message["id"])
            assert topic in answer["result"]["messages"][0]["content"]["text"]


@requirement("meta.key-grammar")
def test_our_metadata_keys_follow_the_grammar() -> None:
    label = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
    grammar = re.compile(rf"^(?:{label}(?:\.{label})*/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$")
    keys = [value for name, value in vars(connection).items() if name.startswith("META_")]
    assert len(keys) >= 6
    assert [key for key in keys if not grammar.match(key)] == []


@requirement("meta.trace-context")
async def test_handlers_get_the_trace_context_as_it_came(revision: Revision) -> None:
    server = Server("traced")

    @server.tool
    async def traced(ctx: Context) -> str:
        """Tell."""
        return json.dumps([ctx.meta.get(name) for name in ("traceparent", "tracestate", "baggage")])

    sent = ["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "vendor=1", "user=ann"]
    async with speak(server, revision) as client:
        meta = dict(zip(("traceparent", "tracestate", "baggage"), sent, strict=True))
        result = await client.call("traced", meta=meta)
    assert json.loads(result["content"][0]["text"]) == sent


# every method that a client may request, with parameters that succeed
METHODS: dict[str, Json] = {
    "server/discover": {},
    "tools/list": {},
    "tools/call": ADD,
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "memo://today"},
    "resources/subscribe": {"uri": "memo://today"},
    "resources/unsubscribe": {"uri": "memo://today"},
    "prompts/list": {},
    "prompts/get": {"name": "ask_for", "arguments": {"topic": "t"}},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "ask_for"},
        "argument": {"name": "topic", "value": "t"},
    },
    "logging/setLevel": {"level": "error"},
    "ping": {},
}


def served(revision: Revision) -> list[str]:
    return [method for method in METHODS if method in revision.requests]


@requirement("result-type.every", "result-type.values", "result-type.absent-before", "meta.server-info")
async def test_results_carry_type_and_server_where_the_revision_wants_it(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for method in served(revision):
            result = (await client.ask(method, METHODS[method]))["result"]
            assert result.get("resultType") == ("complete" if revision.modern else None), method
            if revision.modern:
                assert result["_meta"][connection.META_SERVER]["name"] == "sample"


@requirement("caching.hints", "caching.ttl", "caching.scope", "caching.absent-before")
async def test_what_may_be_kept_says_how_long_and_for_whom(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        hinted = set()
        for method in served(revision):
            result = (await client.ask(method, METHODS[method]))["result"]
            if "ttlMs" in result or "cacheScope" in result:
                hinted.add(method)
                assert type(result["ttlMs"]) is int
                assert result["ttlMs"] >= 0
                assert result["cacheScope"] == "private"
    assert hinted == revision.cacheable


@requirement("caching.pages", "pages.four-lists", "pages.complete", "pages.end")
async def test_each_list_comes_in_pages_with_everything_once(revision: Revision) -> None:
    server = Server("long", page_size=2, ttl_ms=5, cache_scope="public")
    for number in range(5):
        server.tool(name=f"t{number}")(nothing)
        server.prompt(name=f"p{number}")(nothing)
        server.resource(f"a://{number}")(nothing)
        server.resource(f"b://{number}/{{x}}")(same)
    async with speak(server, revision) as client:
        for method, member, key in (
            ("tools/list", "tools", "name"),
            ("prompts/list", "prompts", "name"),
            ("resources/list", "resources", "uri"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ):
            seen, params, pages = [], dict[str, Any](), 0
            while True:
                result = (await client.ask(method, params))["result"]
                seen += [item[key] for item in result[member]]
                pages += 1
                assert result.get("cacheScope") == ("public" if revision.modern else None)
                if "nextCursor" not in result:
                    break
                params = {"cursor": result["nextCursor"]}
            assert (pages, len(seen), len(set(seen))) == (3, 5, 5)


async def nothing() -> str:
    """Do nothing."""
    return ""


async def same(x: str) -> str:
    """Give it back."""
    return x


@requirement("version.discover", "version.discover-all")
async def test_discovery_names_versions_and_capabilities() -> None:
    async with speak(sample, LATEST) as client:
        result = (await client.ask("server/discover"))["result"]
    assert result["supportedVersions"] == SUPPORTED
    assert set(result["supportedVersions"]) == set(REVISIONS)
    assert result["capabilities"]["tools"]
    assert result["instructions"] == "Be kind."


@requirement("version.lists-alike", "tools.order", "tools.list")
async def test_lists_are_the_same_for_everybody_and_every_time() -> None:
    seen = set()
    capabilities: Json
    for capabilities in ({}, {"sampling": {}}, {"elicitation": {"form": {}}, "roots": {}}):
        async with speak(sample, LATEST, **capabilities) as client:
            for _ in range(3):
                for method in ("tools/list", "prompts/list", "resources/list"):
                    seen.add(json.dumps((await client.ask(method))["result"]))
    assert len(seen) == 3


@requirement("version.per-request", "meta.no-memory")
async def test_each_request_is_served_as_it_says_and_no_earlier_one_helps() -> None:
    async with speak(sample, LATEST, elicitation={}, sampling={}, roots={}) as client:
        assert (await client.call("greet"))["resultType"] == "input_required"
        client.capabilities = {}
        assert await client.code("tools/call", {"name": "greet"}) == errors.MISSING_CAPABILITY


@requirement("initialize.quiet")
@pytest.mark.parametrize("revision", LEGACY.values(), ids=str)
async def test_the_server_says_nothing_of_its_own_before_it_may(revision: Revision) -> None:
    async with speak(sample, LATEST) as client:  # no handshake yet
        await client.say(request("initialize", {"protocolVersion": revision.name, "capabilities": {"roots": {}}}, "h"))
        await client.answer("h")
        await client.say(request("ping", None, "p"))
        await client.answer("p")
        assert client.heard == []


@requirement("message.params-object")
async def test_params_that_are_no_object_are_refused(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        params: Any
        for params in ([], "x", 5, True):
            await client.say({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": params})
            assert (await client.answer(5))["error"]["code"] == errors.INVALID_PARAMS


@requirement("initialize.malformed", "initialize.other-version", "initialize.latest-version")
async def test_a_version_that_nobody_knows_is_answered_with_the_newest_that_has_a_handshake() -> None:
    for asked in ("1999-01-01", "tomorrow", LATEST.name, ""):
        async with speak(sample, LATEST) as client:
            await client.say(request("initialize", {"protocolVersion": asked, "capabilities": {}}, "h"))
            assert (await client.answer("h"))["result"]["protocolVersion"] == LATEST_LEGACY.name
    async with speak(sample, LATEST) as client:
        await client.say(request("initialize", {"capabilities": {}}, "h"))
        assert (await client.answer("h"))["error"]["code"] == errors.INVALID_PARAMS


@requirement("initialize.not-in-batch", "batch.empty", "batch.partial", "batch.one-answer", "batch.accept")
@pytest.mark.parametrize("revision", BATCHED, ids=str)
async def test_a_batch_is_answered_as_one_though_parts_of_it_are_wrong(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        hello = request("initialize", {"protocolVersion": revision.name, "capabilities": {}}, 3)
        await client.say([request("ping", id=1), hello, request("nonsense", id=2), request("tools/call", ADD, 4)])
        answers = {answer["id"]: answer for answer in await client.hear()}
        assert set(answers) == {1, 2, 3, 4}
        assert answers[3]["error"]["code"] == INVALID_REQUEST
        assert answers[4]["result"]["content"][0]["text"] == "3"
        await client.say([])
        assert (await client.hear())["error"]["code"] == INVALID_REQUEST


@requirement("batch.responses", "batch.no-answer")
@pytest.mark.parametrize("revision", BATCHED, ids=str)
async def test_responses_may_come_in_a_batch(revision: Revision) -> None:
    server = Server("asking")

    @server.tool
    async def where(ctx: Context) -> str:
        """Ask."""
        return (await ctx.roots())[0].uri

    async with speak(server, revision, roots={}) as client:
        await client.say(*(request("tools/call", {"name": "where"}, name) for name in ("a", "b")))
        asked = [await client.hear(), await client.hear()]
        uris = {question["id"]: f"file:///{question['id']}" for question in asked}
        await client.say(
            [{"jsonrpc": "2.0", "id": number, "result": {"roots": [{"uri": uri}]}} for number, uri in uris.items()]
        )
        answers = [await client.hear(), await client.hear()]
        assert {answer["id"] for answer in answers} == {"a", "b"}
        assert {answer["result"]["content"][0]["text"] for answer in answers} == set(uris.values())
        assert await client.silence() == []


@requirement("batch.refused")
@pytest.mark.parametrize("revision", UNBATCHED, ids=str)
async def test_revisions_without_batches_refuse_them(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        await client.say([dressed(revision, request("tools/list"))])
        refused = await client.hear()
        assert refused["error"]["code"] == INVALID_REQUEST
        assert refused.get("id") is None


@requirement("ping.answer")
@HANDSHAKES
async def test_ping_is_answered_with_nothing(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        assert (await client.ask("ping"))["result"] == {}
        await client.say(dressed(revision, request("ping", {"_meta": {"progressToken": 1}}, "p")))
        assert await client.answer("p") == {"jsonrpc": "2.0", "id": "p", "result": {}}
