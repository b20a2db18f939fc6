"""An HTTP response → what the model sees, as a pure function.

response                     result
JSON object                  structured content, and the same as compact JSON text
other JSON                   structured content {"result": value} (an object in every revision), and the value as text
text, XML, YAML, forms       text, in the charset that the response names
image/*, audio/*             an image or audio block
anything else                an embedded resource
nothing                      a sentence with the status (and Location, ETag and the like)
300 to 399                   ToolError that names the other host: redirects are not followed
400 and above                ToolError: operation, status, the API's own message, Retry-After, what to do next
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.results import Audio, Content, EmbeddedBlob, Image, Text, ToolResult

from .encoding import is_json, media_type
from .operation import Operation

__all__ = ["MAX_TEXT", "read_response"]

MAX_TEXT: Final = 1_000_000  # characters of one response that a model is given
_MAX_MESSAGE: Final = 2_000
_TEXT_TYPES: Final = re.compile(
    r"text/|application/([\w.-]+\+)?(xml|yaml|x-yaml|javascript|x-www-form-urlencoded|graphql|sql|toml|csv|x-?ndjson|jsonl)\b"
    r"|application/(x-jsonlines|json-seq|jwt)|.*\+(xml|yaml)$"
)
_CONTROL: Final = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(127, 160)])
_TELLING: Final = ("location", "etag", "last-modified", "content-type", "content-length", "link", "retry-after")

_HINTS: Final[dict[int, str]] = {
    400: "correct the arguments and call again.",
    401: "the API does not accept the server's credentials; the person who runs the server checks its environment variables.",
    403: "the server's credentials do not permit this; another tool, or other permissions, are needed.",
    404: "check the identifiers in the arguments, for instance with a tool that lists or searches.",
    405: "the API does not offer this operation here; use another tool.",
    409: "the resource is in another state than expected; read it first, then call again.",
    410: "the resource is gone for good.",
    412: "the resource has changed; read it again, then call again.",
    413: "send less.",
    422: "correct the arguments and call again.",
    429: "the API limits its rate; wait before the next call, and make fewer.",
}


def read_response(
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    operation: Operation,
    *,
    cut: bool = False,
    max_text: int = MAX_TEXT,
) -> ToolResult:
    """Turn a response into a tool result.

    Args:
        status: the HTTP status.
        headers: by lower-case name.
        content: the body after decompression.
        operation: what was called, for messages.
        cut: the body was longer than `content`.
        max_text: characters of text at most; what goes beyond is cut, and the result says so.

    Raises:
        ToolError: for status 300 and above, and for binary content that is too long.
    """
    if status >= 400:
        raise ToolError(_failure(status, headers, content, operation))
    if status >= 300 and status != 304:
        raise ToolError(_redirect(status, headers, operation))
    kind = media_type(headers.get("content-type", ""))
    if not content:
        return ToolResult([Text(_empty(status, headers, operation))])
    if is_json(kind) or (not kind and content.lstrip()[:1] in (b"{", b"[")):
        return _json(content, headers, cut, max_text)
    if not kind or _TEXT_TYPES.match(kind):
        return ToolResult([Text(_cut_text(_decode(content, headers), headers, cut, max_text))])
    if cut:
        raise ToolError(
            f"{_name(operation)} answered with {kind} of more than {len(content):,} bytes, which is too much."
        )
    return ToolResult([_binary(content, kind, operation)])


def _name(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def _reason(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


# --- success ---


def _empty(status: int, headers: Mapping[str, str], operation: Operation) -> str:
    names = _TELLING if operation.method == "HEAD" else ("location", "etag")
    told = [f"{name}: {headers[name]}" for name in names if name in headers]
    return f"{_reason(status)}, no content." + "".join(f"\n{line}" for line in told)


def _json(content: bytes, headers: Mapping[str, str], cut: bool, max_text: int) -> ToolResult:
    try:
        value = json.loads(_decode(content, headers, controls=True), parse_constant=_no_constant)
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
        if not _encodable(text):  # half a surrogate pair, which no message can carry
            text = text.encode("utf-8", "replace").decode("utf-8")
            value = json.loads(text)
    except (ValueError, RecursionError):
        return ToolResult([Text(_cut_text(_decode(content, headers), headers, cut, max_text))], is_error=cut)
    if len(text) > max_text:  # no structured content either: half of it would be wrong
        return ToolResult([Text(_cut_text(text, headers, cut, max_text))], is_error=True)
    return ToolResult([Text(text)], structured=value if isinstance(value, dict) else {"result": value})


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _decode(content: bytes, headers: Mapping[str, str], *, controls: bool = False) -> str:
    """Bytes as text. Control characters go, save tab and line ends, unless `controls`."""
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", headers.get("content-type", ""), re.IGNORECASE)
    try:
        text = content.decode(found[1] if found else "utf-8", "replace")
    except (LookupError, ValueError):  # a charset that Python does not know
        text = content.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    return text if controls else text.translate(_CONTROL)


def _cut_text(text: str, headers: Mapping[str, str], cut: bool, max_text: int) -> str:
    if len(text) <= max_text and not cut:
        return text
    length = headers.get("content-length", "") if "content-encoding" not in headers else ""
    whole = f"{int(length):,} bytes" if length.isdecimal() else f"{'more than ' * cut}{len(text):,} characters"
    shown = text[:max_text]
    return (
        f"{shown}\n\n[Cut: this is the first {len(shown):,} characters of a response of {whole}. "
        "Ask for less, for instance by paging, filters or a choice of fields.]"
    )


def _binary(content: bytes, kind: str, operation: Operation) -> Content:
    if kind.startswith("image/"):
        return Image(content, kind)
    if kind.startswith("audio/"):
        return Audio(content, kind)
    return EmbeddedBlob(f"upstream://response{quote(operation.path)}", content, kind)


# --- failure ---


def _redirect(status: int, headers: Mapping[str, str], operation: Operation) -> str:
    target = urlsplit(headers.get("location", "")).netloc.rpartition("@")[2]
    where = f"to {target}" if target else "to another path of the same host"
    return (
        f"{_name(operation)} answered {_reason(status)}: a redirect {where}, which is not followed.\n"
        "hint: the person who runs this server sets MCPFACTORY_BASE_URL to the address that answers, if it is to be trusted."
    )


def _failure(status: int, headers: Mapping[str, str], content: bytes, operation: Operation) -> str:
    phrase = _reason(status).partition(" ")[2]
    sentences = dict.fromkeys(one.strip() for one in _messages(content, headers))
    told = "; ".join(one for one in sentences if one and one.lower() != phrase.lower())
    told = told if len(told) <= _MAX_MESSAGE else f"{told[:_MAX_MESSAGE]}… ({len(told):,} characters)"
    lines = [f"{_name(operation)} failed: {_reason(status)}" + (f": {told}" if told else ".")]
    after = headers.get("retry-after", "").strip()
    if after:
        lines.append(f"Retry-After: {after} seconds" if after.isdecimal() else f"Retry-After: {after[:60]}")
    hint = _HINTS.get(status) or ("the API itself failed; try again later." if status >= 500 else "")
    return "\n".join([*lines, *([f"hint: {hint}"] if hint else [])])


def _messages(content: bytes, headers: Mapping[str, str]) -> Iterator[str]:
    """What the API says about its failure: the usual members of JSON errors, or else the text."""
    kind = media_type(headers.get("content-type", ""))
    text = _decode(content[: 16 * _MAX_MESSAGE], headers)
    if is_json(kind) or text.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            yield text
        else:
            found = list(_from_json(value))
            yield from found or [
                json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace").decode()
            ]
    elif "html" in kind:
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        yield unescape(re.sub(r"<[^>]+>|\s+", " ", title[1] if title else text))[:300]
    elif not kind or _TEXT_TYPES.match(kind):
        yield text


_SPOKEN: Final = (
    "title",
    "detail",
    "message",
    "msg",
    "error_description",
    "description",
    "reason",
    "error",
    "errors",
    "details",
)


def _from_json(value: Any, depth: int = 0) -> Iterator[str]:
    """The sentences of an error: RFC 9457 (title, detail, errors), OAuth, and the members that most APIs use."""
    if isinstance(value, str):
        yield value.translate(_CONTROL).encode("utf-8", "replace").decode()
    elif isinstance(value, list) and depth < 4:
        for one in value[:20]:
            yield from _from_json(one, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        by_field = bool(depth and value) and all(
            isinstance(one, list) for one in value.values()
        )  # {"title": ["is empty"]}
        spoken = () if by_field else _SPOKEN
        told = [text for name in spoken if name in value for text in _from_json(value[name], depth + 1)]
        where = next(
            (value[name] for name in ("field", "loc", "pointer", "path", "param", "parameter") if value.get(name)), ""
        )
        where = ".".join(map(str, where)) if isinstance(where, list) else where
        prefix = f"{where}: " if where and isinstance(where, str) and depth else ""
        yield from (f"{prefix}{text}" for text in told)
        if not told and depth:
            yield from (f"{name}: {text}" for name, one in value.items() for text in _from_json(one, depth + 1))
