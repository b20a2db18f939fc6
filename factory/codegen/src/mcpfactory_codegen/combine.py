"""Merge of a server's API documents into one API. Pure.

Every document has a label, except possibly the first. The label becomes part of the names of the document's operations
and problems. A document without a label keeps all names, so that adding a second document renames nothing.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urljoin

from mcpfactory_codegen.ir import Api, ApiOperation, ApiSecurityScheme, JsonSchema
from mcpfactory_codegen.naming.environment_variables import matches_root_url
from mcpfactory_codegen.text import digest, dump_json, one_line, words
from mcpfactory_runtime.schemas.walk import definition, definition_reference, map_schema, references
from mcpfactory_runtime.upstream.operation import OAuthFlow, ServerAddress
from mcpfactory_runtime.urls import host_port_of

_ABOUT: Final = 300  # maximum characters of each document's description


def add_label(api: Api, label: str) -> Api:
    """Add a label to the API's operations, skipped operations and problems."""
    if not label:
        return api

    def at(pointer: str) -> str:
        return f"{label}: {pointer or '/'}"

    return dataclasses.replace(
        api,
        operations=tuple(dataclasses.replace(one, label=label, pointer=at(one.pointer)) for one in api.operations),
        skipped=tuple(dataclasses.replace(one, label=label, pointer=at(one.pointer)) for one in api.skipped),
        problems=tuple(dataclasses.replace(one, pointer=at(one.pointer)) for one in api.problems),
    )


def combine(apis: Mapping[str, Api], shared: Iterable[str] = ()) -> Api:
    """Merge the APIs in `apis` (label → API).

    A single API with the label "" is returned unchanged. The base URL of each document becomes a separate server named
    by the label, unless all base URLs are equal. Equal shared schemas are merged. Different schemas with the same name
    get the document's label in their names. Equal security schemes are merged if their documents have the same host.
    Schemes of documents in `shared` are merged even if the hosts differ.
    """
    if set(apis) <= {""}:
        return next(iter(apis.values()))
    apis = _with_servers(_with_schemas(_with_schemes(apis, frozenset(shared))))
    every = list(apis.values())
    servers = tuple(dict.fromkeys(url for api in every for url in api.servers))
    return Api(
        title=common_title([api.title for api in every]),
        version=next((api.version for api in every if api.version), ""),
        description=_description(apis),
        servers=servers,
        own_servers=tuple(sorted((one for api in every for one in api.own_servers), key=lambda one: one.name)),
        operations=tuple(operation for api in every for operation in api.operations),
        schemas={name: schema for api in every for name, schema in api.schemas.items()},
        security_schemes=_schemes(every),
        tag_descriptions=_tags(every),
        skipped=tuple(one for api in every for one in api.skipped),
        problems=tuple(sorted((one for api in every for one in api.problems), key=lambda one: one.level != "error")),
    )


def _schemes(apis: Sequence[Api]) -> tuple[ApiSecurityScheme, ...]:
    found: dict[str, ApiSecurityScheme] = {}
    for api in apis:
        for scheme in api.security_schemes:
            found.setdefault(scheme.name, scheme)
    return tuple(found.values())


def common_title(titles: Sequence[str]) -> str:
    """Return the words with which all titles begin, or all titles if the first words differ."""
    titles = [" ".join(title.split()) for title in titles]
    common: list[str] = []
    for parts in zip(*(title.split(" ") for title in titles), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    while common and not words(common[-1]):
        common.pop()  # for example, remove a dash after the name of a product family
    return " ".join(common) if words(" ".join(common)) else ", ".join(title for title in titles if title)


def _description(apis: Mapping[str, Api]) -> str:
    lines = []
    for label, api in apis.items():
        about = ": ".join(text for text in (one_line(api.title, 80), one_line(api.description, _ABOUT)) if text)
        lines.append(f"{label}: {about}" if label else about)
    return "\n\n".join(line for line in lines if line)


def _tags(apis: Sequence[Api]) -> dict[str, str]:
    texts: dict[str, set[str]] = defaultdict(set)
    for api in apis:
        for tag, text in api.tag_descriptions.items():
            texts[tag].add(text)
    return {tag: next(iter(found)) for tag, found in texts.items() if len(found) == 1}


def _with_servers(apis: Mapping[str, Api]) -> dict[str, Api]:
    """Convert the base URL of each API to a named server.

    A base URL stays unnamed if all APIs share it, or if its document has no label.
    """
    bases = {api.base_url for api in apis.values()}
    root = apis[""].base_url if "" in apis else next(iter(bases)) if len(bases) == 1 else ""
    taken: set[str] = set()
    found = {}
    for label in sorted(apis):  # the document without a label sorts first, so that it keeps its names
        api = apis[label]
        at_root = not label or (root and matches_root_url(api.base_url, root))
        base = "" if at_root else _server_name(label, taken)
        names = {one.name: _server_name(f"{label} {one.name}" if label else one.name, taken) for one in api.own_servers}
        found[label] = _moved(api, base, names | {"": base})
    return {label: found[label] for label in apis}


def _server_name(name: str, taken: set[str]) -> str:
    plain = re.sub(r"[^a-z0-9]", "_", name)
    name = plain if plain not in taken else f"{plain}_{digest(name, 6)}"
    taken.add(name)
    return name


def _moved(api: Api, base: str, names: Mapping[str, str]) -> Api:
    """Rename the servers of the API. `base` is the new name for the base URL, or ""."""
    own = [ServerAddress(names[one.name], one.url) for one in api.own_servers]
    if base and any(not one.server for one in api.operations):
        own.append(ServerAddress(base, api.base_url))
    return dataclasses.replace(
        api,
        servers=() if base else api.servers,
        own_servers=tuple(own),
        operations=tuple(dataclasses.replace(one, server=names[one.server]) for one in api.operations),
    )


def _with_schemas(apis: Mapping[str, Api]) -> dict[str, Api]:
    """Add the label as a prefix to names of shared schemas that several documents define differently."""
    different = _different(apis)
    taken = {name for api in apis.values() for name in api.schemas}
    found = {}
    for label, api in apis.items():
        names = {name: _free(f"{label}_{name}", taken) for name in api.schemas if label and name in different}
        found[label] = _renamed(api, names) if names else api
    return found


def _different(apis: Mapping[str, Api]) -> set[str]:
    """Return the names of schemas that directly or indirectly differ between documents."""
    written: dict[str, set[str]] = defaultdict(set)
    users: dict[str, set[str]] = defaultdict(set)
    for api in apis.values():
        for name, schema in api.schemas.items():
            written[name].add(dump_json(schema))
            for used in references(schema):
                users[used].add(name)
    found: set[str] = set()
    waiting = [name for name, texts in written.items() if len(texts) > 1]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(users[name])
    count = Counter(name for api in apis.values() for name in api.schemas)
    return {name for name in found if count[name] > 1}


def _free(name: str, taken: set[str]) -> str:
    return name if name not in taken else f"{name}_{digest(name, 6)}"


def _renamed(api: Api, names: Mapping[str, str]) -> Api:
    def schema(one: JsonSchema) -> JsonSchema:
        return _referring(one, names)

    return dataclasses.replace(
        api,
        schemas={names.get(name, name): schema(one) for name, one in api.schemas.items()},
        operations=tuple(_operation(operation, schema) for operation in api.operations),
    )


def _operation(operation: ApiOperation, schema: Any) -> ApiOperation:
    body = operation.body
    return dataclasses.replace(
        operation,
        parameters=tuple(dataclasses.replace(one, schema=schema(one.schema)) for one in operation.parameters),
        body=None if body is None else dataclasses.replace(body, schema=schema(body.schema)),
        responses=tuple(
            one if one.schema is None else dataclasses.replace(one, schema=schema(one.schema))
            for one in operation.responses
        ),
    )


def _referring(schema: JsonSchema, names: Mapping[str, str]) -> JsonSchema:
    if not isinstance(schema, dict):
        return schema
    done = map_schema(schema, lambda one: _referring(one, names))
    name = definition(schema.get("$ref"))
    return {**done, "$ref": definition_reference(names[name])} if name in names else done


# --- credentials: separate for each document, and never sent to another document's host ---


def _with_schemes(apis: Mapping[str, Api], shared: frozenset[str]) -> dict[str, Api]:
    """Give each credential a unique name. A scheme that several documents share keeps one name."""
    ready = {label: _absolute(api) if label else api for label, api in apis.items()}
    holders: dict[_Identity, list[str]] = defaultdict(list)
    for label, api in ready.items():
        for scheme in api.security_schemes:
            holders[_identity(scheme, api, label, shared)].append(label)
    names = _credential_names(holders)
    return {
        label: _with_names(api, {one.name: names[_identity(one, api, label, shared)] for one in api.security_schemes})
        for label, api in ready.items()
    }


_ANYWHERE: Final = ("",)  # no host: the user declared that all hosts may receive the credential
_Identity = tuple[str, str, str, str, tuple[Any, ...], tuple[str, ...]]


def duplicate_security_schemes(apis: Mapping[str, Api], shared: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of security schemes that are equal in several documents, but have separate credentials."""
    ready = {label: _absolute(api) if label else api for label, api in apis.items()}
    counts: list[Counter[str]] = []
    for labels in (frozenset(shared), frozenset(apis)):
        found = {
            _identity(scheme, api, label, labels) for label, api in ready.items() for scheme in api.security_schemes
        }
        counts.append(Counter(identity[0] for identity in found))
    own, together = counts
    return tuple(sorted(name for name, count in own.items() if count > together[name]))


def _identity(scheme: ApiSecurityScheme, api: Api, label: str, shared: frozenset[str]) -> _Identity:
    """Return a key that is equal for schemes that send the same credential to the same hosts."""
    flows = (_absolute_scheme(scheme, api) if api.base_url else scheme).flows
    whom = _ANYWHERE if label in shared else _hosts(api) or (label, "")
    return scheme.name, scheme.kind, scheme.place, scheme.parameter or scheme.service, flows, whom


def _hosts(api: Api) -> tuple[str, ...]:
    """Return the hosts to which the API's credentials are sent, or () if a host is unknown."""
    hosts = {host_port_of(url) for url in (api.base_url, *(one.url for one in api.own_servers))}
    return () if "" in hosts else tuple(sorted(hosts))


def _credential_names(holders: Mapping[_Identity, Sequence[str]]) -> dict[_Identity, str]:
    """Return the name of each scheme.

    A scheme of the unlabeled document, of `shared` documents or of all documents keeps its name. Any other scheme gets
    the label of its first document as a prefix, so that later documents change no name.
    """
    everyone = {label for labels in holders.values() for label in labels}
    plain = [
        identity
        for identity, labels in holders.items()
        if "" in labels or (len(labels) > 1 and (identity[-1] == _ANYWHERE or everyone == set(labels)))
    ]
    claims = Counter(identity[0] for identity in plain)
    names = {one: one[0] for one in plain if "" in holders[one] or claims[one[0]] == 1}
    taken = set(names.values())
    for identity, labels in holders.items():
        if identity not in names:
            names[identity] = _free(f"{labels[0]}.{identity[0]}", taken)
    return names


def _absolute(api: Api) -> Api:
    """Make login URLs absolute, and add the API's documentation link to schemes without a link."""
    docs = (api.external_docs,) if api.external_docs.startswith("http") else ()
    schemes = (_absolute_scheme(one, api) for one in api.security_schemes)
    return dataclasses.replace(
        api, security_schemes=tuple(dataclasses.replace(one, links=one.links or docs) for one in schemes)
    )


def _absolute_scheme(scheme: ApiSecurityScheme, api: Api) -> ApiSecurityScheme:
    def full(url: str) -> str:
        return urljoin(api.base_url, url) if url else ""

    def absolute(flow: OAuthFlow) -> OAuthFlow:
        urls: dict[str, Any] = {
            name: full(url) for name, url in dataclasses.asdict(flow).items() if name.endswith("_url")
        }
        return dataclasses.replace(flow, **urls)

    return dataclasses.replace(scheme, flows=tuple(map(absolute, scheme.flows)))


def _with_names(api: Api, names: Mapping[str, str]) -> Api:
    def operation(one: ApiOperation) -> ApiOperation:
        return dataclasses.replace(
            one,
            security=tuple(tuple(names.get(name, name) for name in alternative) for alternative in one.security),
            scopes=tuple((names.get(name, name), scopes) for name, scopes in one.scopes),
        )

    return dataclasses.replace(
        api,
        operations=tuple(operation(one) for one in api.operations),
        security_schemes=tuple(dataclasses.replace(one, name=names[one.name]) for one in api.security_schemes),
    )
