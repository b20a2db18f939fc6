"""An HTTP response that is no success → what the model should know and do: operation, status, the API's own message, a hint.

The message is looked for in the places where APIs put it: RFC 9457 problem details, OAuth errors, `message`, `error`, `errors` and
their like, errors by field, GraphQL errors; the title of an HTML page; or the text itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import unescape
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_runtime.upstream.cutting import compact
from mcpfactory_runtime.upstream.encoding import is_json, media_type
from mcpfactory_runtime.upstream.operation import Operation, SecurityScheme
from mcpfactory_runtime.upstream.text import decode, is_text, plain

__all__ = ["failure", "operation_name", "reason", "redirect", "refusal"]

_MAX_MESSAGE: Final = 2_000

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


def operation_name(operation: Operation) -> str:
    """`GET /books/{id}`."""
    return f"{operation.method} {operation.path}"


def reason(status: int) -> str:
    """`404 Not Found`."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def redirect(status: int, headers: Mapping[str, str], operation: Operation, variable: str) -> str:
    """Return what is said of 300 to 399: where it leads, and that it is not followed. `variable` sets the API's address."""
    target = urlsplit(headers.get("location", "")).netloc.rpartition("@")[2]
    where = f"to {target}" if target else "to another path of the same host"
    return (
        f"{operation_name(operation)} answered {reason(status)}: a redirect {where}, which is not followed.\n"
        f"hint: the person who runs this server sets {variable} to the address that answers, if it is to be trusted."
    )


def failure(
    status: int,
    headers: Mapping[str, str],
    content: bytes,
    operation: Operation,
    schemes: Mapping[str, SecurityScheme] | None = None,
) -> str:
    """Return what is said of 400 and above. `schemes`: the API's, by name, to say which variables hold credentials."""
    lines = [_headline("failed", status, _messages(content, headers), operation)]
    lines += _waiting(headers)
    hint = _hint(status, headers, operation, schemes or {})
    return "\n".join([*lines, *([f"hint: {hint}"] if hint else [])])


def refusal(value: Any, status: int, operation: Operation) -> str:
    """Return what is said of a success that says in its body that it is none; "" when it is one.

    Two habits are certain enough: `{"ok": false, "error": …}`, and GraphQL's `errors` without `data`.
    """
    if not isinstance(value, dict):
        return ""
    not_ok = value.get("ok") is False and isinstance(value.get("error"), str | dict) and value["error"]
    no_data = isinstance(value.get("errors"), list) and value["errors"] and value.get("data", ...) is None
    if not (not_ok or no_data):
        return ""
    said = dict(value) if not_ok else {"errors": value["errors"]}
    return _headline("was refused", status, _from_json(said), operation) + f"\n{compact(value)[:_MAX_MESSAGE]}"


def _headline(what: str, status: int, messages: Iterator[str], operation: Operation) -> str:
    phrase = reason(status).partition(" ")[2]
    sentences = dict.fromkeys(one.strip() for one in messages)
    told = "; ".join(one for one in sentences if one and one.lower() != phrase.lower())
    told = told if len(told) <= _MAX_MESSAGE else f"{told[:_MAX_MESSAGE]}… ({len(told):,} characters)"
    return f"{operation_name(operation)} {what}: {reason(status)}" + (f": {told}" if told else ".")


def _waiting(headers: Mapping[str, str]) -> list[str]:
    after = headers.get("retry-after", "").strip()
    if after:
        return [f"Retry-After: {after} seconds" if after.isdecimal() else f"Retry-After: {after[:60]}"]
    if _limited(headers):
        reset = next((headers[name] for name in ("x-ratelimit-reset", "ratelimit-reset") if name in headers), "")
        return [f"Rate limit used up; reset: {reset[:60]}"]
    return []


def _limited(headers: Mapping[str, str]) -> bool:
    """Whether the API says that nothing is left of a rate limit (some answer 403 then)."""
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


def _messages(content: bytes, headers: Mapping[str, str]) -> Iterator[str]:
    """Yield what the API says about its failure: the usual members of JSON errors, or else the text."""
    kind = media_type(headers.get("content-type", ""))
    text = decode(content[: 16 * _MAX_MESSAGE], headers)
    if is_json(kind) or text.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            yield text
        else:
            found = list(_from_json(value))
            yield from found or [plain(compact(value))]
    elif "html" in kind:
        title = re.search(r"<title[^>]*>(.*?)</title>", text, re.IGNORECASE | re.DOTALL)
        yield unescape(re.sub(r"<[^>]+>|\s+", " ", title[1] if title else text))[:300]
    elif is_text(kind):
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
    "error_message",
    "errorMessage",
    "errorMessages",
    "userMessage",
    "Message",
    "fault",
    "faultstring",
    "invalid-params",
    "violations",
    "non_field_errors",
)


_PLACES: Final = ("field", "loc", "pointer", "path", "param", "parameter")


def _from_json(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the sentences of an error: RFC 9457 (title, detail, errors), OAuth, and the members that most APIs use."""
    if isinstance(value, str):
        yield plain(value)
    elif isinstance(value, list) and depth < 4:
        for one in value[:20]:
            yield from _from_json(one, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        by_field = bool(depth and value) and all(
            isinstance(one, list) for one in value.values()
        )  # {"title": ["is empty"]}
        spoken = () if by_field else _SPOKEN
        told = [text for name in spoken if name in value for text in _from_json(value[name], depth + 1)]
        where = next((value[name] for name in _PLACES if value.get(name)), "")
        where = where or (value.get("name", "") if "reason" in value else "")  # `invalid-params` of RFC 7807
        where = ".".join(map(str, where)) if isinstance(where, list) else where
        prefix = f"{where}: " if where and isinstance(where, str) and depth else ""
        yield from (f"{prefix}{text}" for text in told)
        if not told and depth:
            yield from (f"{name}: {text}" for name, one in value.items() for text in _from_json(one, depth + 1))
