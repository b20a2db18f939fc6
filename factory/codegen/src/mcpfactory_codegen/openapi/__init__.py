"""Conversion of OpenAPI 3.0 to 3.2, Swagger 2.0 and the formats of `sources` to the intermediate form. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import MARK_PREFIXES, Api, ApiOperation, ProblemCollector, Response, SkippedOperation
from mcpfactory_codegen.openapi.content import read_request_body, read_responses
from mcpfactory_codegen.openapi.context import SPEC_VERSIONS, Node, ReaderContext, UnusableOperationError, spec_version
from mcpfactory_codegen.openapi.parameters import merge_parameters, normalize_path_template, read_parameters
from mcpfactory_codegen.openapi.references import Location, References, UnresolvedError
from mcpfactory_codegen.openapi.schema_translation import SchemaTranslator
from mcpfactory_codegen.openapi.security import Security
from mcpfactory_codegen.openapi.servers import (
    operation_server_override,
    report_missing_root,
    resolve_servers,
    root_server_urls,
)
from mcpfactory_codegen.openapi.shared_schemas import HiddenProperties
from mcpfactory_codegen.openapi.summaries import without_framework_summaries
from mcpfactory_codegen.read.document import Document, DocumentFile
from mcpfactory_codegen.sources import DocumentKind, recognize_document_kind
from mcpfactory_codegen.sources.translation_helpers import Translation, table, text


def read_api(document: Document) -> Api:
    """Read a document. Each operation is in either `operations` or `skipped`.

    Invalid content never raises an exception, but becomes a `Problem` of the result. A problem has a JSON pointer into
    the document, or `file#pointer` for another file.
    """
    problems = ProblemCollector()
    problems.extend(document.problems)
    spec = spec_version(document.data, problems)
    if spec is None:
        return Api(title=_title(document), problems=problems.all())
    references = References(document)
    raws = [part.raw for part in document.parts.values()] or [document.raw]
    raws.extend(overlay.raw for overlay in document.overlays.values())
    visibility = HiddenProperties(references, iter(raws))
    schemas = SchemaTranslator(spec, references, visibility, problems)
    context = ReaderContext(document, spec, references, problems, schemas.translate)
    root = context.root
    info = _info(root.at("info"))
    servers = root_server_urls(root)
    security = Security(context)
    operations, skipped = read_operations(context, security, servers)
    if operations and security.unused_scheme_alternatives:
        message = "security schemes are defined, but no operation uses one; each is sent if its credential is set"
        problems.add("security-unapplied", spec.schemes, message, "add `security` at the top")
        operations = [replace(operation, security=security.unused_scheme_alternatives) for operation in operations]
    stated = spec.shape == "2" or bool(document.data.get("servers"))
    settled = resolve_servers(servers, operations, stated=stated)
    if not servers and (settled.assumed or not settled.root):
        report_missing_root(root, settled.assumed)
    for key in ("webhooks", "x-webhooks"):
        if count := len(root.at(key).table):
            message = f"webhooks are requests that the API sends, so they cannot be tools; left out: {count}"
            root.at(key).report("webhooks-ignored", message)
    shared = schemas.shared()
    for location, error in references.unresolved():
        problems.add(error.code, str(location), str(error), error.hint)
    for location, message in references.repaired:
        problems.add("reference-repaired", str(location.down("$ref")), message, "correct the reference")
    return Api(
        title=info["title"] or _title(document),
        version=info["version"],
        description=info["description"],
        servers=settled.root,
        operations=without_framework_summaries(settled.operations),
        schemas=shared,
        security_schemes=security.schemes,
        tag_descriptions=_tags(root.at("tags")),
        skipped=tuple(skipped),
        problems=problems.all(),
        external_docs=text(table(document.data, "externalDocs"), "url"),
        own_servers=settled.own,
    )


def _info(written: Node) -> dict[str, str]:
    target = written.target()
    info = written.with_value(target.value if target is not None else None)
    if info.is_object("info-invalid", "`info` has to be an object with `title` and `version`; left empty", null=True):
        info.check(
            "Info", {key: str(value) if isinstance(value, float) else value for key, value in info.value.items()}
        )
    return {key: info.at(key).text() for key in ("title", "version", "description")}


def _title(document: Document) -> str:
    """Return the file name of the document, as its title."""
    name = document.source.rstrip("/").replace("\\", "/").rpartition("/")[2]
    return name.partition("?")[0].partition(".")[0] or "API"


def _tags(tags: Node) -> dict[str, str]:
    found: dict[str, str] = {}
    for tag in tags.elements():
        if isinstance(name := tag.table.get("name"), str):
            described = tag.at("description").text()
            found.setdefault(name, described or tag.at("summary").text())
    return found


MAX_OPERATIONS: Final = 30_000
"""Maximum operations of a document, above the 11,422 operations of the largest known public API."""

_FIELDS: Final = frozenset({"$ref", "summary", "description", "servers", "parameters", "additionalOperations"})
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}\Z")


class RawOperation(NamedTuple):
    """One operation as written in the document.

    The location of `node` is below `paths` even if the path item is a reference.
    """

    path: str
    method: str
    item: Node
    node: Node


def read_operations(
    context: ReaderContext, security: Security, servers: tuple[str, ...]
) -> tuple[list[ApiOperation], list[SkippedOperation]]:
    """Return the operations below `paths`, in the order of the document, and the skipped operations."""
    operations: list[ApiOperation] = []
    skipped: list[SkippedOperation] = []
    taken: dict[str, Location] = {}
    ids: dict[str, Location] = {}
    paths = context.root.at("paths")
    for written in _written(paths):
        path, method, _, node = written
        if len(taken) >= MAX_OPERATIONS:
            message = f"the document has more than {MAX_OPERATIONS:,} operations; the rest was not read"
            paths.report("too-many-operations", message, "split the document")
            break
        name, location = _id(node), node.location
        try:
            if (first := taken.setdefault(f"{method} {path}", location)) != location:
                raise UnusableOperationError(
                    "operation-duplicate", location, f"{method} {path} is already defined at {first}"
                )
            operation = _read(security, servers, written)
        except UnusableOperationError as error:
            message = f"{method} {path} was left out: {error}"
            context.problems.add(error.code, str(error.location), message, error.hint)
            skipped.append(SkippedOperation(method, path, name, str(location), str(error)))
        except Exception as error:  # noqa: BLE001  # a bug costs one operation, not the whole API
            message = f"{method} {path} was left out: reading it failed ({type(error).__name__}: {str(error)[:200]})"
            node.report("operation-internal-error", message, "this is a bug in mcpfactory; please report it")
            skipped.append(
                SkippedOperation(method, path, name, str(location), f"reading it failed ({type(error).__name__})")
            )
        else:
            operations.append(operation)
            name = operation.operation_id
            if name and (first := ids.setdefault(name, location)) != location:
                message = f"the operationId {name[:80]!r} is already used by {first}"
                node.at("operationId").report("operation-id", message, "give every operation a unique operationId")
    return operations, skipped


def _id(operation: Node) -> str:
    name = operation.table.get("operationId")
    return str(name) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""


def _written(section: Node) -> Iterator[RawOperation]:
    target = section.target()
    paths = section.with_value(target.value if target is not None else None)
    paths.is_object("paths-invalid", "`paths` has to be an object; there is nothing to read")
    for key, written in paths.members():
        if key.startswith("x-") or (key == "$ref" and isinstance(written.value, str)):
            continue
        item = _item(written)
        if item is None:
            continue
        path = key
        if not key.startswith("/"):
            path = f"/{key}"
            message = f"the path {key[:200]!r} does not begin with a slash; read as {path[:200]!r}"
            written.report("path-slash", message)
        for method, node in _methods(item, written.location):
            yield RawOperation(path, method, item, node)


def _item(written: Node) -> Node | None:
    """Return the path item.

    Keywords next to a `$ref` override keywords of its target.
    """
    item = written.target()
    if item is None:
        return None
    if written.is_reference() and isinstance(item.value, dict):
        beside = {key: value for key, value in written.value.items() if key != "$ref"}
        return item.with_value({**item.value, **beside})
    message = "a path has to be an object of operations; left out"
    return item if item.is_object("path-invalid", message) else None


def _methods(item: Node, location: Location) -> Iterator[tuple[str, Node]]:
    """Yield the operations of a path item.

    `location` is a path below `paths`, even if a `$ref` replaces the path item.
    """
    spec, newest = item.context.spec, SPEC_VERSIONS[-1]
    path = Node(item.context, item.value, location)
    for key, node in path.members():
        if key in spec.methods:
            if node.value is not None:
                yield key.upper(), node
        elif key.lower() in spec.methods and isinstance(node.value, dict):
            message = f"the method {key!r} has to be written in lower case; read anyway"
            node.report("path-method", message)
            yield key.upper(), node
        elif key in newest.methods and isinstance(node.value, dict):
            message = f"the method {key!r} does not exist in {spec.version}; read anyway"
            node.report("path-method", message, f"it was added in {newest.version}")
            yield key.upper(), node
        elif key not in _FIELDS and not key.startswith("x-"):
            node.report("path-method", f"{key[:80]!r} is not an HTTP method; ignored")
    for key, node in path.at("additionalOperations").members():
        if _TOKEN.match(key):
            yield key.upper(), node
        else:
            node.report("path-method", f"{key[:80]!r} is not an HTTP method; ignored")


def _read(security: Security, servers: tuple[str, ...], written: RawOperation) -> ApiOperation:
    """Return one operation, with the actual location of its text for problems."""
    path, method, item, identity = written
    tail = identity.location.pointer.split("/")[3:]  # drop three tokens: "", "paths" and the path
    place = Location(item.location.part, "/".join([item.location.pointer, *tail]))
    operation = _resolved(Node(item.context, identity.value, place))
    if operation.value.get("callbacks"):
        message = "callbacks need a separate server and were left out"
        operation.at("callbacks").report("callbacks-ignored", message)
    operation = operation.convert_booleans("deprecated")
    found = merge_parameters(item, operation, path)
    path, patterns = _path(path, found, identity)
    inside = [one for one in found if one.value["in"] in {"body", "formData"}]
    outside = [one for one in found if one not in inside] if inside else found
    tags = operation.value.get("tags")
    if isinstance(tags, str):
        message = "`tags` is a string; read as a list of one"
        operation.at("tags").report("operation-tags", message, "write `- name`")
        tags = [tags]
    return ApiOperation(
        method=method,
        path=path,
        pointer=str(identity.location),
        operation_id=_id(operation),
        summary=operation.at("summary").text() or item.at("summary").text(),
        description=operation.at("description").text() or item.at("description").text(),
        tags=tuple(dict.fromkeys(tag for tag in tags if isinstance(tag, str))) if isinstance(tags, list) else (),
        deprecated=operation.value.get("deprecated") is True,
        parameters=read_parameters(outside, path, patterns, identity),
        body=read_request_body(operation, inside),
        responses=_responses(operation, method),
        security=security.of(operation),
        scopes=security.scopes_of(operation),
        server=operation_server_override((operation, item), servers),
        external_docs=text(table(operation.value, "externalDocs"), "url"),
        extensions=_extensions(item.context.document.data, item.value, operation.value),
    )


def _responses(operation: Node, method: str) -> tuple[Response, ...]:
    """Return the responses, without a body for HEAD (RFC 9110 §9.3.2)."""
    found = read_responses(operation)
    if method != "HEAD" or not any(one.content_type for one in found):
        return found
    message = "a response to HEAD has no body; the described one is ignored"
    operation.at("responses").report("head-body", message, "describe its headers only")
    return tuple(replace(one, content_type="", schema=None, example=None) for one in found)


_COLON_PARAMETER: Final = re.compile(r"(?<=/):(\w+)(?=/|\Z)")


def _path(path: str, found: list[Node], identity: Node) -> tuple[str, dict[str, str]]:
    """Return the path with each parameter in braces, and the patterns of values with slashes. Report other syntax."""
    names = frozenset(one.value["name"] for one in found if one.value["in"] == "path")
    if any(name not in path for name in names):  # `/authors/:id` with a parameter `authorId`
        names |= {*_COLON_PARAMETER.findall(path)}
    plain, patterns = normalize_path_template(path, names)
    odd = ""
    if plain != path and not patterns:
        odd = f"the parameters of {path[:200]!r} are not written as {{name}}; read as {plain[:200]!r}"
    elif re.search(r"[{}\s]", re.sub(r"\{[^{}]*\}", "", path)):
        odd = f"the path {path[:200]!r} has an unpaired brace or white space; sent encoded"
    if odd:
        identity.report("path-unusual-syntax", odd, "write the path as the API has it, parameters as {name}")
    return plain, patterns


def _extensions(*owners: dict[str, Any]) -> dict[str, Any]:
    """Return the extensions that mark operations, innermost extensions last."""
    found: dict[str, Any] = {}
    for owner in owners:
        for key, value in owner.items():
            if key.startswith(MARK_PREFIXES):
                found.pop(key, None)
                found[key] = value
    return found


def _resolved(written: Node) -> Node:
    operation = written
    if written.is_reference():
        try:
            operation = written.follow()
        except UnresolvedError as error:
            raise UnusableOperationError(error.code, written.location, str(error), error.hint) from None
        message = "an operation must not be a reference; the reference was followed"
        written.report("operation-reference", message)
    if not isinstance(operation.value, dict):
        hint = "write an object with `responses`"
        raise UnusableOperationError("operation-invalid", operation.location, "it is not an object", hint)
    return operation


# --- documents of any kind ---


def read_source(document: Document) -> Api:
    """Read a document of any kind.

    The pointers in problems refer to the original document, not to its translation.
    """
    translation = _translation(document)
    if translation is None:
        return read_api(document)
    raw = json.dumps(translation.data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    part = DocumentFile(translation.data, raw)
    derived = Document(translation.data, raw, "json", document.source, document.main, {document.main: part})
    return translation.with_source_pointers(read_api(derived), document.data, document.problems)


def _translation(document: Document) -> Translation | None:
    source = recognize_document_kind(document.data)
    return source.translate(document.data) if source is not None and source.translate is not None else None


def document_kind(document: Document) -> DocumentKind:
    """Return the kind of a document."""
    source = recognize_document_kind(document.data)
    assert source is not None, "load() refuses other kinds"
    return source


def title_of(document: Document) -> str:
    """Return the title of the API, or ""."""
    translation = _translation(document)
    info = (document.data if translation is None else translation.data).get("info")
    return str(info.get("title", "")) if isinstance(info, dict) else ""
