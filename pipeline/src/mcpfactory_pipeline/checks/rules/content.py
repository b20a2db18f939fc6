"""Rules over blocks of content: of tool results, prompts and resources."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import LATEST_HANDSHAKE, STRUCTURED, WireExchange
from mcpfactory_pipeline.checks.probes import foreign_kinds
from mcpfactory_pipeline.checks.rule import Check, Fault, Rule, RuleOutcome, not_applicable, rule_outcome
from mcpfactory_pipeline.checks.rules.legacy import era_or_reason
from mcpfactory_pipeline.checks.rules.modern import is_modern
from mcpfactory_runtime.revisions import REVISIONS

_KNOWN: Final = frozenset(kind for revision in REVISIONS.values() for kind in revision.content)
_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_OWN: Final = frozenset({"inputSchema", "outputSchema", "structuredContent"})
_BYTES: Final = ("image", "audio")
# The first bytes of formats that begin in one way only, by MIME type.
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
        for call in (*evidence.calls, *evidence.others)
        for block in _list_in(call.exchange, "content")
    ]
    prompt = evidence.probes.get("get-prompt")
    if prompt is not None:
        messages = [one for one in _list_in(prompt, "messages") if isinstance(one, dict)]
        found += [_Block("prompts/get", message.get("content"), prompt) for message in messages]
    return [block for block in found if isinstance(block.value, dict)]


def _contents(evidence: Evidence) -> list[_Block]:
    """Contents of resources: those that were read, and those that are embedded in blocks."""
    read = evidence.probes.get("read-resource")
    found = [_Block("resources/read", one, read) for one in _list_in(read, "contents")] if read is not None else []
    found += [
        _Block(block.where, block.value.get("resource"), block.exchange)
        for block in _blocks(evidence)
        if block.value.get("type") == "resource"
    ]
    return [one for one in found if isinstance(one.value, dict)]


def _list_in(exchange: WireExchange, key: str) -> list[Any]:
    value = (exchange.result or {}).get(key)
    return value if isinstance(value, list) else []


def _over(choose: Callable[[Evidence], list[_Block]], find: Callable[[_Block], Iterator[Fault]]) -> Check:
    def check(evidence: Evidence) -> RuleOutcome:
        if (reason := era_or_reason(evidence)) is not None:
            return reason
        blocks = choose(evidence)
        if not blocks:
            return not_applicable("no such content was seen")
        return rule_outcome(
            len({block.where for block in blocks}), (fault for block in blocks for fault in find(block))
        )

    return check


def _type_faults(block: _Block) -> Iterator[Fault]:
    kind = block.value.get("type")
    if isinstance(kind, str) and kind not in _KNOWN:
        known = ", ".join(sorted(_KNOWN))
        yield Fault(f"a block has the unknown type {kind!r}; known types: {known}", block.where, block.exchange)


def _member_faults(block: _Block) -> Iterator[Fault]:
    needed = {"image": ("data", "mimeType"), "audio": ("data", "mimeType"), "resource_link": ("uri", "name")}
    kind = block.value.get("type")
    lost = [key for key in needed.get(str(kind), ()) if not isinstance(block.value.get(key), str)]
    if lost:
        yield Fault(f"a block of type {kind} has no {' and no '.join(lost)}", block.where, block.exchange)
    resource = block.value.get("resource")
    if kind == "resource" and not isinstance(resource, dict):
        yield Fault("a block of type resource has no resource", block.where, block.exchange)


def _resource_faults(block: _Block) -> Iterator[Fault]:
    if not isinstance(block.value.get("uri"), str):
        yield Fault("the contents of a resource have no uri", block.where, block.exchange)
    elif not isinstance(block.value.get("text"), str) and not isinstance(block.value.get("blob"), str):
        yield Fault("the contents of a resource have neither text nor blob", block.where, block.exchange)


def _encoded(evidence: Evidence) -> list[_Block]:
    images = [block for block in _blocks(evidence) if block.value.get("type") in _BYTES]
    return [block for block in (*images, *_contents(evidence)) if _base64_of(block) is not None]


def _base64_of(block: _Block) -> str | None:
    text = block.value.get("blob", block.value.get("data"))
    return text if isinstance(text, str) else None


def _decoded(block: _Block) -> bytes | None:
    """Return the bytes of a block, or None if its data is not base64 (RFC 4648 §4)."""
    try:
        return base64.b64decode(_base64_of(block) or "", validate=True)
    except (binascii.Error, ValueError):
        return None


def _base64_faults(block: _Block) -> Iterator[Fault]:
    if _decoded(block) is None:
        shown = (_base64_of(block) or "")[:40]
        yield Fault(f"the data is not valid base64: {shown!r}", block.where, block.exchange)


def _mime_faults(block: _Block) -> Iterator[Fault]:
    kind, data = block.value.get("mimeType"), _decoded(block)
    signature = _SIGNATURES.get(str(kind).partition(";")[0].strip().lower())
    if data and signature and not data.startswith(signature):
        yield Fault(f"the bytes are not {kind}: they begin with {data[:8].hex(' ')}", block.where, block.exchange)


def _annotation_faults(block: _Block) -> Iterator[Fault]:
    found = block.value.get("annotations")
    if found is None:
        return
    priority = found.get("priority") if isinstance(found, dict) else None
    audience = found.get("audience") if isinstance(found, dict) else None
    if not isinstance(found, dict):
        yield Fault("the annotations of a block are not an object", block.where, block.exchange)
    elif priority is not None and not (isinstance(priority, int | float) and 0 <= priority <= 1):
        yield Fault(f"priority is {priority!r}, not a number from 0 to 1", block.where, block.exchange)
    elif audience is not None and not (isinstance(audience, list) and set(map(str, audience)) <= {"user", "assistant"}):
        yield Fault(f"audience is {audience!r}, not a list of user and assistant", block.where, block.exchange)


def _structured(evidence: Evidence) -> list[_Block]:
    calls = (*evidence.calls, *evidence.others)
    return [
        _Block(call.tool, call.exchange.result, call.exchange)
        for call in calls
        if call.exchange.result is not None and "structuredContent" in call.exchange.result
    ]


def _object_faults(block: _Block) -> Iterator[Fault]:
    value = block.value["structuredContent"]
    if not isinstance(value, dict) and not is_modern(block.exchange):
        yield Fault(f"structuredContent is {type(value).__name__}, not an object", block.where, block.exchange)


def _text_faults(block: _Block) -> Iterator[Fault]:
    content = block.value.get("content")
    if isinstance(content, list) and not content and block.value["structuredContent"]:
        words = "structuredContent has something to say, and content is empty: models of clients without it see nothing"
        yield Fault(words, block.where, block.exchange)


def _revision(evidence: Evidence) -> RuleOutcome:
    if (reason := era_or_reason(evidence, "legacy")) is not None:
        return reason
    if not evidence.older:
        return not_applicable("no tool returned content that an older revision of the server does not have")
    faults = (
        Fault(
            f"the result has content of type {', '.join(foreign)}, which {call.title} does not have",
            call.tool,
            call.exchange,
        )
        for call in evidence.older
        if (foreign := foreign_kinds(call.exchange, call.title))
    )
    return rule_outcome(len(evidence.older), faults)


def _meta_keys(evidence: Evidence) -> RuleOutcome:
    """Keys of metadata wherever the protocol has metadata; schemas and structured content are the server's own."""
    if (reason := era_or_reason(evidence)) is not None:
        return reason
    found = [
        (key, exchange)
        for exchange in evidence.traffic
        if exchange.result is not None
        for meta in _metadata(exchange.result)
        for key in meta
    ]
    wrong = {key: exchange for key, exchange in reversed(found) if not _KEY.fullmatch(key)}
    faults = (Fault(f"the metadata key {key[:80]!r} is invalid", key[:80], exchange) for key, exchange in wrong.items())
    return rule_outcome(len({key for key, _ in found}), faults)


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


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="content.revision", severity=2, until=LATEST_HANDSHAKE, check=_revision,
        statement="In a session of an older protocol revision, tools return only content types of that revision.",
        source=("MCP basic/lifecycle, Operation: both sides should respect the negotiated version; schema, "
                "CallToolResult of that revision"),
        hint="send text that describes the content: clients of that revision refuse the whole result",
    ),
    Rule(
        id="content.meta-keys", severity=1, since=STRUCTURED, check=_meta_keys,
        statement="A metadata key is a name, optionally after a prefix: labels with dots between them, and a slash.",
        source=("MCP basic/index, _meta: names and labels begin and end with a letter or digit (no client reads keys "
                "that it does not know: it weighs 1)"),
        hint=("write example.com/name: use letters and digits, hyphens between them, and in names also dots and "
              "underscores"),
    ),
    Rule(
        id="content.types", severity=3, gate=True, check=_over(_blocks, _type_faults),
        statement="Content blocks have a type that the protocol defines.",
        source="MCP schema, ContentBlock: clients refuse a result with a block that they cannot read",
        hint="send text, or a resource with its MIME type",
    ),
    Rule(
        id="content.members", severity=3, gate=True, check=_over(_blocks, _member_faults),
        statement=("Content blocks have the fields that their type requires: data and mimeType, uri and name, or a "
                   "resource."),
        source="MCP schema, ImageContent, AudioContent, ResourceLink, EmbeddedResource",
        hint="add the missing fields: clients refuse the whole result if one block lacks them",
    ),
    Rule(
        id="content.resources", severity=3, gate=True, check=_over(_contents, _resource_faults),
        statement="Contents of resources have a uri, and text or blob.",
        source="MCP schema, TextResourceContents and BlobResourceContents",
        hint="set uri in each entry of contents",
    ),
    Rule(
        id="content.base64", severity=3, gate=True, check=_over(_encoded, _base64_faults),
        statement="Images, audio and blobs are base64-encoded.",
        source="MCP schema: data and blob are base64-encoded (RFC 4648 §4, with padding)",
        hint="encode the bytes without a data: prefix, line breaks or the URL alphabet",
    ),
    Rule(
        id="content.mime", severity=3, check=_over(_encoded, _mime_faults),
        statement="Encoded bytes match their declared MIME type.",
        source="MCP schema, mimeType; models and clients decode by it",
        hint="declare the type of the bytes that are sent, not that of the file that they came from",
    ),
    Rule(
        id="content.annotations", severity=3, gate=True, check=_over(_blocks, _annotation_faults),
        statement=("Annotations of a block are an object, with a priority from 0 to 1 and an audience of user and "
                   "assistant."),
        source="MCP schema, Annotations",
        hint="leave them out, or write them as the schema says",
    ),
    Rule(
        id="content.structured-object", severity=3, gate=True, check=_over(_structured, _object_faults),
        statement="In protocol revisions with a handshake, structuredContent is an object.",
        source="MCP server/tools, Structured Content; schema, CallToolResult",
        hint='wrap other values: {"result": …}', since=STRUCTURED,
    ),
    Rule(
        id="content.structured-text", severity=1, since=STRUCTURED, check=_over(_structured, _text_faults),
        statement="The data in structuredContent also appears in content.",
        source="MCP server/tools, Structured Content: a tool should also return the serialized JSON in a text block",
        hint="add a text block with the JSON",
    ),
)  # fmt: skip
