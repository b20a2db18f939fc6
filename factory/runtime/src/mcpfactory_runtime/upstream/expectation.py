"""What a request lacks, or has otherwise, for a case to fit: what `stub.StubUpstream` compares, without any I/O.

It shares no code with `request` and `body`, which make requests: a mistake of theirs must be seen here.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email import message_from_bytes, policy
from http.cookies import SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

__all__ = ["RecordedRequest", "credential_faults", "differences"]

_SHOWN: Final = 200  # characters of one value
_PREFIXES: Final = {
    "apiKey": "",
    "basic": "Basic ",
    "bearer": "Bearer ",
    "awsSigV4": "AWS4-HMAC-SHA256 ",
}  # of a credential, by its kind


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request as received. `path` and `query` are as on the wire; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """Return the first header of that name, or None."""
        return next((value for key, value in self.headers if key == name.lower()), None)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The decoded query."""
        return parse_qsl(self.query, keep_blank_values=True)

    @property
    def cookies(self) -> list[tuple[str, str]]:
        """The decoded cookies."""
        parts = (self.header("cookie") or "").split(";")
        return [(unquote(name.strip()), unquote(value)) for name, _, value in (part.partition("=") for part in parts)]

    def json(self) -> Any:
        """Return the body as JSON.

        Raises:
            ValueError: it is none.
        """
        return json.loads(self.body)


def differences(wanted: Mapping[str, Any], request: RecordedRequest) -> list[str]:
    """Return what is wrong with a request by the `request` of a case, credentials apart; [] when it fits.

    What `wanted` does not say is free. With `"strict": true` the query must be complete, too.
    """
    path = unquote(request.path)
    found = []
    if wanted["method"].upper() != request.method:
        found.append(f"method is {request.method}, not {wanted['method']}")
    if "path" in wanted and unquote(wanted["path"]) != path:
        found.append(f"path is {_short(path)}, not {_short(unquote(wanted['path']))}")
    if (count := wanted.get("segments")) is not None and count != request.path.count("/"):
        found.append(
            f"path {_short(request.path)} has {request.path.count('/')} segments, not {count}: is a slash encoded?"
        )
    if "query" in wanted:
        known = {one["name"] for one in wanted.get("credentials", ()) if one.get("in") == "query"}
        given = [pair for pair in request.pairs if pair[0] not in known]
        found += _pair_faults("query", wanted["query"], given, exact=wanted.get("strict") is True)
    for name, value in wanted.get("headers", {}).items():
        text = request.header(name)
        if text != value:
            found.append(f"header {name} is {'missing' if text is None else repr(text)}, not {value!r}")
    if "cookies" in wanted:
        found += _pair_faults("cookies", wanted["cookies"], request.cookies, exact=False)
    return [*found, *_body_faults(wanted, request)]


def _pair_faults(what: str, wanted: Sequence[Any], given: Sequence[tuple[str, str]], *, exact: bool) -> Iterator[str]:
    expected = Counter((str(name), str(value)) for name, value in wanted)
    have = Counter(given)
    for (name, value), count in expected.items():
        if have[(name, value)] < count:
            yield f"{what} lacks {name}={_short(value)}"
    if exact:
        yield from (f"{what} has {name}={_short(value)} beside" for name, value in (have - expected))


# --- bodies ---


def _body_faults(wanted: Mapping[str, Any], request: RecordedRequest) -> Iterator[str]:
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    if "content_type" in wanted and kind != wanted["content_type"]:
        yield f"content type is {kind or 'missing'}, not {wanted['content_type']}"
    if wanted.get("empty") is True and request.body:
        yield f"there is a body of {len(request.body)} bytes"
    if "text" in wanted and request.body.decode("utf-8", "replace") != wanted["text"]:
        yield f"body is {_short(request.body.decode('utf-8', 'replace'))}, not {_short(wanted['text'])}"
    if "json" in wanted:
        try:
            given = request.json()
        except ValueError:
            yield "body is no JSON"
        else:
            if not _same(given, wanted["json"]):
                yield f"body is {_short(given)}, not {_short(wanted['json'])}"
    if "form" in wanted:
        pairs = parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)
        yield from _field_faults("form", wanted["form"], pairs)
    if "parts" in wanted:
        yield from _field_faults("body", wanted["parts"], _parts(request))


def _field_faults(what: str, wanted: Sequence[Any], given: list[tuple[str, str]]) -> Iterator[str]:
    """Each wanted `[name, value]` once, and nothing else; a value `{"json": …}` is compared as JSON."""
    left = list(given)
    for name, value in wanted:
        match = next((pair for pair in left if pair[0] == name and _equal(pair[1], value)), None)
        if match is None:
            yield f"{what} lacks {name}={_short(value)}"
        else:
            left.remove(match)
    yield from (f"{what} has {name}={_short(value)} beside" for name, value in left)


def _equal(text: str, value: Any) -> bool:
    if not isinstance(value, Mapping):
        return text == str(value)
    try:
        return _same(json.loads(text), value.get("json"))
    except ValueError:
        return False


def _same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: `1` is not `true`."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _parts(request: RecordedRequest) -> list[tuple[str, str]]:
    """Name and text of every part of a multipart body."""
    head = f"Content-Type: {request.header('content-type')}\r\n\r\n".encode()
    message = message_from_bytes(head + request.body, policy=policy.HTTP)
    parts = message.iter_parts() if message.is_multipart() else ()
    found = []
    for part in parts:
        name = part.get_param("name", "", header="content-disposition")
        payload = part.get_payload(decode=True)
        found.append((str(name), payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""))
    return found


# --- credentials ---


def credential_faults(
    wanted: Mapping[str, Any], request: RecordedRequest, environ: Mapping[str, str] | None
) -> list[str]:
    """Return what is wrong with the credentials of a request: those of `wanted["credentials"]`, each of which must be there.

    One is `{"kind": "apiKey" | "basic" | "bearer", "in": place, "name": …, "variables": [...]}`. Its value must be that of
    the variables in `environ`; None: any value will do.
    """
    found = []
    for one in wanted.get("credentials", ()):
        place, name = one.get("in") or "header", one.get("name") or "Authorization"
        given = _given(request, place, name)
        where = f"{place} {name}"
        lead = _PREFIXES.get(one["kind"])
        if lead is None:
            found.append(f"{where} is of the unknown kind {one['kind']!r}; one of {', '.join(_PREFIXES)}")
        elif not given:
            found.append(f"{where} is missing: the operation asks for credentials")
        elif not any(value.startswith(lead) and value[len(lead) :].strip() for value in given):
            found.append(f"{where} does not begin with {lead!r}")
        elif environ is not None:
            expected = _expected(one, environ)
            if expected is not None and lead + expected not in given:
                found.append(f"{where} is not the value of {' and '.join(one['variables'])}")
    return found


def _given(request: RecordedRequest, place: str, name: str) -> list[str]:
    if place == "query":
        return [value for key, value in request.pairs if key == name]
    if place == "cookie":
        jar = SimpleCookie(request.header("cookie") or "")
        return [unquote(jar[name].value)] if name in jar else []
    return [value for key, value in request.headers if key == name.lower()]


def _expected(one: Mapping[str, Any], environ: Mapping[str, str]) -> str | None:
    values = [environ.get(variable) for variable in one["variables"]]
    known = [value for value in values if value is not None]
    if not values or len(known) != len(values) or one["kind"] == "awsSigV4":
        return None
    return b64encode(":".join(known).encode()).decode() if one["kind"] == "basic" else known[0]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
