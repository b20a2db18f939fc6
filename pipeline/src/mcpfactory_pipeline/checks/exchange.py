"""Exchanges with a validated server: target, protocol revisions, request params, and recorded messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from mcpfactory_pipeline.base.errors import PipelineError
from mcpfactory_runtime.errors import Exit
from mcpfactory_runtime.revisions import (
    LATEST,
    LATEST_LEGACY,
    LEGACY,
    MODERN,
    R2025_03_26,
    R2025_06_18,
    R2025_11_25,
    REVISIONS,
)
from mcpfactory_runtime.types import Json
from mcpfactory_runtime.urls import split_web_url

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+=[\x20-\x7e]*")  # name and value (RFC 9110 §5)


class ValidationTargetError(PipelineError):
    """Error for an invalid validation target."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class ValidationTarget:
    """One MCP server in any language, started by command (stdio) or reached by URL (Streamable HTTP).

    `command` is a list of arguments, never shell text. `cwd` is the server's working directory. `environ` extends the
    minimal environment that each validated server gets. The server does not get the caller's environment, because the
    server is not trusted yet.

    `cases` is the path of a generated `cases.json`. With `cases`, every tool is called against a stub API.
    `api_timeout` is the server's API timeout in seconds while the stub API fails. `package` is the folder of the
    sources, if they may be read. `wheel` was built from the sources; a second build must give an equal wheel.
    `isolation` has the stage settings that isolate the second build.

    `limits` has the resource limits from policy, with the names in `gates.COST_GATES`; an empty mapping means no
    limits. `examples` is the path of a file with calls for a foreign server ([{"tool": …, "arguments": {…}}, …]). If
    `allow_calls` is set, tools without `readOnlyHint` are also called, with guessed arguments. `drift` lists the
    differences from the adopted server; None means that the server was not adopted. `drift_offer` is the hash of the
    server's current offer. `headers` are sent with every request to a URL.
    """

    command: tuple[str, ...] | None = None
    url: str | None = None
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    cases: Path | None = None
    package: Path | None = None
    wheel: Path | None = None
    api_timeout: float = 1.5
    limits: Mapping[str, float] = field(default_factory=dict)
    isolation: Mapping[str, object] = field(default_factory=dict)
    examples: Path | None = None
    allow_calls: bool = False
    drift: tuple[str, ...] | None = None
    drift_offer: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.command is None) == (self.url is None):
            raise ValidationTargetError(
                "a target must be either a command or a URL", hint="give exactly one of --command and --url"
            )
        if self.command is not None and not self.command:
            raise ValidationTargetError("the command is empty", hint="pass --command 'python -m my_server'")
        if self.url is not None and split_web_url(self.url) is None:
            raise ValidationTargetError(
                f"{self.url!r} is not an http or https URL", hint="use a URL such as --url http://127.0.0.1:8000/mcp"
            )
        for name, value in self.headers.items():
            if self.url is None or not _HEADER.fullmatch(f"{name}={value}"):
                why = "headers require --url" if self.url is None else "a name or value has invalid characters"
                raise ValidationTargetError(
                    f"the header {name!r} cannot be sent: {why}",
                    hint="use --url URL --header 'Authorization=Bearer TOKEN'",
                )
        if self.url is not None and self.cases is not None:
            raise ValidationTargetError(
                "cases cannot be used with --url: a server at a URL does not call the simulated API",
                hint="use --command instead of --url, or leave out the cases",
            )

    @property
    def name(self) -> str:
        """Return the server's name for the report: the command line or the URL."""
        return self.url if self.url is not None else " ".join(self.command or ())


HANDSHAKES: Final = tuple(sorted(LEGACY))
MODERNS: Final = tuple(sorted(MODERN))
LATEST_HANDSHAKE: Final = LATEST_LEGACY.name
FIRST_MODERN: Final = min(MODERNS)  # oldest revision with the per-request lifecycle
LATEST_MODERN: Final = max(MODERNS)  # newest revision, which is tried first
STRUCTURED: Final = R2025_06_18.name  # first revision with outputSchema and structuredContent
COMPLETIONS: Final = R2025_03_26.name  # first revision with the capability `completions`; the method is older
STREAMABLE: Final = R2025_03_26.name  # first revision with the Streamable HTTP transport
DIALECT: Final = R2025_11_25.name  # first revision that defines the default JSON Schema dialect
TASKS: Final = R2025_11_25.name  # the only revision with tasks; later, tasks are an extension
# Member of a result → first revision that defines it.
_MEMBERS: Final = {
    "annotations": R2025_03_26.name,
    "title": R2025_06_18.name,
    "icons": R2025_11_25.name,
    "execution": TASKS,
    "tasks": TASKS,
}
BATCHED: Final = frozenset(name for name, revision in REVISIONS.items() if revision.batches)
CACHEABLE: Final = LATEST.cacheable

NEEDS_CREDENTIALS: Final = 401  # HTTP status
CREDENTIALS: Final = "the server needs credentials (--header 'Authorization=Bearer TOKEN', or --oauth-client-id ID)"
_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# Key of metadata, and name of an extension (basic/index, _meta): an optional prefix with a slash, and a name.
META_KEY: Final = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
META: Final = "io.modelcontextprotocol/"
VERSION: Final = META + "protocolVersion"
CAPABILITIES: Final = META + "clientCapabilities"
LOG_LEVEL: Final = META + "logLevel"


def revision_defines_member(name: str, revisions: Sequence[str]) -> bool:
    """Return True if the newest of the given revisions defines this member of a list entry.

    In revisions without the member, any value is valid.
    """
    return max(revisions, default=LATEST_MODERN) >= _MEMBERS.get(name, "")


def revision_defines_path(path: str, revisions: Sequence[str]) -> bool:
    """Return True if the newest of the given revisions defines all members of a dotted path."""
    return all(revision_defines_member(name, revisions) for name in path.split("."))


def initialize_params(
    revision: str = LATEST_HANDSHAKE, capabilities: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the params of an `initialize` request from a client with the given capabilities."""
    info = {"name": "mcpfactory-validate", "version": "1"}
    return {"protocolVersion": revision, "capabilities": dict(capabilities), "clientInfo": info}


def per_request_meta(version: str = LATEST_MODERN) -> dict[str, Any]:
    """Return the `_meta` of a per-request message (basic/index, Per-request metadata)."""
    return {VERSION: version, CAPABILITIES: {}, META + "clientInfo": {"name": "mcpfactory-validate", "version": "1"}}


NOT_SENT: Final = "not sent, because the server had ended"  # `WireExchange.problem`
QUICK: Final = 1_000  # milliseconds; only quicker calls are compared
BIG_INTEGERS: Final = (2**53, 2**53 + 1)  # two arguments that become equal as floating-point numbers
TRIM: Final = 2_000  # maximum characters of a message in a report
MAX_DEPTH: Final = 200  # maximum nesting of accepted messages, to protect recursive functions


@dataclass(frozen=True, slots=True)
class WireExchange:
    """A request and its answer.

    `sent` is a JSON-RPC message, or raw text for an intentionally invalid message. `received` is the complete JSON-RPC
    answer; if it is None, `problem` has the reason ("no answer within 5 s"). `status` is the HTTP status; 0 on stdio.
    If `sent` was a batch, `more` has the further answers. `separate` is True if the answers to a batch arrived one by
    one. `media_type` is the media type of the HTTP response; "" on stdio.
    """

    sent: Json | str
    received: Json | None = None
    problem: str = ""
    status: int = 0
    milliseconds: int = 0
    more: tuple[Json, ...] = ()
    separate: bool = False
    media_type: str = ""

    @property
    def method(self) -> str:
        """The method of the request; "" for an invalid request."""
        return str(self.sent.get("method", "")) if isinstance(self.sent, dict) else ""

    @property
    def params(self) -> Json:
        """The params of the request; {} if they are not an object."""
        params = self.sent.get("params") if isinstance(self.sent, dict) else None
        return params if isinstance(params, dict) else {}

    @property
    def server_ended(self) -> bool:
        """Return True if the server ended, or stopped reading, instead of answering (stdio)."""
        return self.problem.startswith("the server ")

    @property
    def error(self) -> Json | None:
        """The JSON-RPC error object of the answer, or None."""
        error = (self.received or {}).get("error")
        return error if isinstance(error, dict) else None

    @property
    def code(self) -> int | None:
        """The JSON-RPC error code of the answer, or None."""
        code = (self.error or {}).get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def result(self) -> Json | None:
        """The JSON-RPC result of the answer, or None if the result is not an object."""
        result = (self.received or {}).get("result")
        return result if isinstance(result, dict) else None

    @property
    def content(self) -> Json | None:
        """Return the result without its metadata, or None if the answer has no result."""
        return None if self.result is None else {key: one for key, one in self.result.items() if key != "_meta"}

    @property
    def failed(self) -> bool:
        """Return True if a tool call got an error result or no result."""
        return self.result is None or self.result.get("isError") is True

    @property
    def id_echoed(self) -> bool:
        """Return True if the answer has the id of the request, with the same type."""
        if self.received is None or isinstance(self.sent, str):
            return True
        sent, back = self.sent.get("id"), self.received.get("id")
        return type(sent) is type(back) and sent == back

    @property
    def outcome(self) -> Any:
        """Return the parts of the answer that models or programs use; equal calls must have equal parts."""
        if self.result is None:
            return self.error or self.problem
        return [self.failed, *(self.result.get(key) for key in ("content", "structuredContent"))]

    def to_json(self, secrets: Mapping[str, str]) -> Json:
        """Return the exchange in the format of reports: shortened, and with masked `secrets` (name → value)."""
        shown: Json = {"request": trim_message(mask_secrets(self.sent, secrets))}
        if self.received is not None:
            shown["response"] = trim_message(
                mask_secrets([self.received, *self.more] if self.more else self.received, secrets)
            )
        if self.status:
            shown["status"] = self.status
        if self.problem:
            shown["problem"] = mask_secrets(self.problem, secrets)
        return shown


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of a result as models receive it."""
    blocks = result.get("content")
    found = blocks if isinstance(blocks, list) else []
    return "\n".join(str(block["text"]) for block in found if isinstance(block, dict) and "text" in block)


def is_nested_deeper(value: Any, levels: int) -> bool:
    """Return True if the lists and objects in `value` are nested deeper than `levels`."""
    level = [value]
    for _ in range(levels + 1):
        level = [child for item in level for child in _children(item)]
        if not level:
            return False
    return True


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def mask_secrets(value: Any, secrets: Mapping[str, str]) -> Any:
    """Return `value` with the name of each secret instead of its value, in keys and strings at any depth."""
    if isinstance(value, str):
        for name, secret in secrets.items():
            value = value.replace(secret, f"[{name}]")
        return value
    if isinstance(value, list):
        return [mask_secrets(item, secrets) for item in value]
    if isinstance(value, dict):
        return {mask_secrets(key, secrets): mask_secrets(item, secrets) for key, item in value.items()}
    return value


def trim_message(message: Any) -> Any:
    """Shorten a long message, and state the number of omitted characters."""
    text = message if isinstance(message, str) else json.dumps(message, ensure_ascii=False)
    if len(text) <= TRIM:
        return message
    return f"{text[:TRIM]}… ({len(text) - TRIM} characters more)"
