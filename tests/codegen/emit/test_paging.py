"""Paging is recognised from arguments and answers, whatever an API calls them."""

from __future__ import annotations

from typing import Any

from mcpfactory_codegen.describe.tools import DescribedTools, make_api_tools
from mcpfactory_codegen.ir import Api, ApiOperation, ApiParameter, Response
from mcpfactory_codegen.naming import name_api
from mcpfactory_runtime.upstream import Paging
from tests.subtest_table import parametrize_subtests

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
FLAG = {"type": "boolean"}
LIST = {"type": "array", "items": {"type": "object", "properties": {"id": TEXT}}}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def described(parameters: dict[str, Any], answer: Any, *headers: str, method: str = "GET") -> DescribedTools:
    operation = ApiOperation(
        method,
        "/things",
        "",
        parameters=tuple(ApiParameter("query", name, schema) for name, schema in parameters.items()),
        responses=(Response("200", content_type="application/json", schema=answer, headers=headers),),
    )
    api = Api("Shop", operations=(operation,), schemas={"Page": obj(next_cursor=TEXT)})
    return make_api_tools(api, name_api(api))


ROWS: list[tuple[str, dict[str, Any], Any, Paging | None]] = [
    (
        "a cursor beside the list",
        {"cursor": TEXT, "limit": {**WHOLE, "default": 20}},
        obj(items=LIST, next_cursor=TEXT),
        Paging("cursor", "cursor", next=("next_cursor",), items=("items",), size="limit", limit=20),
    ),
    (
        "a cursor in a shared part",
        {"pageToken": TEXT},
        {"allOf": [{"$ref": "#/$defs/Page"}, obj(things=LIST)]},
        Paging("cursor", "pageToken", next=("next_cursor",), items=("things",)),
    ),
    (
        "an offset that is a token",
        {"offset": TEXT},
        obj(data=LIST, next_page=obj(offset=TEXT, uri=TEXT)),
        Paging("cursor", "offset", next=("next_page", "offset"), items=("data",)),
    ),
    (
        "a URL",
        {"$skiptoken": TEXT},
        obj(value=LIST, **{"@odata.nextLink": TEXT}),
        Paging("cursor", "skiptoken", next=("@odata.nextLink",), items=("value",)),
    ),
    (
        "a flag and the last item",
        {"starting_after": TEXT, "created": WHOLE},
        obj(data=LIST, has_more=FLAG),
        Paging("last", "starting_after", items=("data",), more=("has_more",)),
    ),
    (
        "pages from nought",
        {"page": {**WHOLE, "minimum": 0}, "size": WHOLE},
        obj(content=LIST, totalPages=WHOLE, last=FLAG),
        Paging("page", "page", items=("content",), size="size", first=0, done=("last",), pages=("totalPages",)),
    ),
    (
        "page[number]",
        {"page[number]": WHOLE},
        obj(data=LIST, links=obj(next=TEXT)),
        Paging("page", "page_number", items=("data",), next=("links", "next")),
    ),
    (
        "an offset and several lists",
        {"offset": WHOLE},
        obj(books=obj(items=LIST, total=WHOLE), authors=obj(items=LIST, total=WHOLE)),
        Paging("offset", "offset", items=("authors", "items"), total=("authors", "total")),
    ),
    ("a bare list by pages", {"page": WHOLE}, LIST, Paging("page", "page")),
    ("dates are no cursors", {"after": TEXT, "before": TEXT}, obj(data=LIST), None),
    ("a start that is a date", {"start": TEXT}, obj(data=LIST), None),
    ("nothing that pages", {"q": TEXT}, obj(data=LIST, next_cursor=TEXT), None),
]


@parametrize_subtests("parameters, answer, paging", [row[1:] for row in ROWS])
def test_paging_is_recognised(parameters: dict[str, Any], answer: Any, paging: Paging | None) -> None:
    (tool,) = described(parameters, answer).tools
    assert tool.paging == paging


def test_a_cursor_without_a_next_one_is_reported_unless_a_link_header_has_it() -> None:
    unclear = described({"cursor": TEXT}, LIST)
    assert [one.code for one in unclear.problems] == ["paging-unclear"]
    assert "GET /things" in unclear.problems[0].message
    linked = described({"cursor": TEXT}, LIST, "link")
    assert linked.problems == ()
    assert linked.tools[0].paging == Paging("link", "cursor")
