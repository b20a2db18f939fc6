"""What an API must have for a kind of mutation to have a place in its server: told from the document, never from its tests.

What generated tests leave out of a document is therefore no excuse: a mutation that has a place and is not noticed has escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_codegen.ir import Api, ApiOperation, ApiParameter

__all__ = ["PLACES", "has_place"]

Json = dict[str, Any]


def has_place(kind: str, api: Api, generated: str) -> bool:
    """Whether a kind of mutation can change anything in the server of an API, whose generated code is `generated`."""
    found = PLACES.get(kind)
    return found is None or found(api, generated)


def _parameters(api: Api, *places: str) -> Iterator[ApiParameter]:
    return (one for operation in api.operations for one in operation.parameters if not places or one.place in places)


def _bodies(api: Api, words: str) -> Iterator[Any]:
    return (one.body for one in api.operations if one.body is not None and words in one.body.content_type)


def _resolved(schema: Any, api: Api) -> Json:
    """A schema with its references followed; {} for what is none."""
    for _ in range(5):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str):
            break
        schema = api.schemas.get(reference.rpartition("/")[2])
    return schema if isinstance(schema, dict) else {}


def _is(schema: Any, api: Api, *types: str) -> bool:
    given = _resolved(schema, api).get("type")
    return any(one in types for one in (given if isinstance(given, list) else [given]))


def _of_type(*types: str, places: tuple[str, ...] = ("path", "query")) -> Callable[[Api, str], bool]:
    """A parameter of one of these types, or a field of a form."""

    def found(api: Api, _: str) -> bool:
        fields = (
            part for body in _bodies(api, "form") for part in _resolved(body.schema, api).get("properties", {}).values()
        )
        return any(_is(one.schema, api, *types) for one in _parameters(api, *places)) or any(
            _is(part, api, *types) for part in fields
        )

    return found


def _free_text(*places: str) -> Callable[[Api, str], bool]:
    """A parameter that takes any text."""

    def found(api: Api, _: str) -> bool:
        schemas = [_resolved(one.schema, api) for one in _parameters(api, *places)]
        return any(
            one.get("type") == "string" and not {"enum", "const", "format", "pattern"} & one.keys() for one in schemas
        )

    return found


def _operation(fits: Callable[[ApiOperation], bool]) -> Callable[[Api, str], bool]:
    return lambda api, _: any(map(fits, api.operations))


def _answer(*types: str) -> Callable[[Api, str], bool]:
    """A JSON answer of success, of one of these types, or of any where none is named."""

    def found(api: Api, _: str) -> bool:
        answers = (
            one
            for operation in api.operations
            for one in operation.responses
            if one.status.startswith("2") and "json" in one.content_type and one.schema is not None
        )
        return any(not types or _is(one.schema, api, *types) for one in answers)

    return found


def _integer_argument(api: Api, _: str) -> bool:
    bodies = (
        part for body in _bodies(api, "json") for part in _resolved(body.schema, api).get("properties", {}).values()
    )
    return any(_is(one.schema, api, "integer") for one in _parameters(api)) or any(
        _is(one, api, "integer") for one in bodies
    )


def _field_of_body(*types: str) -> Callable[[Api, str], bool]:
    """A field of a JSON body, of one of these types."""
    return lambda api, _: any(
        _is(part, api, *types)
        for body in _bodies(api, "json")
        for part in _resolved(body.schema, api).get("properties", {}).values()
    )


def _boolean_argument(api: Api, generated: str) -> bool:
    return _of_type("boolean")(api, generated) or _field_of_body("boolean")(api, generated)


def _listed(*, exploded: bool) -> Callable[[Api, str], bool]:
    """An array in the query, in the style `form`, whose items have a name each or share one."""
    return lambda api, _: any(
        _is(one.schema, api, "array") and one.style in ("", "form") and (one.explode is not False) is exploded
        for one in _parameters(api, "query")
    )


def _generates(*words: str) -> Callable[[Api, str], bool]:
    return lambda _, generated: all(word in generated for word in words)


_QUERY: Final = _operation(lambda one: any(parameter.place == "query" for parameter in one.parameters))
PLACES: Final[dict[str, Callable[[Api, str], bool]]] = {
    "paths are not encoded": _free_text("path"),
    "everything is encoded twice": _free_text("path", "query"),
    "spaces are plus signs": _free_text("path"),
    "texts are in lower case": _free_text("path", "query"),
    "queries are not sent": _QUERY,
    "the last query is lost": _QUERY,
    "names of queries in lower case": _operation(
        lambda one: any(p.place == "query" and p.name != p.name.lower() for p in one.parameters)
    ),
    "cookies are not sent": lambda api, _: any(True for _one in _parameters(api, "cookie")),
    "headers are not sent": lambda api, _: any(
        one.name.lower() not in {scheme.name.lower() for scheme in api.security_schemes}
        for one in _parameters(api, "header")
    ),
    "credentials are not sent": lambda api, _: (
        any(scheme.place == "header" or scheme.kind in ("basic", "bearer", "oauth2") for scheme in api.security_schemes)
        and any(any(names) for one in api.operations for names in one.security)
    ),
    "items of a list are lost": _of_type("array", places=("query",)),
    "booleans as in Python": _of_type("boolean"),
    "integers are decimals": _of_type("integer"),
    "a field of the body is lost": lambda api, _: any(
        _resolved(body.schema, api).get("properties") for body in _bodies(api, "json")
    ),
    "the content type is not sent": _operation(lambda one: one.body is not None),
    "the method is POST": _operation(lambda one: one.method.upper() != "POST"),
    "accept is not sent": _operation(
        lambda one: any(answer.status.startswith("2") and answer.content_type for answer in one.responses)
    ),
    "what changes is repeated": _operation(lambda one: one.method.upper() in ("POST", "PATCH")),
    "answers lose a member": _answer("object"),
    "lists of answers lose an item": _answer("array"),
    "structured content is empty": _answer("object"),
    "the next page is this page": _generates("Paging(", '"page"'),
    "offsets skip an item": _generates("Paging(", '"offset"'),
    "cursors are not followed": _generates("Paging(", '"cursor"'),
    "members of objects in queries lose their names": _of_type("object", places=("query",)),
    "the last field of a form is lost": lambda api, _: any(
        _resolved(body.schema, api).get("properties") for body in _bodies(api, "x-www-form-urlencoded")
    ),
    "what passes is not tried again": _operation(lambda one: one.method.upper() not in ("POST", "PATCH")),
    "lists are joined with semicolons": _listed(exploded=False),
    "lists that repeat their name are joined": _listed(exploded=True),
    "numbers of bodies are texts": _field_of_body("integer", "number"),
    "objects of bodies are texts": _field_of_body("object", "array"),
    "false is not sent": _boolean_argument,
    "before: booleans are turned": _boolean_argument,
    "before: the last argument is lost": _operation(lambda one: bool(one.parameters) or one.body is not None),
    "after: structured content is another": _answer("object"),
    "after: lists are turned": _answer("array"),
    "before: a number is changed": _integer_argument,
    "after: one sentence": _answer(),
    "after: nothing": _answer(),
    "after: the first answer for all": _answer(),
}
