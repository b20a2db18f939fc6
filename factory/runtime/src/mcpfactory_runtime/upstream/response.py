"""An HTTP response → what the model sees, as a pure function.

response                     result
JSON object                  structured content, and the same as compact JSON text
other JSON                   structured content {"result": value} (an object in every revision), and the value as text
text, XML, YAML, forms       text, in the charset that the response names
image/*, audio/*             an image or audio block
anything else                an embedded resource, or a link to a file that keeps it
nothing                      a sentence with the status (and Location, ETag and the like)
300 to 399                   ToolError that names the other host: redirects are not followed
400 and above                ToolError: see `failure`

JSON passes, in this order: the selection that the model asked for (`selection`), the bound on its size (`cutting`), and the
question whether there is more (`paging`). What was cut, and how to go on, are text blocks after the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

from pydantic_core import from_json, to_json

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.server.results import Audio, Content, EmbeddedBlob, Image, ResourceLink, Text, ToolResult
from mcpfactory_runtime.upstream.cutting import Cut, compact, shorten
from mcpfactory_runtime.upstream.encoding import is_json, media_type
from mcpfactory_runtime.upstream.failure import failure, operation_name, reason, redirect, refusal
from mcpfactory_runtime.upstream.operation import Operation, SecurityScheme
from mcpfactory_runtime.upstream.paging import META, continuation
from mcpfactory_runtime.upstream.selection import select
from mcpfactory_runtime.upstream.settings import Settings
from mcpfactory_runtime.upstream.text import decode, is_text
from mcpfactory_runtime.upstream.unset import UNSET

__all__ = ["MAX_BLOB", "MAX_TEXT", "Keeper", "read_response"]

MAX_TEXT: Final = 100_000
"""Characters of one response that a model is given: some 25,000 tokens, which is where clients cut by themselves."""
MAX_BLOB: Final = 1_000_000
"""Bytes of binary content that a result embeds."""

Keeper = Callable[[bytes, str], str]
"""Keeps content of a media type in a file; the file's URI."""

_TELLING: Final = ("location", "etag", "last-modified", "content-type", "content-length", "link", "retry-after")
_FIELDS: Final = frozenset(
    {"fields", "field", "_fields", "select", "$select", "opt_fields", "projection", "include_fields"}
)
_SHOWN: Final = 6  # cuts, and arguments, that a note names


def read_response(
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    operation: Operation,
    *,
    arguments: Mapping[str, Any] | None = None,
    url: str = "",
    schemes: Mapping[str, SecurityScheme] | None = None,
    settings: Settings | None = None,
    cut: bool = False,
    max_text: int = MAX_TEXT,
    keep: Keeper | None = None,
) -> ToolResult:
    """Turn a response into a tool result.

    Args:
        status: the HTTP status.
        headers: by lower-case name.
        content: the body after decompression.
        operation: what was called.
        arguments: what it was called with, to say how to go on.
        url: where the response came from.
        schemes: the API's, by name, for messages about credentials.
        settings: the server's, for messages about its address.
        cut: the body was longer than `content`.
        max_text: characters of text at most; what goes beyond is cut, and the result says so.
        keep: where binary content goes that is too large to embed; None refuses it.

    Raises:
        ToolError: for status 300 and above, for a success that says that it is none, and for binary content that is too long.
    """
    if status >= 400:
        raise ToolError(failure(status, headers, content, operation, schemes))
    if status >= 300 and status != 304:
        raise ToolError(redirect(status, headers, operation, (settings or Settings({})).variable("BASE_URL")))
    kind = media_type(headers.get("content-type", ""))
    if not content:
        return ToolResult([Text(_empty(status, headers, operation))])
    if is_json(kind) or (not kind and content.lstrip()[:1] in (b"{", b"[")):
        value = _parsed(content, headers)
        if isinstance(value, dict) and (told := refusal(value, status, operation)):
            raise ToolError(told)
        if value is not _NOT_JSON:
            return _json(value, headers, operation, arguments=arguments or {}, url=url, max_text=max_text)
        return ToolResult([Text(_cut_text(content, headers, cut, max_text, operation))], is_error=cut)
    if is_text(kind):
        return ToolResult([Text(_cut_text(content, headers, cut, max_text, operation))])
    if cut:
        raise ToolError(
            f"{operation_name(operation)} answered with {kind} of more than {len(content):,} bytes, which is too much."
        )
    return ToolResult([_binary(content, kind, operation, keep)])


def _empty(status: int, headers: Mapping[str, str], operation: Operation) -> str:
    names = _TELLING if operation.method == "HEAD" else ("location", "etag")
    told = [f"{name}: {headers[name]}" for name in names if name in headers]
    return f"{reason(status)}, no content." + "".join(f"\n{line}" for line in told)


# --- JSON ---

_NOT_JSON: Final = object()


def _parsed(content: bytes, headers: Mapping[str, str]) -> Any:
    try:
        return from_json(content, allow_inf_nan=False)  # the fast way; it refuses what follows
    except ValueError:  # another charset, a mark at the beginning, halves of surrogate pairs, or no JSON at all
        pass
    try:
        return json.loads(decode(content, headers, controls=True), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _NOT_JSON


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _json(
    value: Any,
    headers: Mapping[str, str],
    operation: Operation,
    *,
    arguments: Mapping[str, Any],
    url: str,
    max_text: int,
) -> ToolResult:
    value, text = _written(value)
    whole, selected = value, False
    if arguments.get(operation.select, UNSET) is not UNSET:
        value, selected = select(arguments[operation.select], value), True
        value, text = _written(value)
    cuts: list[Cut] = []
    shown, size = value, len(text)
    if size > max_text:
        shown, cuts = shorten(value, max_text)
        text = compact(shown)
    blocks = [Text(text)]
    following = continuation(
        operation, arguments, whole if selected else shown, headers, url, cut=bool(cuts) and not selected
    )
    if selected and value is None:
        blocks.append(Text(_selected_nothing(whole)))
    if cuts:
        blocks.append(Text(_cut_note(cuts, size, operation, paged=following is not None)))
    if following is not None:
        blocks.append(Text(following.told()))
    meta = {META: {"arguments": dict(following.arguments)}} if following and following.arguments else None
    return ToolResult(blocks, structured=shown if isinstance(shown, dict) else {"result": shown}, meta=meta)


def _selected_nothing(whole: Any) -> str:
    sample = whole[0] if isinstance(whole, list) and whole else whole
    names = ", ".join([*sample][:20]) if isinstance(sample, dict) else type(sample).__name__
    what = "a list whose items have" if isinstance(whole, list) else "an answer with"
    return f"The expression selects nothing of {what}: {names}."


def _written(value: Any) -> tuple[Any, str]:
    """Return a value and its compact JSON, without halves of surrogate pairs, which no message can carry."""
    try:
        text = to_json(value, inf_nan_mode="constants").decode()
        if "Infinity" in text:  # perhaps a number like 1e999, which is none for anybody else
            text = to_json(value, inf_nan_mode="null").decode()
            value = from_json(text)
        return value, text
    except ValueError:  # such a half, or deeper than the fast way goes
        text = compact(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode("utf-8")
        return json.loads(text), text
    return value, text


# --- what is too long ---


def _cut_note(cuts: list[Cut], size: int, operation: Operation, *, paged: bool) -> str:
    shown = "; ".join(map(str, cuts[:_SHOWN])) + (f"; and {len(cuts) - _SHOWN} more places" * (len(cuts) > _SHOWN))
    ways = _ways(cuts, operation)
    rest = f" To see the rest, {'or ' * paged}{'; or '.join(ways)}." if ways else ""
    return f"[Cut: the answer has {size:,} characters; this shows {shown}.{rest}]"


def _ways(cuts: list[Cut], operation: Operation) -> list[str]:
    """Return what the model can do about an answer that is too long, by the arguments that the operation has."""
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
    text = decode(content, headers)
    if len(text) <= max_text and not cut:
        return text
    length = headers.get("content-length", "") if "content-encoding" not in headers else ""
    read = f"more than {len(content):,} bytes" if cut else f"{len(text):,} characters"
    whole = f"{int(length):,} bytes" if length.isdecimal() else read
    shown = text[:max_text]
    ways = _ways([], operation) or ["ask for less, for instance by paging, filters or a choice of fields"]
    return (
        f"{shown}\n\n[Cut: this is the first {len(shown):,} characters of a response of {whole}. "
        f"To see the rest, {'; or '.join(ways)}.]"
    )


# --- what is no text ---


def _binary(content: bytes, kind: str, operation: Operation, keep: Keeper | None) -> Content:
    if len(content) > MAX_BLOB:
        if keep is None:
            raise ToolError(
                f"{operation_name(operation)} answered with {kind} of {len(content):,} bytes; results embed at most {MAX_BLOB:,}.\n"
                "hint: the person who runs this server sets MCPFACTORY_FILES to a folder where such answers are kept."
            )
        uri = keep(content, kind)
        return ResourceLink(uri, uri.rpartition("/")[2], mime_type=kind, size=len(content))
    if kind.startswith("image/"):
        return Image(content, kind)
    if kind.startswith("audio/"):
        return Audio(content, kind)
    return EmbeddedBlob(f"upstream://response{quote(operation.path)}", content, kind)
