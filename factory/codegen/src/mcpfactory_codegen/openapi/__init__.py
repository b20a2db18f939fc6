"""Conversion of API documents to the intermediate form: OpenAPI 3.0, 3.1 and 3.2, Swagger 2.0, and what `sources` translates.

`reading` handles differences between versions, `references` locations and references, `translate` schemas. Operations
are read with `parameters`, `content`, `security` and `servers`. All pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mcpfactory_codegen.ir import MARK_PREFIXES, Api, ApiOperation, Problems, Response, Skipped
from mcpfactory_codegen.openapi.content import read_body, read_responses
from mcpfactory_codegen.openapi.parameters import gather, plain_path, read_parameters
from mcpfactory_codegen.openapi.reading import SPEC_VERSIONS, BrokenError, Reading, check_object, flags, spec_version
from mcpfactory_codegen.openapi.references import LocatedNode, Location, References, UnresolvedError
from mcpfactory_codegen.openapi.security import Security
from mcpfactory_codegen.openapi.servers import own_server, report_rootless, root_servers, settle_servers
from mcpfactory_codegen.openapi.sharing import Visibility
from mcpfactory_codegen.openapi.translate import Schemas
from mcpfactory_codegen.read.document import Document, Part
from mcpfactory_codegen.sources import Source, recognise
from mcpfactory_codegen.sources.translation import Translation


def read_api(document: Document) -> Api:
    """Read a document. Never raises for invalid content: every error is a `Problem` of the result.

    Each operation of the document is either in `operations` or in `skipped`. Pointers of problems are JSON pointers
    into the document; those into another of its files are written `file#pointer`.
    """
    problems = Problems()
    problems.extend(document.problems)
    spec = spec_version(document.data, problems)
    if spec is None:
        return Api(title=_title(document), problems=problems.all())
    references = References(document)
    raws = [part.raw for part in document.parts.values()] or [document.raw]
    raws.extend(overlay.raw for overlay in document.overlays.values())
    visibility = Visibility(references, iter(raws))
    schemas = Schemas(spec, references, visibility, problems)
    reading = Reading(document, spec, references, problems, schemas.translate)
    info = _info(reading)
    servers = root_servers(reading)
    security = Security(reading)
    operations, skipped = read_operations(reading, security, servers)
    if operations and security.unapplied:
        message = "security schemes are defined, but nothing asks for one; each is sent when its credentials are there"
        reading.report("security-unapplied", Location("", spec.schemes), message, "add `security` at the top")
        operations = [replace(operation, security=security.unapplied) for operation in operations]
    stated = spec.shape == "2" or bool(document.data.get("servers"))
    settled = settle_servers(servers, operations, stated=stated)
    if not servers and (settled.assumed or not settled.root):
        report_rootless(reading, settled.assumed)
    _report_webhooks(reading)
    shared = schemas.shared()
    for location, message in references.repaired:
        reading.report("reference-mended", location.down("$ref"), message, "correct the reference")
    docs = document.data.get("externalDocs")
    return Api(
        title=info["title"] or _title(document),
        version=info["version"],
        description=info["description"],
        servers=settled.root,
        operations=settled.operations,
        schemas=shared,
        security_schemes=security.schemes,
        tag_descriptions=_tags(reading),
        skipped=tuple(skipped),
        problems=problems.all(),
        external_docs=docs["url"] if isinstance(docs, dict) and isinstance(docs.get("url"), str) else "",
        own_servers=settled.own,
    )


def _info(reading: Reading) -> dict[str, str]:
    location = Location("", "/info")
    target = reading.follow(reading.document.data.get("info"), location)
    node: Any = target.node if target is not None else None
    if not isinstance(node, dict):
        reading.report("info-invalid", location, "`info` has to be an object with `title` and `version`; left empty")
        node = {}
    else:
        texts = {key: str(value) if isinstance(value, float) else value for key, value in node.items()}
        check_object(reading, "Info", texts, location)
    return {key: reading.text(node.get(key), location.down(key)) for key in ("title", "version", "description")}


def _title(document: Document) -> str:
    """Return a title for a document without one: its file name."""
    name = document.source.rstrip("/").replace("\\", "/").rpartition("/")[2]
    return name.partition("?")[0].partition(".")[0] or "API"


def _tags(reading: Reading) -> dict[str, str]:
    tags = reading.document.data.get("tags")
    found: dict[str, str] = {}
    for index, tag in enumerate(tags if isinstance(tags, list) else []):
        if isinstance(tag, dict) and isinstance(tag.get("name"), str):
            location = Location("", f"/tags/{index}")
            text = reading.text(tag.get("description"), location.down("description"))
            found.setdefault(tag["name"], text or reading.text(tag.get("summary"), location.down("summary")))
    return found


def _report_webhooks(reading: Reading) -> None:
    for key in ("webhooks", "x-webhooks"):
        node = reading.document.data.get(key)
        if isinstance(node, dict) and node:
            message = f"webhooks are requests that the API sends, so they cannot be tools; left out: {len(node)}"
            reading.report("webhooks-ignored", Location("", f"/{key}"), message)


# --- operations ---


MAX_OPERATIONS: Final = 30_000
"""The largest public API that we know has 11,422."""

_FIELDS: Final = frozenset({"$ref", "summary", "description", "servers", "parameters", "additionalOperations"})
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,40}\Z")


class WrittenOperation(NamedTuple):
    """One operation as written in the document.

    `location` is its identity, also if its path item is elsewhere.
    """

    path: str
    method: str
    item: LocatedNode
    node: Any
    location: Location


def read_operations(
    reading: Reading, security: Security, servers: tuple[str, ...]
) -> tuple[list[ApiOperation], list[Skipped]]:
    """All operations below `paths`, in the order of the document."""
    operations: list[ApiOperation] = []
    skipped: list[Skipped] = []
    taken: dict[str, Location] = {}
    ids: dict[str, Location] = {}
    for written in _written(reading):
        path, method, _, node, location = written
        if len(taken) >= MAX_OPERATIONS:
            message = f"the document has more than {MAX_OPERATIONS:,} operations; the rest was not read"
            reading.report("too-many-operations", Location("", "/paths"), message, "split the document")
            break
        name = _id(node)
        try:
            if (first := taken.setdefault(f"{method} {path}", location)) != location:
                raise BrokenError("operation-duplicate", location, f"{method} {path} is already defined at {first}")
            operation = _read(reading, security, servers, written)
        except BrokenError as error:
            reading.report(error.code, error.location, f"{method} {path} was left out: {error}", error.hint)
            skipped.append(Skipped(method, path, name, str(location), str(error)))
        except Exception as error:  # noqa: BLE001  # a document is anything; what we did not think of costs one operation
            message = f"{method} {path} was left out: reading it failed ({type(error).__name__}: {str(error)[:200]})"
            reading.report("operation-unreadable", location, message, "this is a fault of mcpfactory; please report it")
            skipped.append(Skipped(method, path, name, str(location), f"reading it failed ({type(error).__name__})"))
        else:
            operations.append(operation)
            if operation.operation_id and ids.setdefault(operation.operation_id, location) != location:
                first = ids[operation.operation_id]
                message = f"the operationId {operation.operation_id[:80]!r} is used by {first} already"
                reading.report(
                    "operation-id", location.down("operationId"), message, "every operation needs one of its own"
                )
    return operations, skipped


def _id(node: Any) -> str:
    name = node.get("operationId") if isinstance(node, dict) else None
    return str(name) if isinstance(name, (str, int)) and not isinstance(name, bool) else ""


def _written(reading: Reading) -> Iterator[WrittenOperation]:
    location = Location("", "/paths")
    target = reading.follow(reading.document.data.get("paths"), location)
    paths = target.node if target is not None else None
    if paths is None:
        return
    if not isinstance(paths, dict):
        reading.report("paths-invalid", location, "`paths` has to be an object; there is nothing to read")
        return
    for key, written in paths.items():
        if key.startswith("x-") or (key == "$ref" and isinstance(written, str)):
            continue
        at = location.down(key)
        item = _item(reading, written, at)
        if item is None:
            continue
        path = key
        if not key.startswith("/"):
            path = f"/{key}"
            reading.report(
                "path-slash", at, f"the path {key[:200]!r} does not begin with a slash; read as {path[:200]!r}"
            )
        yield from (
            WrittenOperation(path, method, item, one, where) for method, one, where in _methods(reading, item, at)
        )


def _item(reading: Reading, written: Any, location: Location) -> LocatedNode | None:
    """Return the path item; keywords next to its `$ref` override the target's."""
    if isinstance(written, dict) and isinstance(written.get("$ref"), str):
        target = reading.follow(written, location)
        if target is None:
            return None
        beside = {key: value for key, value in written.items() if key != "$ref"}
        if beside and isinstance(target.node, dict):
            return LocatedNode({**target.node, **beside}, target.location)
        written, location = target
    if not isinstance(written, dict):
        if written is not None:
            reading.report("path-invalid", location, "a path has to be an object of operations; left out")
        return None
    return LocatedNode(written, location)


def _methods(reading: Reading, item: LocatedNode, location: Location) -> Iterator[tuple[str, Any, Location]]:
    """Yield the operations of a path item.

    `location` is the path's in the document, even if the path item is elsewhere.
    """
    spec = reading.spec
    for key, value in item.node.items():
        if key in spec.methods:
            if value is not None:
                yield key.upper(), value, location.down(key)
        elif key.lower() in spec.methods and isinstance(value, dict):
            reading.report(
                "path-method",
                location.down(key),
                f"the method {key!r} has to be written in lower case; read all the same",
            )
            yield key.upper(), value, location.down(key)
        elif key in SPEC_VERSIONS[-1].methods and isinstance(value, dict):
            message = f"the method {key!r} does not exist in {spec.version}; read all the same"
            reading.report("path-method", location.down(key), message, f"it came with {SPEC_VERSIONS[-1].version}")
            yield key.upper(), value, location.down(key)
        elif key not in _FIELDS and not key.startswith("x-"):
            reading.report("path-method", location.down(key), f"{key[:80]!r} is no method; ignored")
    more = item.node.get("additionalOperations")
    if isinstance(more, dict):
        for key, value in more.items():
            at = location.down("additionalOperations", key)
            if _TOKEN.match(key):
                yield key.upper(), value, at
            else:
                reading.report("path-method", at, f"{key[:80]!r} is no method; ignored")


def _read(reading: Reading, security: Security, servers: tuple[str, ...], written: WrittenOperation) -> ApiOperation:
    """Return one operation. Problems inside it point to the actual location of the text."""
    path, method, item, _, location = written
    operation = _resolved(reading, written.node, _standing(item, location))
    node, at = operation
    if node.get("callbacks"):
        reading.report(
            "callbacks-ignored", at.down("callbacks"), "callbacks need a server of their own and were left out"
        )
    node = flags(reading, node, at, ("deprecated",))
    found = gather(reading, item, operation, path)
    path = _path(reading, path, found, location)
    inside = [target for target in found if target.node["in"] in {"body", "formData"}]
    outside = [target for target in found if target not in inside] if inside else found
    tags = node.get("tags")
    if isinstance(tags, str):
        reading.report("operation-tags", at.down("tags"), "`tags` is a text; read as a list of one", "write `- name`")
        tags = [tags]
    docs = node.get("externalDocs")
    return ApiOperation(
        method=method,
        path=path,
        pointer=str(location),
        operation_id=_id(node),
        summary=reading.text(node.get("summary"), at.down("summary"))
        or reading.text(item.node.get("summary"), item.location.down("summary")),
        description=reading.text(node.get("description"), at.down("description"))
        or reading.text(item.node.get("description"), item.location.down("description")),
        tags=tuple(dict.fromkeys(tag for tag in tags if isinstance(tag, str))) if isinstance(tags, list) else (),
        deprecated=node.get("deprecated") is True,
        parameters=read_parameters(reading, outside, path, location),
        body=read_body(reading, operation, inside),
        responses=_responses(reading, operation, method),
        security=security.of(node, at),
        scopes=security.scopes_of(node),
        server=own_server(reading, ((node, at), (item.node, item.location)), servers),
        external_docs=docs["url"] if isinstance(docs, dict) and isinstance(docs.get("url"), str) else "",
        extensions=_extensions(reading.document.data, item.node, node),
    )


def _responses(reading: Reading, operation: LocatedNode, method: str) -> tuple[Response, ...]:
    """Return the responses; of HEAD without their bodies, which are never sent (RFC 9110 §9.3.2)."""
    found = read_responses(reading, operation)
    if method != "HEAD" or not any(one.content_type for one in found):
        return found
    message = "an answer to HEAD has no body; what is described of one does not count"
    reading.report("head-body", operation.location.down("responses"), message, "describe its headers only")
    return tuple(replace(one, content_type="", schema=None, example=None) for one in found)


def _path(reading: Reading, path: str, found: list[LocatedNode], location: Location) -> str:
    """Return the path with its templates in braces; what else is unusual about it is reported."""
    plain = plain_path(path, frozenset(target.node["name"] for target in found if target.node["in"] == "path"))
    odd = ""
    if plain != path:
        odd = f"the templates of {path[:200]!r} are written in another way; read as {plain[:200]!r}"
    elif re.search(r"[{}\s]", re.sub(r"\{[^{}]*\}", "", path)):
        odd = f"the path {path[:200]!r} holds a single brace or white space; sent encoded"
    if odd:
        reading.report("path-odd", location, odd, "write the path as the API has it, parameters as {name}")
    return plain


def _extensions(*owners: dict[str, Any]) -> dict[str, Any]:
    """Return the extensions that concern us, those of the innermost owner last."""
    found: dict[str, Any] = {}
    for owner in owners:
        for key, value in owner.items():
            if key.startswith(MARK_PREFIXES):
                found.pop(key, None)
                found[key] = value
    return found


def _standing(item: LocatedNode, location: Location) -> Location:
    """Return the operation's actual location, which is below its path item and can be elsewhere."""
    tokens = location.pointer.split("/")
    tail = tokens[3:]  # "", "paths", the path, …
    return Location(item.location.part, "/".join([item.location.pointer, *tail]))


def _resolved(reading: Reading, written: Any, location: Location) -> LocatedNode:
    if isinstance(written, dict) and isinstance(written.get("$ref"), str):
        try:
            target = reading.references.follow(written, location)
        except UnresolvedError as error:
            raise BrokenError(error.code, location, str(error), error.hint) from None
        reading.report(
            "operation-reference",
            location,
            "an operation has to be written out, not referred to; the reference was followed",
        )
        written, location = target
    if not isinstance(written, dict):
        raise BrokenError("operation-invalid", location, "it is not an object", "write an object with `responses`")
    return LocatedNode(written, location)


# --- documents of any kind ---


def read_source(document: Document) -> Api:
    """Read a document of any kind.

    Never raises for invalid content. Pointers of problems refer to the document itself.
    """
    translation = _translation(document)
    if translation is None:
        return read_api(document)
    raw = json.dumps(translation.data, ensure_ascii=False).encode("utf-8", "surrogatepass")
    part = Part(translation.data, raw)
    derived = Document(translation.data, raw, "json", document.source, document.main, {document.main: part})
    api = translation.moved(read_api(derived), document.data)
    if not document.problems:
        return api
    problems = Problems()
    problems.extend((*document.problems, *api.problems))
    return replace(api, problems=problems.all())


def _translation(document: Document) -> Translation | None:
    source = recognise(document.data)
    return source.translate(document.data) if source is not None and source.translate is not None else None


def kind_of(document: Document) -> Source:
    """Return the kind of a document."""
    source = recognise(document.data)
    assert source is not None, "load() refuses what is none of them"
    return source


def title_of(document: Document) -> str:
    """Return the title that the document gives its API; "" when it gives none."""
    translation = _translation(document)
    info = (document.data if translation is None else translation.data).get("info")
    return str(info.get("title", "")) if isinstance(info, dict) else ""
