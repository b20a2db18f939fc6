"""Conversion of an HTTP response into a tool result, as a pure function.

A JSON object becomes structured content, and compact JSON text. Any other JSON value becomes the structured content
{"result": value}, and text. XML becomes the JSON of an equal value if the API document declares XML (`xml`), or else
text. An HTML page is a ToolError if JSON was requested, because a login, a proxy or maintenance may return pages. Text,
YAML and forms become text, decoded in the charset of the response. An image that models read, or audio, becomes an
image or audio block. Other content becomes an embedded resource, or a link to a file. An empty response becomes a
sentence with the status, and headers such as Location and ETag. A response to HEAD becomes its headers. Headers that
the API document declares become a text block at the end. A status from 300 to 399 is a ToolError with the target and
the reason of the refusal (`servers.redirect_message`). A status of 400 or above is a ToolError with operation, status,
the API's own message, and a hint.

JSON is reduced to the selection of the model (`truncate.select`), and then truncated to the maximum size
(`truncate.shorten`). Notes about truncated parts and about the next page (`paging`) are text blocks after the JSON.

The API's own message can be in RFC 9457 problem details, OAuth errors, members such as `message` and `errors`, errors
by field, GraphQL errors, the title of an HTML page, or plain text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import unescape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from pydantic_core import from_json, to_json

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.results import (
    MAX_TEXT,
    Audio,
    Content,
    EmbeddedBlob,
    EmbeddedText,
    Image,
    ResourceLink,
    Text,
    ToolResult,
)
from mcpfactory_runtime.upstream.encoding import UNSET, is_json, is_xml, media_type
from mcpfactory_runtime.upstream.operation import Operation, SecurityScheme
from mcpfactory_runtime.upstream.paging import META, continuation
from mcpfactory_runtime.upstream.secrets import Settings
from mcpfactory_runtime.upstream.servers import redirect_message
from mcpfactory_runtime.upstream.truncate import Truncation, dump_json, select, shorten
from mcpfactory_runtime.upstream.xml import XmlAnswerError, parse_xml
from mcpfactory_runtime.urls import Redirect

MAX_BLOB: Final = 1_000_000
"""Maximum bytes of binary content that a result embeds."""

StoreFile = Callable[[bytes, str], str]
"""Function that stores content of a media type in a file, and returns the file's URI."""

_WITHOUT_BODY: Final = ("location", "etag")  # headers that an empty response shows even if they are not declared
# Headers of the connection or with credentials, which a response to HEAD does not show.
_HIDDEN: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "date", "server", "vary", "alt-svc", "set-cookie", "via"}
)
_MAX_HEADERS: Final = 40
_MAX_HEADER: Final = 500  # maximum characters of a header's value
_FIELDS: Final = frozenset(
    {"fields", "field", "_fields", "select", "$select", "opt_fields", "projection", "include_fields"}
)
# Maximum number of shortened parts that a note lists, and of arguments that a note suggests.
_SHOWN: Final = 6
_MAX_MESSAGE: Final = 2_000  # maximum characters of the API's own message

_HINTS: Final[dict[int, str]] = {
    400: "correct the arguments and call again.",
    401: (
        "the API does not accept the server's credentials; the person who runs the server checks its environment "
        "variables."
    ),
    403: "the server's credentials do not permit this; another tool, or other permissions, are needed.",
    404: "check the identifiers in the arguments, for instance with a tool that lists or searches.",
    405: "the API does not offer this operation here; use another tool.",
    409: "the resource is in another state than expected; read it first, then call again.",
    410: "the resource is gone for good.",
    412: "the resource has changed; read it again, then call again.",
    413: "send less.",
    422: "correct the arguments and call again.",
    429: "the API limits its rate; wait before the next call, and make fewer calls.",
}
_MESSAGE_MEMBERS: Final = (
    "title", "detail", "message", "msg", "error_description", "description", "reason",
    "error", "errors", "details", "error_message", "errorMessage", "errorMessages", "userMessage",
    "Message", "fault", "faultstring", "invalid-params", "violations", "non_field_errors",
)  # fmt: skip
_FIELD_MEMBERS: Final = ("field", "loc", "pointer", "path", "param", "parameter")
_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})  # images that models read
_TEXT_TYPES: Final = re.compile(
    r"text/|application/([\w.-]+\+)?(xml|yaml|x-yaml|javascript|x-www-form-urlencoded|graphql|sql|toml|csv|x-?ndjson|(x-)?jsonl)\b"
    r"|application/(x-jsonlines|json-seq|jwt)|.*\+(xml|yaml)$"
)
_CONTROL: Final = dict.fromkeys([*range(9), 11, 12, *range(14, 32), *range(127, 160)])


def to_tool_result(
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    operation: Operation,
    *,
    arguments: Mapping[str, Any] | None = None,
    url: str = "",
    redirect: Redirect | None = None,
    schemes: Mapping[str, SecurityScheme] | None = None,
    variable: str = "",
    cut: bool = False,
    max_text: int = MAX_TEXT,
    store_file: StoreFile | None = None,
) -> ToolResult:
    """Turn a response into a tool result, or raise ToolError.

    Names in `headers` are in lower case. If the body was longer than `content`, `cut` is True. Text of more than
    `max_text` characters is cut, with a note. `store_file` stores binary content that is too large to embed.
    """
    if status >= 400:
        raise ToolError(_failure_message(status, headers, content, operation, schemes))
    if status >= 300 and status != 304:
        led = redirect_message(redirect, operation, url, variable or Settings({}).variable("BASE_URL"))
        raise ToolError(f"{_operation_name(operation)} answered {_status_text(status)}: {led}")
    if not content:
        return ToolResult([Text(_empty(status, headers, operation))])
    kind = media_type(headers.get("content-type", ""))
    value, note = _value_in(content, kind, headers, operation, cut=cut)
    if value is not _NOT_JSON:
        if isinstance(value, dict) and (message := _refusal_message(value, status, operation)):
            raise ToolError(message)
        result = _json(value, headers, operation, arguments=arguments or {}, url=url, max_text=max_text)
    elif is_json(kind):
        result = ToolResult([Text(_cut_text(content, headers, cut, max_text, operation))], is_error=cut)
    elif _is_stray_page(content, kind, operation):
        raise ToolError(_page_message(status, headers, content, operation))
    elif _is_text(kind) or (kind.startswith("application/") and len(content) <= max_text and _is_readable(content)):
        text = _cut_text(content, headers, cut, max_text, operation)
        block = EmbeddedText(_uri(operation), text, kind) if kind.startswith("image/") else Text(text)
        result = ToolResult([block, *([Text(note)] if note else [])])
    elif cut:
        raise ToolError(
            f"{_operation_name(operation)} answered with {kind} of more than {len(content):,} bytes, which is "
            "too large."
        )
    else:
        result = ToolResult([_binary(content, kind, operation, store_file)])
    if declared := _header_lines(headers, operation.headers):
        result.content.append(Text("\n".join(declared)).to_dict())
    return result


def _empty(status: int, headers: Mapping[str, str], operation: Operation) -> str:
    if operation.method == "HEAD":
        lines = [f"{_status_text(status)}.", *_header_lines(headers, sorted(headers.keys() - _HIDDEN))]
    else:
        names = dict.fromkeys([*_WITHOUT_BODY, *operation.headers])
        lines = [f"{_status_text(status)}, empty body.", *_header_lines(headers, names)]
    return "\n".join(lines)


def _header_lines(headers: Mapping[str, str], names: Iterable[str]) -> list[str]:
    shown = [name for name in names if name in headers][:_MAX_HEADERS]
    return [f"{name}: {_printable(headers[name])[:_MAX_HEADER]}" for name in shown]


# --- JSON ---

_NOT_JSON: Final = object()


_LINES: Final = re.compile(r"application/(x-ndjson|ndjson|(x-)?jsonl|x-jsonlines|json-seq)")
_MISLABELLED: Final = re.compile(r"text/(?!event-stream|csv|xml).*|application/(octet-stream|javascript|x-javascript)")


def _value_in(
    content: bytes, kind: str, headers: Mapping[str, str], operation: Operation, *, cut: bool
) -> tuple[Any, str]:
    """Return the value of a JSON or XML response, and a note if expected XML is invalid."""
    if cut or not is_xml(kind) or not is_xml(media_type(operation.accept.partition(",")[0])):
        return _json_in(content, kind, headers, operation), ""
    try:
        return parse_xml(content, operation.lists), ""
    except XmlAnswerError as error:
        return _NOT_JSON, f"[XML returned as text: {error}.]"


def _json_in(content: bytes, kind: str, headers: Mapping[str, str], operation: Operation) -> Any:
    """Return the JSON value of a response, or `_NOT_JSON`.

    A body with a JSON media type must parse. A body without a media type must begin like an object or a list, and
    parse. Text, JavaScript and octet-stream must begin like an object or a list, and the Accept header must contain
    JSON. In JSON lines, each line must parse. The value is the list of the lines' values.
    """
    if is_json(kind):
        return _parsed(content, headers)
    if _LINES.fullmatch(kind):
        lines = [line for line in re.split(rb"[\r\n\x1e]+", content) if line.strip()]
        values = [_parsed(line, headers) for line in lines]
        return values if values and _NOT_JSON not in values else _NOT_JSON
    expected = not kind or (_MISLABELLED.fullmatch(kind) and any(map(is_json, operation.accept.split(","))))
    begins = content[:100].removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    return _parsed(content, headers) if expected and begins else _NOT_JSON


def _parsed(content: bytes, headers: Mapping[str, str]) -> Any:
    """Return the JSON value, with null for NaN and infinities, or `_NOT_JSON`."""
    try:
        return from_json(content, allow_inf_nan=False)  # a fast and strict parser
    except ValueError:  # other charset, byte order mark, NaN, half a surrogate pair, or invalid JSON
        pass
    try:
        return json.loads(_decode(content, headers, controls=True), parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _json(
    value: Any,
    headers: Mapping[str, str],
    operation: Operation,
    *,
    arguments: Mapping[str, Any],
    url: str,
    max_text: int,
) -> ToolResult:
    value, text = _serialized(value)
    whole, selected = value, False
    if arguments.get(operation.select, UNSET) is not UNSET:
        value, selected = select(arguments[operation.select], value), True
        value, text = _serialized(value)
    cuts: list[Truncation] = []
    shown, size = value, len(text)
    if size > max_text:
        shown, cuts = shorten(value, max_text)
        text = dump_json(shown)
    blocks = [Text(text)]
    following = continuation(
        operation, arguments, whole if selected else shown, headers, url, cut=bool(cuts) and not selected
    )
    if selected and value is None:
        blocks.append(Text(_selected_nothing(whole)))
    if cuts:
        blocks.append(Text(_cut_note(cuts, size, operation, paged=following is not None)))
    if following is not None:
        blocks.append(Text(following.message()))
    meta = {META: {"arguments": dict(following.arguments)}} if following and following.arguments else None
    return ToolResult(blocks, structured=shown if isinstance(shown, dict) else {"result": shown}, meta=meta)


def _selected_nothing(whole: Any) -> str:
    sample = whole[0] if isinstance(whole, list) and whole else whole
    names = ", ".join([*sample][:20]) if isinstance(sample, dict) else type(sample).__name__
    what = "a list whose items have" if isinstance(whole, list) else "an answer with"
    return f"The expression selects nothing from {what}: {names}."


def _serialized(value: Any) -> tuple[Any, str]:
    """Return a value and its compact JSON. Lone surrogates are replaced, because UTF-8 cannot encode them."""
    try:
        text = to_json(value, inf_nan_mode="constants").decode()
        if "Infinity" in text:  # other parsers reject numbers like 1e999
            text = to_json(value, inf_nan_mode="null").decode()
            value = from_json(text)
        return value, text
    except ValueError:  # the value contains a lone surrogate, or is nested too deeply for the fast encoder
        text = dump_json(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode("utf-8")
        return json.loads(text), text
    return value, text


# --- oversized answers ---


def _cut_note(cuts: list[Truncation], size: int, operation: Operation, *, paged: bool) -> str:
    shown = "; ".join(map(str, cuts[:_SHOWN])) + (f"; and {len(cuts) - _SHOWN} more places" * (len(cuts) > _SHOWN))
    ways = _shorter_answers(cuts, operation)
    rest = f" To see the rest, {'or ' * paged}{'; or '.join(ways)}." if ways else ""
    return f"[Cut: the answer has {size:,} characters; this shows {shown}.{rest}]"


def _shorter_answers(cuts: list[Truncation], operation: Operation) -> list[str]:
    """Return instructions for the model: how to get a shorter response with the operation's arguments."""
    paging = operation.paging
    ways = []
    lists = [one for one in cuts if one.what == "items"]
    if paging is not None and paging.size and lists:
        ways.append(f"ask for fewer at a time with `{paging.size}` (at most {lists[0].kept:,})")
    names = [one.argument for one in operation.parameters if one.place == "query"]
    fields = [one.argument for one in operation.parameters if one.name.lower() in _FIELDS]
    ways += [f"choose fields with `{fields[0]}`"] if fields else []
    ways += [f"select what is needed with `{operation.select}` (JMESPath)"] if operation.select else []
    paged = {paging.argument, paging.size} if paging is not None else set()
    others = [f"`{name}`" for name in names if name not in paged and name not in fields]
    ways += [f"narrow it with {', '.join(others[:_SHOWN])}"] if others else []
    return ways


def _cut_text(content: bytes, headers: Mapping[str, str], cut: bool, max_text: int, operation: Operation) -> str:
    text = _decode(content, headers)
    if len(text) <= max_text and not cut:
        return text
    length = headers.get("content-length", "") if "content-encoding" not in headers else ""
    read = f"more than {len(content):,} bytes" if cut else f"{len(text):,} characters"
    whole = f"{int(length):,} bytes" if length.isdecimal() else read
    shown = text[:max_text]
    ways = _shorter_answers([], operation) or ["ask for less, for instance by paging, filters or a choice of fields"]
    return (
        f"{shown}\n\n[Cut: this is the first {len(shown):,} characters of a response of {whole}. "
        f"To see the rest, {'; or '.join(ways)}.]"
    )


# --- binary content ---


def _binary(content: bytes, kind: str, operation: Operation, store_file: StoreFile | None) -> Content:
    if len(content) > MAX_BLOB:
        if store_file is None:
            raise ToolError(
                f"{_operation_name(operation)} answered with {kind} of {len(content):,} bytes; a result can contain "
                f"at most {MAX_BLOB:,}.\nhint: ask the person who runs this server to set MCPFACTORY_FILES to a folder for "
                "such answers."
            )
        uri = store_file(content, kind)
        return ResourceLink(uri, uri.rpartition("/")[2], mime_type=kind, size=len(content))
    if kind in _IMAGES:
        return Image(content, kind)
    if kind.startswith("audio/"):
        return Audio(content, kind)
    return EmbeddedBlob(_uri(operation), content, kind)


def _uri(operation: Operation) -> str:
    return f"upstream://response{quote(operation.path)}"


# --- errors ---


def _operation_name(operation: Operation) -> str:
    return f"{operation.method} {operation.path}"


def _status_text(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _failure_message(
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    operation: Operation,
    schemes: Mapping[str, SecurityScheme] | None = None,
) -> str:
    """Return the message for status 400 and above, with the names of credential variables from `schemes`."""
    lines = [_headline("failed", status, _api_messages(content, headers), operation)]
    lines += _retry_lines(headers)
    lines += _header_lines(headers, [name for name in operation.headers if name != "retry-after"])
    hint = _hint(status, headers, operation, schemes or {})
    return "\n".join([*lines, *([f"hint: {hint}"] if hint else [])])


def _refusal_message(value: Any, status: int, operation: Operation) -> str:
    """Return the message for an error in the body of a successful response, or "".

    Only `{"ok": false, "error": …}`, and `errors` without `data`, are reliable signs of an error.
    """
    if not isinstance(value, dict):
        return ""
    if operation.body is not None and operation.body.graphql:
        return _graphql_message(value, status, operation)
    not_ok = value.get("ok") is False and isinstance(value.get("error"), str | dict) and value["error"]
    no_data = isinstance(value.get("errors"), list) and value["errors"] and value.get("data", ...) is None
    if not (not_ok or no_data):
        return ""
    said = dict(value) if not_ok else {"errors": value["errors"]}
    return _headline("was refused", status, _messages_in(said), operation) + f"\n{dump_json(value)[:_MAX_MESSAGE]}"


_PAGE: Final = re.compile(
    rb"(\xef\xbb\xbf)?\s*(<!--.{0,1000}?-->\s*)?<(!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)


def _is_stray_page(content: bytes, kind: str, operation: Operation) -> bool:
    asked = [media_type(one) for one in operation.accept.split(",")]
    return all(map(is_json, asked)) and kind in ("", "text/html", "text/plain") and _PAGE.match(content) is not None


def _page_message(status: int, headers: Mapping[str, str], content: bytes, operation: Operation) -> str:
    said = _api_messages(content, {**headers, "content-type": "text/html"})
    return (
        f"{_headline('returned a page instead of JSON', status, said, operation)}\n"
        "hint: the page may come from a login, a proxy or maintenance; ask the person who runs this server to check the URL."
    )


def _graphql_message(value: dict[str, Any], status: int, operation: Operation) -> str:
    """Return the message for a response with `errors` and possibly `data` (GraphQL §7.1), or "" without errors."""
    errors = value.get("errors")
    if not isinstance(errors, list) or not errors:
        return ""
    headline = _headline("was refused", status, _messages_in({"errors": errors}), operation)
    lines = [headline, f"errors: {dump_json(errors)[:_MAX_MESSAGE]}"]
    data = value.get("data")
    if isinstance(data, dict) and any(one is not None for one in data.values()):
        lines.append(f"data in part: {dump_json(data)[:_MAX_MESSAGE]}")
    return "\n".join(lines)


def _headline(what: str, status: int, messages: Iterator[str], operation: Operation) -> str:
    phrase = _status_text(status).partition(" ")[2]
    sentences = dict.fromkeys(one.strip() for one in messages)
    text = "; ".join(one for one in sentences if one and one.lower() != phrase.lower())
    text = text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]}… ({len(text):,} characters)"
    return f"{_operation_name(operation)} {what}: {_status_text(status)}" + (f": {text}" if text else ".")


def _retry_lines(headers: Mapping[str, str]) -> list[str]:
    after = headers.get("retry-after", "").strip()
    if after:
        return [f"Retry-After: {after} seconds" if after.isdecimal() else f"Retry-After: {after[:60]}"]
    if _limited(headers):
        reset = next((headers[name] for name in ("x-ratelimit-reset", "ratelimit-reset") if name in headers), "")
        return [f"Rate limit exhausted; reset: {reset[:60]}"]
    return []


def _limited(headers: Mapping[str, str]) -> bool:
    """Return True if the headers report an exhausted rate limit. Some APIs then answer with status 403."""
    return any(headers.get(name, "").strip() == "0" for name in ("x-ratelimit-remaining", "ratelimit-remaining"))


def _hint(status: int, headers: Mapping[str, str], operation: Operation, schemes: Mapping[str, SecurityScheme]) -> str:
    if status in (401, 403) and not _limited(headers):
        names = [name for alternative in operation.security for name in alternative if name in schemes]
        variables = list(dict.fromkeys(variable for name in names for variable in schemes[name].variables))
        if variables:
            return f"{_HINTS[status]} The credential is in {', '.join(variables[:6])}."
    if status == 403 and _limited(headers):
        return _HINTS[429]
    places = [f"`{one.argument}`" for one in operation.parameters if one.place == "path"]
    if status == 404 and places:
        return f"check {' and '.join(places)}, for instance with a tool that lists or searches."
    return _HINTS.get(status) or ("the API itself failed; try again later." if status >= 500 else "")


def _api_messages(content: bytes, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the API's own error messages, from common members of JSON, the title of a page, or the text."""
    kind = media_type(headers.get("content-type", ""))
    text = _decode(content[: 16 * _MAX_MESSAGE], headers)
    if is_json(kind) or text.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            yield text
        else:
            found = list(_messages_in(value))
            yield from found or [_printable(dump_json(value))]
    elif "html" in kind:
        yield unescape(_MARKUP.sub(" ", _title(text) or text))[:300]
    elif _is_text(kind):
        yield text


_MARKUP: Final = re.compile(r"<[^<>]+>|\s+")  # takes linear time, because each match ends before the next `<`


def _title(html: str) -> str:
    """Return the text of a page's first `title` in linear time, unlike a regular expression."""
    lower = html.lower()
    start = lower.find(">", lower.find("<title")) if "<title" in lower else -1
    end = lower.find("</title", start) if start >= 0 else -1
    return html[start + 1 : end] if end >= 0 and len(lower) == len(html) else ""


def _messages_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the texts of an error, from members of RFC 9457, of OAuth, and of most APIs."""
    if isinstance(value, str):
        yield _printable(value)
    elif isinstance(value, list) and depth < 4:
        for one in value[:20]:
            yield from _messages_in(one, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        # In errors by field, such as {"title": ["is empty"]}, a field may have the name of a message member.
        by_field = bool(depth and value) and all(isinstance(one, list) for one in value.values())
        members = () if by_field else _MESSAGE_MEMBERS
        messages = [text for name in members if name in value for text in _messages_in(value[name], depth + 1)]
        where = next((value[name] for name in _FIELD_MEMBERS if value.get(name)), "")
        # In RFC 7807, `name` is the field, and `reason` is the message.
        where = where or (value.get("name", "") if "reason" in value else "")
        where = ".".join(map(str, where)) if isinstance(where, list) else where
        prefix = f"{where}: " if where and isinstance(where, str) and depth else ""
        yield from (f"{prefix}{text}" for text in messages)
        if not messages and depth:
            yield from (f"{name}: {text}" for name, one in value.items() for text in _messages_in(one, depth + 1))


# --- bytes as text ---

# Charsets of browsers (Encoding Standard §4.2) and similar charsets. Some of Python's other codecs are very slow.
_CHARSETS: Final = re.compile(
    r"utf[-_]?(8|16)([-_]?[lb]e)?|(us[-_]?)?ascii|(iso[-_]?8859[-_]|latin[-_]?)\d{1,2}|(windows[-_]|cp[-_]?)(125\d|874|866|932|949|936|950|437|85\d)"
    r"|(x[-_])?(mac[-_]?roman|macintosh|sjis)|shift[-_]?jis|ms[-_]?(932|949|950)|euc[-_]?(jp|kr)|iso[-_]2022[-_](jp|kr)|gb[-_]?(2312|k|18030)|big5([-_]?hkscs)?|koi8[-_][rtu]"
    r"|ks[-_]c[-_]5601.*|tis[-_]620|hz([-_]gb([-_]2312)?)?",
    re.IGNORECASE,
)


def _is_text(kind: str) -> bool:
    """Return True if a media type is text, or unknown ("")."""
    return not kind or bool(_TEXT_TYPES.match(kind))


def _is_readable(content: bytes) -> bool:
    """Return True if bytes are UTF-8 without control characters, unlike binary formats."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return False
    return text.translate(_CONTROL) == text


def _decode(content: bytes, headers: Mapping[str, str], *, controls: bool = False) -> str:
    """Decode bytes in the charset of the response, without most control characters unless `controls` is True."""
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", headers.get("content-type", ""), re.IGNORECASE)
    charset = found[1].lower() if found and _CHARSETS.fullmatch(found[1]) else "utf-8"
    try:
        text = content.decode(charset, "replace")
    except (LookupError, ValueError):  # Python has no codec for this charset
        text = content.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    return text if controls else text.translate(_CONTROL)


def _printable(text: str) -> str:
    """Remove control characters, and replace lone surrogates, which UTF-8 cannot encode."""
    return text.translate(_CONTROL).encode("utf-8", "replace").decode()
