"""Hypothesis strategies for operations with similar names."""

from __future__ import annotations

from hypothesis import strategies as st

from mcpfactory_codegen.inputs import Input, Place
from mcpfactory_codegen.ir import ApiOperation, ApiSecurityScheme

METHODS = st.sampled_from(["GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE", "QUERY"])
# Few words in many spellings, so that most names collide. Sometimes arbitrary text.
WORDS = st.sampled_from(
    ["book", "books", "Book", "book-s", "user", "v1", "api", "list", "import", "2fa", "größe", "本", ""]
)
SEGMENTS = st.one_of(WORDS, st.sampled_from(["{id}", "{book_id}", "{}", "a.b", "x:y"]), st.text(max_size=12))
PATHS = st.lists(SEGMENTS, max_size=5).map(lambda parts: "/" + "/".join(part.replace("/", "") for part in parts))
IDS = st.one_of(
    st.just(""),
    st.sampled_from(["getBook", "get_book", "books/get", "Books.GetBook", "list", "operation_12", "a" * 90, "import"]),
    st.text(max_size=80),
)
TAGS = st.lists(st.one_of(WORDS, st.text(max_size=20)), max_size=2).map(tuple)
OPERATIONS = st.builds(
    lambda method, path, operation_id, tags: ApiOperation(method, path, "", operation_id=operation_id, tags=tags),
    METHODS,
    PATHS,
    IDS,
    TAGS,
)
APIS = st.lists(OPERATIONS, max_size=25, unique_by=lambda operation: operation.key)

PLACES: list[Place] = ["path", "query", "querystring", "header", "cookie", "body", "form"]
INPUTS = st.lists(
    st.builds(
        lambda place, name: Input(place, name, {"type": "string"}, required=False),
        st.sampled_from(PLACES),
        st.one_of(
            st.sampled_from(
                ["limit", "Limit", "li-mit", "li_mit", "from", "api", "self", "body", "", "x" * 80, "1", "é"]
            ),
            st.text(max_size=30),
        ),
    ),
    max_size=14,
    unique_by=lambda item: item.slot,
)
SCHEMES = st.lists(
    st.builds(
        ApiSecurityScheme,
        st.one_of(
            st.sampled_from(["apiKey", "api_key", "bearerAuth", "oauth2", "basic", "admin", ""]), st.text(max_size=12)
        ),
        st.sampled_from(["apiKey", "basic", "bearer"]),
    ),
    max_size=6,
    unique_by=lambda scheme: scheme.name,
)
