"""Attacks by API documents: name, document, and calls of the generated server. Data is in `documents/`."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_DOCUMENTS = Path(__file__).parent / "documents"
_FRONT = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "https://api.test/v1"}]}
Calls = tuple[tuple[str, dict[str, Any]], ...]


@dataclass(frozen=True)
class Attack:
    """`document` returns the bytes. CANARY in them is a file that must not be created, PORT a listener.

    `calls`: tools and arguments, called without a stub. Each must be refused quickly, without a connection to PORT.
    `refused`: the whole document must be refused. `most`: maximum number of tools.
    """

    document: Callable[[], bytes]
    calls: Calls = ()
    refused: bool = False
    most: int = 40_000


def _file(name: str) -> Callable[[], bytes]:
    return (_DOCUMENTS / f"{name}.yaml").read_bytes


def _texts(payload: str) -> Callable[[], bytes]:
    def document() -> bytes:
        text = "x" * 20_000 if payload == "LONG" else payload
        return json.dumps(_poisoned(yaml.safe_load((_DOCUMENTS / "texts.yaml").read_bytes()), text)).encode()

    return document


def _poisoned(node: Any, text: str) -> Any:
    if isinstance(node, dict):
        return {_poisoned(key, text): _poisoned(value, text) for key, value in node.items()}
    if isinstance(node, list):
        return [_poisoned(one, text) for one in node]
    return node.replace("{{PAYLOAD}}", text) if isinstance(node, str) else node


def _json(**parts: Any) -> Callable[[], bytes]:
    return lambda: json.dumps({**_FRONT, **parts}).encode()


def _query(schema: Any, **more: Any) -> dict[str, Any]:
    return {
        "/a": {"get": {"operationId": "getA", "parameters": [{"name": "p", "in": "query", "schema": schema, **more}]}}
    }


def _body(schema: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    answers = {"200": {"description": "", "content": content}}
    return {"/a": {"post": {"operationId": "addA", "requestBody": {"content": content}, "responses": answers}}}


def _named(count: int, one: Callable[[int], Any]) -> dict[str, Any]:
    return {"schemas": {f"S{n}": one(n) for n in range(count)} | {f"S{count}": {"type": "string"}}}


def _to(n: int) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/S{n}"}


def _nested(depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = {"type": "object", "properties": {"x": inner}}
    return inner


_DOUBLING = _named(400, lambda n: {"properties": {side: _to(n + 1) for side in "ab"}})
_CHOICES = _named(60, lambda n: {"anyOf": [_to(n + 1), {"allOf": [_to(n + 1), {"type": "string"}]}]})
_EVERY = _named(60, lambda n: {"allOf": [_to(m) for m in range(60) if m != n]})
_REQUIRED = _named(60, lambda n: {"type": "object", "required": [f"p{m}" for m in range(60)], "properties": {f"p{m}": _to(m) for m in range(60)}})  # fmt: skip
_HUGE = {"type": "string", "minLength": 10**12, "maxLength": 10**15}
_MANY = {"type": "array", "minItems": 10**9, "items": {"type": "array", "minItems": 10**9, "items": {"type": "string"}}}
_INJECTIONS: Calls = (
    ("may_take_length", {"x_fine": "1\r\nX-Injected: yes"}),
    ("may_take_length", {"x_fine": "1\nX-Injected: yes"}),
    ("may_take_length", {"x_fine": "1\x00"}),
)
_LONG = "a" * 50_000 + "!"
_PATH = {"/a/{id}": {"get": {"operationId": "getThing", "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]}}}  # fmt: skip

ATTACKS: dict[str, Attack] = {
    **{
        f"in every text: {name}": Attack(_texts(text))
        for name, text in json.loads((_DOCUMENTS / "payloads.json").read_bytes()).items()
    },
    "objects in YAML tags": Attack(_file("tags")),
    "a billion laughs": Attack(_file("aliases"), refused=True),
    "an alias that holds itself": Attack(_file("cyclic-alias"), refused=True),
    "servers and references that lead inside": Attack(
        _file("ssrf"), calls=(("read_inside", {}), ("read_metadata", {}))
    ),
    # Two operations stay without their forbidden header: the client sends Host itself, and Content-Length is optional.
    "header names": Attack(_file("headers"), calls=(*_INJECTIONS, ("needs_host", {"Host": "evil.test"})), most=2),
    "values that leave their path": Attack(
        _json(paths=_PATH),
        calls=tuple(
            ("get_thing", {"id": value}) for value in ("..", "../../admin", "%2e%2e", ".", "", "a/../../b", "..\\b")
        ),
    ),
    "patterns for a backtracking engine": Attack(
        _file("regexes"), calls=(("search_things", {"a": _LONG, "b": _LONG, "c": _LONG, "e": _LONG}),)
    ),
    "nested deeply, in JSON": Attack(lambda: b'{"openapi":"3.1.0","paths":' + b'{"a":' * 100_000, refused=True),
    "nested deeply, closed again": Attack(
        lambda: b'{"openapi":"3.1.0","x":' + b"[" * 5000 + b"]" * 5000 + b"}", refused=True
    ),
    "nested deeply, in YAML": Attack(lambda: b"openapi: 3.1.0\nx: " + b"[" * 5000, refused=True),
    "nested deeply, in a schema": Attack(_json(paths=_body(_nested(95, {"type": "string"})))),
    "a number of 5,000 digits": Attack(
        lambda: b'{"openapi":"3.1.0","paths":{},"x":' + b"9" * 5000 + b"}", refused=True
    ),
    "huge bounds": Attack(
        lambda: (
            json.dumps({**_FRONT, "paths": _query({"type": "number", "maximum": "@", "minimum": -(10**300)})})
            .replace('"@"', "1e999")
            .encode()
        )
    ),
    "huge lengths and counts": Attack(
        _json(paths=_body({"type": "object", "properties": {"a": _HUGE, "b": _MANY}, "required": ["a", "b"]}))
    ),
    "references that double": Attack(_json(paths=_body(_to(0)), components=_DOUBLING)),
    "choices that double": Attack(
        _json(paths=_body(_to(0)), components=_CHOICES), calls=(("add_a", {"body": [5]}), ("add_a", {"body": {}}))
    ),
    "everything requires everything": Attack(_json(paths=_body(_to(0)), components=_REQUIRED)),
    "everything is allOf everything": Attack(_json(paths=_body(_to(0)), components=_EVERY)),
    "an enumeration of 100,000 values": Attack(
        _json(paths=_query({"type": "string", "enum": [f"v{n}" for n in range(100_000)]}))
    ),
    "1,000 parameters": Attack(
        _json(
            paths={
                "/a": {
                    "get": {
                        "operationId": "getA",
                        "parameters": [
                            {"name": f"p{n}", "in": "query", "schema": {"type": "string"}} for n in range(1_000)
                        ],
                    }
                }
            }
        )
    ),
    "a path of 100,000 braces": Attack(
        _json(paths={"/" + "{a}/" * 25_000: {"get": {}}, "/" + "{" * 50_000: {"get": {}}})
    ),
    "text that is slow to make plain": Attack(
        _json(
            paths={
                "/a": {
                    "get": {
                        "operationId": "getA",
                        "description": "".join(
                            f"{sign * 20_000} " for sign in ("<a ", "[x](", "**a", "_a_", "`", "<!--", "![")
                        ),
                    }
                }
            }
        )
    ),
    "files that are none": Attack(
        _json(paths=_query({"allOf": [{"$ref": "/dev/zero"}, {"$ref": "/proc/self/environ"}, {"$ref": "a\x00b.json"}]}))
    ),
    "bytes that are no text": Attack(lambda: b"openapi: \x00\x81\xfe\xff" * 100, refused=True),
}
