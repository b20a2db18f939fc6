"""Cases of one operation each: the values of a caller, and the expected request.

The expected requests are written by hand, not generated. Sources: the style tables of OpenAPI 3.1.1 and 3.2.0 with RFC
6570, the parameter object of Swagger 2.0, RFC 6265 for cookies, and RFC 7578 for multipart/form-data. A space in a form
is %20, as 3.1.1, appendix E, requires.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mcpfactory_runtime.types import Json

TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer"}
FLAG: Json = {"type": "boolean"}
TEXTS: Json = {"type": "array", "items": TEXT}
NUMBERS: Json = {"type": "array", "items": NUMBER}
POINT: Json = {"type": "object", "properties": {"x": NUMBER, "y": NUMBER}}
DEEP: Json = {"type": "object", "properties": {"at": POINT, "ids": TEXTS}}
ROWS: Json = {"type": "object", "properties": {"at": {"type": "array", "items": POINT}}}
TREE: Json = {"$ref": "#/components/schemas/Tree"}
HUES = ["red", "sea green"]
AT = {"x": 3, "y": -4}
FORM = "application/x-www-form-urlencoded"
PARTS = "multipart/form-data"


@dataclass(frozen=True)
class Case:
    """One operation, and one call of it.

    Attributes:
        title: unique; the path is derived from it.
        operation: parameters and body, as in the document.
        values: by place and name on the wire: `query hue`, `body name`, `body` for a whole body.
        query: expected query of the request.
        path: path in the document; "": derived from the title.
        sent: expected path of the request; "": same as `path`.
        headers: expected headers, by lower-case name.
        json: expected body, if it is JSON.
        body: expected body, if it is another text.
        contains: expected parts of the body, in this order.
        method: method of the operation; unusual ones in capitals.
        version: OpenAPI version.
        item: further members of the path item.
    """

    title: str
    operation: Json
    values: Json = field(default_factory=dict)
    query: str = ""
    path: str = ""
    sent: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    json: Any = None
    body: str | None = None
    contains: tuple[str, ...] = ()
    method: str = "get"
    version: str = "3.1.0"
    item: Json = field(default_factory=dict)

    @property
    def where(self) -> str:
        """Return the path in the document."""
        return self.path or f"/{self.title.replace(' ', '-').replace(',', '')}"


def _parameters(*parameters: Json) -> Json:
    return {"parameters": list(parameters)}


def _one(place: str, schema: Json, name: str = "hue", **details: Any) -> Json:
    return _parameters({"in": place, "name": name, "schema": schema, "required": place == "path", **details})


def _body(media: str, schema: Json, **details: Any) -> Json:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, **details}}}}


def _in_path() -> Iterator[Case]:
    rows: list[tuple[str, Json, Json, Any, str]] = [
        ("simple text", TEXT, {}, "red", "red"),
        ("simple list", TEXTS, {}, ["red", "green"], "red,green"),
        ("simple list exploded", TEXTS, {"explode": True}, ["red", "green"], "red,green"),
        ("simple object", POINT, {}, AT, "x,3,y,-4"),
        ("simple object exploded", POINT, {"explode": True}, AT, "x=3,y=-4"),
        ("label text", TEXT, {"style": "label"}, "red", ".red"),
        ("label list exploded", TEXTS, {"style": "label", "explode": True}, ["red", "green"], ".red.green"),
        ("label object exploded", POINT, {"style": "label", "explode": True}, AT, ".x=3.y=-4"),
        ("matrix text", TEXT, {"style": "matrix"}, "red", ";hue=red"),
        ("matrix list", TEXTS, {"style": "matrix"}, ["red", "green"], ";hue=red,green"),
        ("matrix list exploded", TEXTS, {"style": "matrix", "explode": True}, ["red", "green"], ";hue=red;hue=green"),
        ("matrix object", POINT, {"style": "matrix"}, AT, ";hue=x,3,y,-4"),
        ("matrix object exploded", POINT, {"style": "matrix", "explode": True}, AT, ";x=3;y=-4"),
        ("reserved characters", TEXT, {}, "a/b c?d#e", "a%2Fb%20c%3Fd%23e"),
        ("beyond ASCII", TEXT, {}, "ü", "%C3%BC"),
        ("a percent sign", TEXT, {}, "50%25", "50%2525"),
        ("a number", NUMBER, {}, 42, "42"),
    ]
    for title, schema, details, value, expected in rows:
        path = f"/path-{title.replace(' ', '-')}/{{hue}}"
        sent = path.replace("{hue}", expected)
        yield Case(f"path, {title}", _one("path", schema, **details), {"path hue": value}, path=path, sent=sent)


def _in_query() -> Iterator[Case]:
    rows: list[tuple[str, Json, Json, Any, str]] = [
        ("text", TEXT, {}, "red", "hue=red"),
        ("list", TEXTS, {}, HUES, "hue=red&hue=sea%20green"),
        ("list not exploded", TEXTS, {"explode": False}, HUES, "hue=red,sea%20green"),
        ("comma in a value of a list", TEXTS, {"explode": False}, ["a,b", "c"], "hue=a%2Cb,c"),
        ("object", POINT, {}, AT, "x=3&y=-4"),
        ("object not exploded", POINT, {"explode": False}, AT, "hue=x,3,y,-4"),
        ("list with spaces", TEXTS, {"style": "spaceDelimited", "explode": False}, ["a", "b"], "hue=a%20b"),
        ("object with spaces", POINT, {"style": "spaceDelimited", "explode": False}, AT, "hue=x%203%20y%20-4"),
        ("list with pipes", TEXTS, {"style": "pipeDelimited", "explode": False}, ["a", "b"], "hue=a%7Cb"),
        ("object with pipes", POINT, {"style": "pipeDelimited", "explode": False}, AT, "hue=x%7C3%7Cy%7C-4"),
        ("deep object", POINT, {"style": "deepObject"}, AT, "hue%5Bx%5D=3&hue%5By%5D=-4"),
        ("deep object of objects", DEEP, {"style": "deepObject"}, {"at": {"x": 5}}, "hue%5Bat%5D%5Bx%5D=5"),
        ("deep object of lists", DEEP, {"style": "deepObject"}, {"ids": ["a", "b"]}, "hue%5Bids%5D=a&hue%5Bids%5D=b"),
        (
            "deep object of listed objects",
            ROWS,
            {"style": "deepObject"},
            {"at": [AT]},
            "hue%5Bat%5D%5B0%5D%5Bx%5D=3&hue%5Bat%5D%5B0%5D%5By%5D=-4",
        ),
        ("true", FLAG, {}, True, "hue=true"),
        ("false", FLAG, {}, False, "hue=false"),
        ("zero", NUMBER, {}, 0, "hue=0"),
        ("a fraction", {"type": "number"}, {}, 1.5, "hue=1.5"),
        ("empty text", TEXT, {}, "", "hue="),
        ("numbers", NUMBERS, {}, [1, 2], "hue=1&hue=2"),
        ("reserved characters", TEXT, {}, "a&b=c+d e#f", "hue=a%26b%3Dc%2Bd%20e%23f"),
        ("reserved characters allowed", TEXT, {"allowReserved": True}, "/a/b:c", "hue=/a/b:c"),
        ("a name with brackets", TEXT, {"name": "filter[hue]"}, "red", "filter%5Bhue%5D=red"),
        ("a list of a name with brackets", TEXTS, {"name": "ids[]"}, ["a", "b"], "ids%5B%5D=a&ids%5B%5D=b"),
        ("a name with a dollar", NUMBER, {"name": "$top"}, 5, "%24top=5"),
        ("a name with a dot", TEXT, {"name": "user.fields"}, "id", "user.fields=id"),
    ]
    for title, schema, details, value, expected in rows:
        operation = _one("query", schema, **details)
        name = operation["parameters"][0]["name"]
        yield Case(f"query, {title}", operation, {f"query {name}": value}, expected)
    content = {"name": "by", "in": "query", "content": {"application/json": {"schema": DEEP}}}
    sent = "by=%7B%22at%22%3A%7B%22x%22%3A1%7D%2C%22ids%22%3A%5B%22a%22%5D%7D"
    yield Case("query, as JSON", _parameters(content), {"query by": {"at": {"x": 1}, "ids": ["a"]}}, sent)
    page = {"name": "page", "in": "query", "schema": {**NUMBER, "default": 30}}
    hue = _one("query", TEXT)["parameters"]
    yield Case("query, a default that nobody gave", _parameters(*hue, page), {"query hue": "red"}, "hue=red")
    values = {"path id": 1, "query hue": "red"}
    item = _parameters({"name": "id", "in": "path", "required": True, "schema": NUMBER})
    yield Case("query, of the path item", _parameters(*hue), values, "hue=red", "/item/{id}", "/item/1", item=item)


def _in_headers() -> Iterator[Case]:
    rows: list[tuple[str, Json, Json, Any, str]] = [
        ("text", TEXT, {}, "red", "red"),
        ("list", TEXTS, {}, ["red", "green"], "red,green"),
        ("object", POINT, {}, AT, "x,3,y,-4"),
        ("object exploded", POINT, {"explode": True}, AT, "x=3,y=-4"),
        ("true", FLAG, {}, True, "true"),
    ]
    for title, schema, details, value, expected in rows:
        operation = _one("header", schema, "X-Hue", **details)
        yield Case(f"header, {title}", operation, {"header X-Hue": value}, headers={"x-hue": expected})
    content = {"name": "X-By", "in": "header", "content": {"application/json": {"schema": POINT}}}
    sent = {"x-by": '{"x":1}'}
    yield Case("header, as JSON", _parameters(content), {"header X-By": {"x": 1}}, headers=sent)
    two = _parameters(*({"name": name, "in": "cookie", "schema": NUMBER} for name in "ab"))
    yield Case("cookies", two, {"cookie a": 1, "cookie b": 2}, headers={"cookie": "a=1; b=2"})


def _json_bodies() -> Iterator[Case]:
    named = {"type": "object", "required": ["name"], "properties": {"name": TEXT, "age": NUMBER}}
    extra = {"type": "object", "properties": {"extra": TEXT}}
    limit = {"type": "object", "properties": {"limit": NUMBER}}
    rows: list[tuple[str, str, Json, Json, Any]] = [
        ("a list", "post", {"type": "array", "items": POINT}, {"body": [AT, AT]}, [AT, AT]),
        ("a text", "put", TEXT, {"body": "hello"}, "hello"),
        ("any members", "post", {"type": "object", "additionalProperties": TEXT}, {"body": {"k": "v"}}, {"k": "v"}),
        (
            "all of two",
            "post",
            {"allOf": [named, extra]},
            {"body name": "A", "body extra": "B"},
            {"name": "A", "extra": "B"},
        ),
        (
            "a tree",
            "post",
            TREE,
            {"body value": 1, "body children": [{"value": 2}]},
            {"value": 1, "children": [{"value": 2}]},
        ),
        ("nested", "post", DEEP, {"body at": AT, "body ids": ["a"]}, {"at": AT, "ids": ["a"]}),
        (
            "when deleting",
            "delete",
            {"type": "object", "properties": {"ids": NUMBERS}},
            {"body ids": [1, 2]},
            {"ids": [1, 2]},
        ),
    ]
    kind = {"content-type": "application/json"}
    for title, method, schema, values, expected in rows:
        operation = _body("application/json", schema)
        yield Case(f"JSON, {title}", operation, values, json=expected, method=method, headers=kind)
    patch = "application/merge-patch+json"
    values, sent = {"body name": "Rex"}, {"name": "Rex"}
    yield Case(
        "JSON, merge patch", _body(patch, named), values, json=sent, method="patch", headers={"content-type": patch}
    )
    both = _body("application/xml", named)
    both["requestBody"]["content"] |= _body("application/json", named)["requestBody"]["content"]
    yield Case("JSON, where XML is possible", both, values, json=sent, method="post", headers=kind)
    clash = _one("query", NUMBER, "limit") | _body("application/json", limit)
    values = {"query limit": 1, "body limit": 2}
    yield Case("JSON, one name in query and body", clash, values, "limit=1", json={"limit": 2}, method="post")
    called = _parameters(*(_one("query", TEXT, name)["parameters"][0] for name in ("body", "requestBody")))
    called |= _body("application/json", {"type": "array", "items": NUMBER})
    values = {"query body": "a", "query requestBody": "b", "body": [1]}
    yield Case("JSON, beside a parameter named body", called, values, "body=a&requestBody=b", json=[1], method="post")


def _other_bodies() -> Iterator[Case]:
    def form(**properties: Json) -> Json:
        return {"type": "object", "properties": properties}

    kind = {"content-type": FORM}
    yield Case(
        "form, a flag", _body(FORM, form(on=FLAG)), {"form on": True}, body="on=true", method="post", headers=kind
    )
    more = _body(FORM, form(on=FLAG) | {"additionalProperties": TEXT})
    yield Case("form, further fields", more, {"form": {"on": True, "x": "y"}}, body="on=true&x=y", method="post")
    joined = _body(FORM, form(tags=TEXTS), encoding={"tags": {"explode": False}})
    yield Case("form, a list not exploded", joined, {"form tags": ["a", "b"]}, body="tags=a,b", method="post")
    binary = {"type": "string", "format": "binary"}
    file = {"form file": {"text": "hello"}}
    first, second = 'form-data; name="file"; filename="', "\r\n\r\nhello\r\n--"
    values = {**file, "form note": "why"}
    parts = (first, second, 'form-data; name="note"\r\n\r\nwhy\r\n')
    yield Case("parts, a file", _body(PARTS, form(file=binary, note=TEXT)), values, contains=parts, method="post")
    image = _body(PARTS, form(file=binary), encoding={"file": {"contentType": "image/png"}})
    yield Case(
        "parts, a file of a kind", image, file, contains=(first, "Content-Type: image/png", second), method="post"
    )
    parts = ('name="tags"\r\n\r\na\r\n', 'name="tags"\r\n\r\nb\r\n')
    yield Case(
        "parts, a list", _body(PARTS, form(tags=TEXTS)), {"form tags": ["a", "b"]}, contains=parts, method="post"
    )
    parts = ('name="at"', "Content-Type: application/json", '\r\n\r\n{"x":1}\r\n')
    yield Case("parts, an object", _body(PARTS, form(at=POINT)), {"form at": {"x": 1}}, contains=parts, method="post")
    listed = _body(PARTS, form(tags=TEXTS), encoding={"tags": {"contentType": "application/json"}})
    parts = ('name="tags"\r\nContent-Type: application/json\r\n\r\n["a","b"]\r\n',)
    yield Case("parts, a list as JSON", listed, {"form tags": ["a", "b"]}, contains=parts, method="post")
    for media, charset, text in (
        ("text/plain", "; charset=utf-8", "hello ü"),
        ("text/csv", "; charset=utf-8", "a,b\n1,2\n"),
        ("application/xml", "", "<a>1</a>"),
        ("application/octet-stream", "", "hello"),
        ("application/x-ndjson", "", '{"a":1}\n{"a":2}\n'),
    ):
        schema = binary if media == "application/octet-stream" else TEXT
        value = {"text": text} if media == "application/octet-stream" else text
        sent = {"content-type": media + charset}
        yield Case(
            f"text, {media.replace('/', ' ')}",
            _body(media, schema),
            {"body": value},
            body=text,
            method="post",
            headers=sent,
        )


def _methods_and_paths() -> Iterator[Case]:
    hue = _one("query", TEXT)
    yield Case("method HEAD", hue, {"query hue": "red"}, "hue=red", method="head")
    yield Case("method OPTIONS", {}, method="options")
    yield Case("method TRACE", {}, method="trace")
    job = _one("path", TEXT, "id")
    yield Case(
        "a colon in the path", job, {"path id": "j1"}, path="/jobs/{id}:cancel", sent="/jobs/j1:cancel", method="post"
    )
    two = _parameters(*(_one("path", TEXT, name)["parameters"][0] for name in ("a", "b")))
    values = {"path a": "me", "path b": "7"}
    yield Case("two in a segment", two, values, path="/x/{a}/{b}.json", sent="/x/me/7.json")
    yield Case("query in the path", hue, {"query hue": "red"}, "fixed=1&hue=red", "/y?fixed=1", "/y")
    clash = _parameters(
        _one("query", TEXT, "version")["parameters"][0], _one("header", TEXT, "version")["parameters"][0]
    )
    values = {"query version": "q", "header version": "h"}
    yield Case("one name in query and header", clash, values, "version=q", headers={"version": "h"})
    clash = _parameters(_one("path", TEXT, "id")["parameters"][0], _one("query", TEXT, "id")["parameters"][0])
    values = {"path id": "p", "query id": "q"}
    yield Case("one name in path and query", clash, values, "id=q", "/z/{id}", "/z/p")


def _swagger() -> Iterator[Case]:
    def listed(**details: Any) -> Json:
        return _parameters({"name": "hue", "in": "query", "type": "array", "items": TEXT, **details})

    def fields(media: str, *parameters: Json) -> Json:
        return {"consumes": [media], "parameters": [{"in": "formData", **one} for one in parameters]}

    for title, details, expected in (
        ("list", {}, "hue=a,b"),
        ("list ssv", {"collectionFormat": "ssv"}, "hue=a%20b"),
        ("list tsv", {"collectionFormat": "tsv"}, "hue=a%09b"),
        ("list pipes", {"collectionFormat": "pipes"}, "hue=a%7Cb"),
        ("list multi", {"collectionFormat": "multi"}, "hue=a&hue=b"),
    ):
        yield Case(f"2.0, {title}", listed(**details), {"query hue": ["a", "b"]}, expected, version="2.0")
    two = fields(FORM, {"name": "a", "type": "string"}, {"name": "n", "type": "integer"})
    values, kind = {"form a": "x y", "form n": 2}, {"content-type": FORM}
    yield Case("2.0, form", two, values, body="a=x%20y&n=2", method="post", version="2.0", headers=kind)
    several = fields(FORM, {"name": "a", "type": "array", "items": TEXT, "collectionFormat": "multi"})
    yield Case("2.0, form list", several, {"form a": ["x", "y"]}, body="a=x&a=y", method="post", version="2.0")
    file = fields(PARTS, {"name": "file", "type": "file"}, {"name": "note", "type": "string"})
    values = {"form file": {"text": "hello"}, "form note": "n"}
    parts = ('name="file"; filename="', "\r\n\r\nhello\r\n--", 'name="note"\r\n\r\nn\r\n')
    yield Case("2.0, file", file, values, contains=parts, method="post", version="2.0")


def _newest() -> Iterator[Case]:
    form = {
        "in": "querystring",
        "name": "all",
        "content": {FORM: {"schema": {"type": "object", "properties": {"a": TEXT, "on": FLAG}}}},
    }
    values = {"querystring all": {"a": "x y", "on": True}}
    yield Case("3.2, whole query", _parameters(form), values, "a=x%20y&on=true", version="3.2.0")
    body = _body("application/json", {"type": "object", "properties": {"filter": TEXT}})
    yield Case("3.2, method QUERY", body, {"body filter": "x"}, json={"filter": "x"}, method="query", version="3.2.0")
    yield Case("3.2, method LINK", {}, method="LINK", version="3.2.0")
    cookie = _one("cookie", TEXTS, "c", style="cookie", explode=False)
    yield Case("3.2, cookie", cookie, {"cookie c": ["a b", "c"]}, headers={"cookie": "c=a b,c"}, version="3.2.0")
    free = _one("path", TEXT, allowReserved=True)
    values = {"path hue": "a:b@c"}
    yield Case("3.2, reserved in the path", free, values, path="/free/{hue}", sent="/free/a:b@c", version="3.2.0")


CASES = tuple(
    case
    for cases in (_in_path, _in_query, _in_headers, _json_bodies, _other_bodies, _methods_and_paths, _swagger, _newest)
    for case in cases()
)


def document(version: str) -> Json:
    """Return the document of all cases of a version."""
    info = {"title": "Wire", "version": "1"}
    if version == "2.0":
        front: Json = {"swagger": version, "info": info, "host": "api.test", "schemes": ["https"]}
    else:
        tree = {"type": "object", "properties": {"value": NUMBER, "children": {"type": "array", "items": TREE}}}
        front = {"openapi": version, "info": info, "servers": [{"url": "https://api.test"}]}
        front["components"] = {"schemas": {"Tree": tree}}
    paths: Json = {}
    for case in (case for case in CASES if case.version == version):
        operation = {"summary": case.title, "responses": {"200": {"description": "Done."}}, **case.operation}
        method = (
            {"additionalOperations": {case.method: operation}} if case.method.isupper() else {case.method: operation}
        )
        paths[case.where] = {**case.item, **method}
    return {**front, "paths": paths}
