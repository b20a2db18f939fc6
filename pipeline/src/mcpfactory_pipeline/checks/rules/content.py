"""Rules about blocks of content in tool results, prompts and resources."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from xml.parsers import expat

from mcpfactory_pipeline.checks.evidence import Evidence, RecordedCall
from mcpfactory_pipeline.checks.exchange import (
    LATEST_HANDSHAKE,
    META_KEY,
    STRUCTURED,
    WireExchange,
    revision_defines_path,
)
from mcpfactory_pipeline.checks.message_schemas import result_errors
from mcpfactory_pipeline.checks.probes import foreign_content_kinds
from mcpfactory_pipeline.checks.rule import Fault, RuleOutcome, RuleSubjects, RuleTable, Scope, not_applicable
from mcpfactory_pipeline.checks.rules.modern import has_per_request_metadata
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome
from mcpfactory_pipeline.checks.samples import scalar_values

RULES: Final = RuleTable()
rule = RULES.rule
_OWN: Final = frozenset({"inputSchema", "outputSchema", "structuredContent"})
_BYTES: Final = ("image", "audio")
_MIME: Final = re.compile(r"[\w!#$&^.+*-]+/[\w!#$&^.+*-]+\s*(;|$)")  # type and subtype (RFC 6838 §4.2), parameters
# MIME type → first bytes, for formats with a fixed beginning.
_SIGNATURES: Final[dict[str, bytes]] = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/jpg": b"\xff\xd8\xff",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
    "audio/wav": b"RIFF",
    "audio/flac": b"fLaC",
    "audio/ogg": b"OggS",
    "application/pdf": b"%PDF-",
    "application/zip": b"PK",
}


@dataclass(frozen=True, slots=True)
class _Block:
    where: str
    value: Any
    exchange: WireExchange


def _blocks(evidence: Evidence) -> list[_Block]:
    found = [
        _Block(call.tool, block, call.exchange)
        for call in (*evidence.calls, *evidence.others, *evidence.further)
        for block in _list_in(call.exchange, "content")
    ]
    for prompt in _reads(evidence, "get-prompt"):
        messages = [one for one in _list_in(prompt, "messages") if isinstance(one, dict)]
        found += [_Block("prompts/get", message.get("content"), prompt) for message in messages]
    return [block for block in found if isinstance(block.value, dict)]


def _contents(evidence: Evidence) -> list[_Block]:
    found = [
        _Block(str(read.params.get("uri")), one, read)
        for read in _reads(evidence, "read-resource")
        for one in _list_in(read, "contents")
    ]
    found += [
        _Block(block.where, block.value.get("resource"), block.exchange)
        for block in _blocks(evidence)
        if block.value.get("type") == "resource"
    ]
    return [one for one in found if isinstance(one.value, dict)]


def _reads(evidence: Evidence, probe: str) -> list[WireExchange]:
    """Return the exchanges that read prompts or resources, the exchange of the probe first."""
    first = evidence.probes.get(probe)
    return [] if first is None else [first, *(one for one in evidence.later_reads if one.method == first.method)]


def _list_in(exchange: WireExchange, key: str) -> list[Any]:
    value = (exchange.result or {}).get(key)
    return value if isinstance(value, list) else []


def _each(choose: Callable[[Evidence], list[_Block]]) -> Scope[_Block]:
    """Return a scope of the chosen blocks, in which each place counts once."""

    def scope(evidence: Evidence) -> RuleSubjects[_Block] | RuleOutcome:
        if (reason := missing_lifecycle_outcome(evidence)) is not None:
            return reason
        blocks = choose(evidence)
        count = len({block.where for block in blocks})
        return RuleSubjects(blocks, count) if blocks else not_applicable("no such content was seen")

    return scope


def _older_calls(evidence: Evidence) -> RuleSubjects[RecordedCall] | RuleOutcome:
    if (reason := missing_lifecycle_outcome(evidence, "legacy")) is not None:
        return reason
    if not evidence.older:
        return not_applicable("no tool returned content whose type an older supported revision lacks")
    return RuleSubjects(evidence.older)


@rule("content.revision", 2, until=LATEST_HANDSHAKE, over=_older_calls,
      statement="In a session of an older protocol revision, tools return only content types of that revision.",
      source=("MCP basic/lifecycle, Operation: both sides should respect the negotiated version; schema, "
              "CallToolResult of that revision"),
      hint="send text that describes the content: clients of that revision refuse a result with other content types")  # fmt: skip
def _revision(call: RecordedCall) -> Iterator[Fault]:
    if foreign := foreign_content_kinds(call.exchange, call.title):
        words = f"the result has content of type {', '.join(foreign)}, which {call.title} does not have"
        yield Fault(words, call.tool, call.exchange)


_ENCODINGS: Final = ("utf-8", "cp1252", "latin-1")  # the required one, and those that systems use by default


@rule("content.encoding", 5, gate=True,
      statement=("The server decodes messages as UTF-8, not in another encoding. An answer that repeats a text without "
                 "change is enough evidence."),
      source="MCP basic/transports: JSON-RPC messages must be UTF-8 encoded",
      hint="decode stdin as UTF-8 explicitly; the default encoding depends on the system")  # fmt: skip
def _encoding(evidence: Evidence) -> RuleOutcome:
    made = [one for one in evidence.traffic if one.method == "tools/call" and one.received is not None]
    sent = ((one, text) for one in made for text in scalar_values(one.params.get("arguments")))
    unusual = [(one, text) for one, text in sent if isinstance(text, str) and not text.isascii()]
    if not unusual:
        return not_applicable("no call had a text that is not ASCII")
    repeated = [(encoding, one) for one, text in unusual for encoding in _encodings(text, one)]
    if "utf-8" in dict(repeated):  # some libraries misread texts only in their error messages
        return RuleOutcome()
    return RuleOutcome(
        tuple(Fault(f"a text in UTF-8 was read as {name}", _place(one), one) for name, one in repeated[:1])
    )


def _encodings(text: str, exchange: WireExchange) -> Iterator[str]:
    """Yield the encodings in which the answer repeats the UTF-8 bytes of a text."""
    answer = json.dumps(exchange.received, ensure_ascii=False)
    for encoding in _ENCODINGS:
        decoded = text.encode(errors="replace").decode(encoding, "replace")
        if json.dumps(decoded, ensure_ascii=False)[1:-1] in answer:
            yield encoding


def _keys(evidence: Evidence) -> RuleSubjects[tuple[str, WireExchange]] | RuleOutcome:
    """Return all metadata keys, each with the first exchange that contains it.

    Keys in schemas and structured content belong to the server, so they are skipped.
    """
    found: dict[str, WireExchange] = {}
    for exchange in evidence.traffic:
        for meta in _metadata(exchange.result):
            for key in meta:
                found.setdefault(key, exchange)
    return missing_lifecycle_outcome(evidence) or RuleSubjects(list(found.items()))


@rule("content.meta-keys", 1, since=STRUCTURED, over=_keys,
      statement="A metadata key is a name, or a prefix, a slash and a name. A prefix consists of labels with dots between them.",
      source=("MCP basic/index, _meta: names and labels begin and end with a letter or digit (no client reads keys "
              "that it does not know: severity 1)"),
      hint=("write example.com/name: use letters and digits, hyphens between them, and in names also "
            "dots and underscores"))  # fmt: skip
def _meta_key(found: tuple[str, WireExchange]) -> Iterator[Fault]:
    key, exchange = found
    if not META_KEY.fullmatch(key):
        yield Fault(f"the metadata key {key[:80]!r} is invalid", key[:80], exchange)


def _metadata(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from _metadata(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key == "_meta" and isinstance(one, dict):
                yield one
            elif key not in _OWN:
                yield from _metadata(one)


def _encoded(evidence: Evidence) -> list[_Block]:
    images = [block for block in _blocks(evidence) if block.value.get("type") in _BYTES]
    return [block for block in (*images, *_contents(evidence)) if _base64_of(block) is not None]


def _base64_of(block: _Block) -> str | None:
    text = block.value.get("blob", block.value.get("data"))
    return text if isinstance(text, str) else None


def _decoded(block: _Block) -> bytes | None:
    try:
        return base64.b64decode(_base64_of(block) or "", validate=True)
    except (binascii.Error, ValueError):
        return None


@rule("content.base64", 3, gate=True, over=_each(_encoded),
      statement="Images, audio and blobs are base64-encoded.",
      source="MCP schema: data and blob are base64-encoded (RFC 4648 §4, with padding)",
      hint="encode the bytes without a data: prefix, line breaks or the URL alphabet")  # fmt: skip
def _base64(block: _Block) -> Iterator[Fault]:
    if _decoded(block) is None:
        shown = (_base64_of(block) or "")[:40]
        yield Fault(f"the data is not valid base64: {shown!r}", block.where, block.exchange)


def _typed(evidence: Evidence) -> list[_Block]:
    texts = [block for block in _contents(evidence) if isinstance(block.value.get("text"), str)]
    return [*_encoded(evidence), *texts]


@rule("content.mime-syntax", 3, gate=True, over=_each(_blocks),
      statement="The mimeType of images and audio is a type and a subtype with a slash between them.",
      source="MCP server/prompts, Data Types: images and audio must include a valid MIME type; RFC 6838 §4.2",
      hint="write image/png instead of png")  # fmt: skip
def _mime_syntax(block: _Block) -> Iterator[Fault]:
    kind, mime = block.value.get("type"), block.value.get("mimeType")
    if kind in _BYTES and isinstance(mime, str) and not _MIME.match(mime.strip()):
        yield Fault(f"the mimeType of a block of type {kind} is {mime[:40]!r}", block.where, block.exchange)


@rule("content.mime-type", 3, over=_each(_typed),
      statement="Encoded bytes and resource texts match their declared MIME type.",
      source="MCP schema, mimeType; models and clients decode by it",
      hint="declare the type of the sent bytes, not of the original file")  # fmt: skip
def _mime(block: _Block) -> Iterator[Fault]:
    kind, text = block.value.get("mimeType"), block.value.get("text")
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else _decoded(block)
    essence = str(kind).partition(";")[0].strip().lower()
    signature = _SIGNATURES.get(essence)
    if data and signature and not data.startswith(signature):
        yield Fault(f"the bytes are not {kind}: they begin with {data[:8].hex(' ')}", block.where, block.exchange)
    elif data and (problem := _syntax_error(essence, data, "utf-8" if isinstance(text, str) else None)):
        yield Fault(f"the content is not {kind}: {problem}", block.where, block.exchange)


def _syntax_error(essence: str, data: bytes, encoding: str | None) -> str:
    """Return the syntax error of JSON or XML data; "" for valid data, and for other formats.

    `encoding` overrides the encoding in the XML declaration.
    """
    try:
        if essence == "application/json" or essence.endswith("+json"):
            json.loads(data.decode("utf-8-sig"))
        elif essence in ("application/xml", "text/xml") or essence.endswith("+xml"):
            expat.ParserCreate(encoding).Parse(data, True)
    except (ValueError, expat.ExpatError) as error:
        return str(error)
    except RecursionError:  # the data is valid, but nested too deeply for this parser
        pass
    return ""


def _structured(evidence: Evidence) -> list[_Block]:
    calls = (*evidence.calls, *evidence.others, *evidence.further)
    return [
        _Block(call.tool, call.exchange.result, call.exchange)
        for call in calls
        if call.exchange.result is not None and "structuredContent" in call.exchange.result
    ]


@rule("content.structured-object", 3, gate=True, since=STRUCTURED, over=_each(_structured),
      statement="In protocol revisions with a handshake, structuredContent is an object.",
      source="MCP server/tools, Structured Content; schema, CallToolResult",
      hint='wrap other values: {"result": …}')  # fmt: skip
def _object(block: _Block) -> Iterator[Fault]:
    value = block.value["structuredContent"]
    if not isinstance(value, dict) and not has_per_request_metadata(block.exchange):
        yield Fault(f"structuredContent is {type(value).__name__}, not an object", block.where, block.exchange)


@rule("content.structured-text", 1, since=STRUCTURED, over=_each(_structured),
      statement="The data in structuredContent also appears in content.",
      source="MCP server/tools, Structured Content: a tool should also return the serialized JSON in a text block",
      hint="add a text block with the JSON")  # fmt: skip
def _text(block: _Block) -> Iterator[Fault]:
    content = block.value.get("content")
    if isinstance(content, list) and not content and block.value["structuredContent"]:
        words = "structuredContent has data, but content is empty: clients that read only content show nothing"
        yield Fault(words, block.where, block.exchange)


def _results(evidence: Evidence) -> RuleSubjects[WireExchange] | RuleOutcome:
    # The rules about tasks check the answers to calls as tasks.
    made = (one for one in evidence.traffic if "task" not in one.params)
    found = [exchange for exchange in made if exchange.result is not None]
    return missing_lifecycle_outcome(evidence) or RuleSubjects(found, len({one.method for one in found}), once=True)


@rule("content.schema", 3, gate=True, over=_results,
      statement="Results match the schema of their method. Optional members are left out instead of null.",
      source="MCP schema: clients refuse a whole result because of one invalid member",
      hint="validate every result against the schema of the protocol, and leave out members without a value")  # fmt: skip
def _schema(exchange: WireExchange, evidence: Evidence) -> Iterator[Fault]:
    for path, problem in result_errors(exchange.method, exchange.result or {}):
        if revision_defines_path(path, evidence.revisions):
            yield Fault(f"{path} {problem}", _place(exchange), exchange)


def _place(exchange: WireExchange) -> str:
    return str(exchange.params.get("name") or exchange.params.get("uri") or exchange.method)


_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_READ: Final = ("content", "structuredContent", "contents", "messages")  # members of a result that models read


def _read_by_models(evidence: Evidence) -> RuleSubjects[WireExchange]:
    return RuleSubjects([one for one in evidence.traffic if one.result and not one.result.keys().isdisjoint(_READ)])


@rule("content.lone-surrogates", 3, gate=True, over=_read_by_models,
      statement=("No text for the model contains half of a character (a lone surrogate such as \\ud83d). After a call with "
                 "a character beyond U+FFFF, such as an emoji, the finding has severity 2 and closes no gate."),
      source="RFC 8259 §8.2: half a character has no predictable meaning; strict JSON parsers refuse the whole message",
      hint="cut texts at characters, not at UTF-16 units or bytes")  # fmt: skip
def _lone_surrogates(exchange: WireExchange) -> Iterator[Fault]:
    shown = [value for key, value in (exchange.result or {}).items() if key in _READ]
    sent = str(exchange.sent)
    if _SURROGATES.search(json.dumps(shown, ensure_ascii=False)) and not _SURROGATES.search(sent):
        words = "a text contains half of a character"
        yield Fault(words, _place(exchange), exchange, lesser=2 if max(sent) > "\uffff" else None)
