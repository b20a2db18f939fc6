"""Selection of operations by tag, path, operation and method, with a reason for each omission."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from mcpfactory_codegen.curation import Selection
from mcpfactory_codegen.ir import (
    Api,
    ApiOperation,
    JsonSchema,
    Problem,
    ProblemCollector,
    SkippedOperation,
    operation_key,
    split_label,
)
from mcpfactory_codegen.text import did_you_mean
from mcpfactory_runtime.schemas.walk import reachable_definitions

NOT_SELECTED: Final = "not selected"
"""First words of the reason in `SkippedOperation` for an operation that is valid but not selected."""


def select(api: Api, selection: Selection) -> Api:
    """Return the API with the selected operations only, and with the schemas and security schemes that they use.

    A term without a match is reported as a problem, because it is probably mistyped.
    """
    problems = ProblemCollector()
    terms = [(field, term, matcher(term)) for field, matcher in _MATCHERS.items() for term in getattr(selection, field)]
    matched: set[tuple[str, str]] = set()
    kept: list[ApiOperation] = []
    skipped: list[SkippedOperation] = []
    for operation in api.operations:
        hits = {(field, term) for field, term, accepts in terms if accepts(operation)}
        matched |= hits
        if reason := _reason(operation, selection, {field for field, _ in hits}):
            skipped.append(operation.skipped(reason))
        else:
            kept.append(operation)
    for field, term, _ in terms:
        if (field, term) not in matched:
            kind = field.removesuffix("s").rpartition("_")[2]
            message = f"no operation matches the {kind} {term!r}"
            # the selection has no location in the document, so that the selected term is the location
            place = f"{field.removesuffix('s').replace('_', '-')}={term.upper() if kind == 'method' else term}"
            problems.add("selection-unmatched", place, message, _hint(api, kind, term))
    return _reduced(api, kept, skipped, problems.all())


def _reason(operation: ApiOperation, selection: Selection, hits: set[str]) -> str:
    """Return the reason to skip an operation, or "".

    `hits` has the fields of the selection that match the operation.
    """
    asked = [field.removeprefix("include_") for field in _ADDING if getattr(selection, field)]
    if asked and not hits & _ADDING.keys():
        return f"{NOT_SELECTED}: matches none of the selected {' or '.join(asked)}"
    if selection.include_methods and "include_methods" not in hits:
        return f"{NOT_SELECTED}: {operation.method} is not one of the selected methods"
    if inclusion_from_extensions(operation.extensions) is False and "include_operations" not in hits:
        return f"{NOT_SELECTED}: an extension of the document excludes it from use by models"
    return ""


def _hint(api: Api, kind: str, term: str) -> str:
    known = {
        "tag": {tag for one in api.operations for tag in one.tags},
        "path": {one.path for one in api.operations},
        "operation": {one.operation_id or one.key for one in api.operations},
        "method": {one.method for one in api.operations},
    }
    return did_you_mean(term, sorted(known[kind]), f"{kind}s")


def _by_tag(term: str) -> Callable[[ApiOperation], bool]:
    folded = term.casefold()
    return lambda operation: any(tag.casefold() == folded for tag in operation.tags)


def _by_path(term: str) -> Callable[[ApiOperation], bool]:
    pattern = _glob(term)
    return lambda operation: pattern.match(operation.path) is not None


def _by_operation(term: str) -> Callable[[ApiOperation], bool]:
    label, plain = split_label(term)
    method, _, path = plain.strip().partition(" ")
    wanted = {plain, f"{method.upper()} {path.strip()}"}

    def accepts(operation: ApiOperation) -> bool:
        named = {operation.operation_id, operation_key(operation.method, operation.path)} - {""}
        return operation.operation_id == term or (label in {"", operation.label} and bool(wanted & named))

    return accepts


def _by_method(term: str) -> Callable[[ApiOperation], bool]:
    method = term.upper()
    return lambda operation: operation.method == method


_ADDING: Final[Mapping[str, Callable[[str], Callable[[ApiOperation], bool]]]] = {
    "include_tags": _by_tag,
    "include_paths": _by_path,
    "include_operations": _by_operation,
}
"""Fields of a selection that add operations, each with a function that makes a matcher from a term."""
_MATCHERS: Final = {**_ADDING, "include_methods": _by_method}


def _glob(text: str) -> re.Pattern[str]:
    """Return a glob as a pattern, in which `*` and `?` match within a segment and `**` matches across segments."""
    text, below = (text[:-3], "(?:/.*)?") if text.endswith("/**") else (text, "")
    parts = re.split(r"(\*\*|\*|\?)", text)
    translated = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(translated.get(part) or re.escape(part) for part in parts) + below + r"\Z", re.DOTALL)


def _reduced(api: Api, kept: list[ApiOperation], skipped: list[SkippedOperation], problems: tuple[Problem, ...]) -> Api:
    needed = reachable_definitions((schema for operation in kept for schema in _schemas(operation)), api.schemas)
    schemas = {name: api.schemas[name] for name in sorted(needed)}
    named = {name for operation in kept for alternative in operation.security for name in alternative}
    hosts = {operation.server for operation in kept}
    # if no operation states its security, any operation may need any scheme
    asked = any(operation.security for operation in api.operations)
    return dataclasses.replace(
        api,
        operations=tuple(kept),
        skipped=(*api.skipped, *skipped),
        schemas=schemas,
        security_schemes=tuple(one for one in api.security_schemes if one.name in named or not asked),
        problems=(*api.problems, *problems),
        own_servers=tuple(one for one in api.own_servers if one.name in hosts),
    )


def _schemas(operation: ApiOperation) -> Iterator[JsonSchema]:
    yield from (parameter.schema for parameter in operation.parameters)
    if operation.body is not None:
        yield operation.body.schema
    yield from (response.schema for response in operation.responses if response.schema is not None)


# --- Marks in an API document that select operations for models: the `x-mcp…` extensions of all vendors ---
#
# An extension can be at the top of the document, at a path, and at an operation. The innermost extension applies.
# Extensions of other forms are ignored, for example an `x-mcp` that describes a server.


Mark = bool | None

_YES: Final = ("enabled", "include", "expose", "exposed")
_NO: Final = ("disabled", "skip", "ignore", "exclude", "hidden", "hide")


def _plain(value: Any) -> Mark:
    return value if isinstance(value, bool) else None


def _reverse(value: Any) -> Mark:
    return not value if isinstance(value, bool) else None


def _either(value: Any) -> Mark:
    if not isinstance(value, Mapping):
        return _plain(value)
    for names, read in ((_NO, _reverse), (_YES, _plain)):
        for name in names:
            if (mark := read(value.get(name))) is not None:
                return mark
    return None


EXTENSIONS: Final[dict[str, Callable[[Any], Mark]]] = {
    **dict.fromkeys(("x-mcp", "x-mcp-tool", "x-speakeasy-mcp"), _either),
    **dict.fromkeys(("x-mcp-enabled", "x-mcp-include", "x-mcp-expose"), _plain),
    **dict.fromkeys((f"x-mcp-{word}" for word in ("disabled", "exclude", "ignore", "skip", "hidden")), _reverse),
}
"""Functions that read the value of an extension.

The result True includes an operation, and the result False excludes an operation.
"""


def inclusion_from_extensions(extensions: Mapping[str, Any]) -> Mark:
    """Return the mark of the innermost extension. `extensions` are sorted from outermost to innermost."""
    mark: Mark = None
    for name, value in extensions.items():
        read = EXTENSIONS.get(name.lower())
        if read is not None and (found := read(value)) is not None:
            mark = found
    return mark
