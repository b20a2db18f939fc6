"""Selection of operations by tag, path, operation and method; omitted ones are listed with a reason."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcpfactory_codegen.ir import (
    Api,
    ApiOperation,
    JsonSchema,
    Problem,
    Problems,
    Skipped,
    operation_key,
    references,
    split_label,
)
from mcpfactory_codegen.text import listed

NOT_SELECTED: Final = "not selected"
"""Start of the reason of a `Skipped` if the operation is valid but not selected."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The operations to include. Tags, paths and operations add up: one match is enough. Methods narrow the result.

    An empty selection means everything. Operations that the document's `x-mcp` extensions exclude stay excluded,
    unless they are in `include_operations`.

    Attributes:
        include_tags: Tags, compared without regard to case.
        include_paths: Globs over the path template: `*` stays within a segment, `**` does not, `/books/**` includes
            `/books`.
        include_operations: operationIds, or a method and a path: "GET /books/{id}". Either can have a document's
            label as a prefix: "shelf: listBooks".
        include_methods: HTTP methods.
    """

    include_tags: tuple[str, ...] = ()
    include_paths: tuple[str, ...] = ()
    include_operations: tuple[str, ...] = ()
    include_methods: tuple[str, ...] = ()


def select(api: Api, selection: Selection) -> Api:
    """Return the API with the chosen operations only; schemas and security schemes that none of them needs are gone.

    Entries of the selection that match nothing are reported as problems: they are mistyped more often than not.
    """
    problems = Problems()
    rules = _rules(selection)
    methods = {method.upper() for method in selection.include_methods}
    matched: set[tuple[str, str]] = set()
    kept: list[ApiOperation] = []
    skipped: list[Skipped] = []
    for operation in api.operations:
        hits = {(kind, term) for kind, term, accepts in rules if accepts(operation)}
        matched |= hits
        reason = _reason(operation, selection, bool(hits) or not rules, not methods or operation.method in methods)
        if not reason and marked(operation.extensions) is False and not any(kind == "operation" for kind, _ in hits):
            reason = f"{NOT_SELECTED}: the document says that it is not for models"
        if reason:
            skipped.append(operation.skipped(reason))
        else:
            kept.append(operation)
    found = {operation.method for operation in api.operations}
    matched |= {("method", method) for method in methods & found}
    terms = [*((kind, term) for kind, term, _ in rules), *(("method", method) for method in sorted(methods))]
    for kind, term in terms:
        if (kind, term) not in matched:
            message = f"no operation matches the {kind} {term!r}"
            # The selection is not part of the document, so the pointer contains the requested term.
            problems.add("selection-unmatched", f"include-{kind}={term}", message, _hint(api, kind, term))
    return _reduced(api, kept, skipped, problems.all())


def _hint(api: Api, kind: str, term: str) -> str:
    """Return the available terms of a kind, closest match first."""
    known = {
        "tag": {tag for one in api.operations for tag in one.tags},
        "path": {one.path for one in api.operations},
        "operation": {one.operation_id or one.key for one in api.operations},
        "method": {one.method for one in api.operations},
    }
    return listed(term, sorted(known[kind]), f"{kind}s")


def _rules(selection: Selection) -> list[tuple[str, str, Callable[[ApiOperation], bool]]]:
    return [
        *(("tag", term, _by_tag(term)) for term in selection.include_tags),
        *(("path", term, _by_path(term)) for term in selection.include_paths),
        *(("operation", term, _by_operation(term)) for term in selection.include_operations),
    ]


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


def _glob(text: str) -> re.Pattern[str]:
    """`*` and `?` within a segment, `**` across; braces and brackets mean themselves, for paths are full of them."""
    text, below = (text[:-3], "(?:/.*)?") if text.endswith("/**") else (text, "")
    parts = re.split(r"(\*\*|\*|\?)", text)
    translated = {"**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(translated.get(part) or re.escape(part) for part in parts) + below + r"\Z", re.DOTALL)


def _reason(operation: ApiOperation, selection: Selection, included: bool, method: bool) -> str:
    if not included:
        asked = [
            name
            for name, terms in (
                ("tags", selection.include_tags),
                ("paths", selection.include_paths),
                ("operations", selection.include_operations),
            )
            if terms
        ]
        return f"{NOT_SELECTED}: matches none of the selected {' or '.join(asked)}"
    return "" if method else f"{NOT_SELECTED}: {operation.method} is none of the selected methods"


def _reduced(api: Api, kept: list[ApiOperation], skipped: list[Skipped], problems: tuple[Problem, ...]) -> Api:
    schemas = {name: api.schemas[name] for name in sorted(_reached(api, kept))}
    named = {name for operation in kept for alternative in operation.security for name in alternative}
    hosts = {operation.server for operation in kept}
    asked = any(operation.security for operation in api.operations)  # else nothing says who needs which
    return dataclasses.replace(
        api,
        operations=tuple(kept),
        skipped=(*api.skipped, *skipped),
        schemas=schemas,
        security_schemes=tuple(one for one in api.security_schemes if one.name in named or not asked),
        problems=(*api.problems, *problems),
        own_servers=tuple(one for one in api.own_servers if one.name in hosts),
    )


def _reached(api: Api, operations: Iterable[ApiOperation]) -> set[str]:
    """Return the names of all shared schemas that the operations need, also by way of others."""
    reached: set[str] = set()
    seen: set[int] = set()
    waiting: list[JsonSchema] = [schema for operation in operations for schema in _schemas(operation)]
    while waiting:
        schema = waiting.pop()
        if id(schema) in seen:
            continue
        seen.add(id(schema))
        for name in references(schema):
            if name not in reached and name in api.schemas:
                reached.add(name)
                waiting.append(api.schemas[name])
    return reached


def _schemas(operation: ApiOperation) -> Iterator[JsonSchema]:
    yield from (parameter.schema for parameter in operation.parameters)
    if operation.body is not None:
        yield operation.body.schema
    yield from (response.schema for response in operation.responses if response.schema is not None)


# --- Marks in an API document that select operations for models: the `x-mcp…` extensions of all vendors ---
#
# An extension can be at the top of the document, at a path, and at an operation; the innermost one decides. An
# extension that is not a mark (for example an `x-mcp` that describes a server) is ignored.


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
    "x-mcp": _either,
    "x-mcp-tool": _either,
    "x-mcp-enabled": _plain,
    "x-mcp-include": _plain,
    "x-mcp-expose": _plain,
    "x-mcp-disabled": _reverse,
    "x-mcp-exclude": _reverse,
    "x-mcp-ignore": _reverse,
    "x-mcp-skip": _reverse,
    "x-mcp-hidden": _reverse,
    "x-speakeasy-mcp": _either,
}
"""Extension → how its value is read: True, for models; False, not for models; None, it says nothing."""


def marked(extensions: Mapping[str, Any]) -> Mark:
    """Return the mark from an operation's extensions, given outermost first: True, False, or None if unmarked."""
    mark: Mark = None
    for name, value in extensions.items():
        read = EXTENSIONS.get(name.lower())
        if read is not None and (found := read(value)) is not None:
            mark = found
    return mark
