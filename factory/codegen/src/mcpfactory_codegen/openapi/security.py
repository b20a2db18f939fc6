"""Security schemes, reduced to the way a credential is sent, and requirements (OpenAPI 3.1 §4.8.27, §4.8.30)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_codegen.ir import ApiSecurityScheme
from mcpfactory_codegen.naming.environment_variables import LOGIN_GRANTS
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.context import Node, ReaderContext
from mcpfactory_codegen.openapi.references import Location, UnresolvedError
from mcpfactory_codegen.sources.translation_helpers import table
from mcpfactory_runtime.upstream.operation import OAuthFlow

_LINK: Final = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&'*+,;=%-]+")
_LINKS: Final = 3
_MOST_WAYS: Final = 64
"""Maximum combinations from one alternative.

For more combinations, only the first scheme of each place is used.
"""
_AWS_TYPE: Final = "x-amazon-apigateway-authtype"
_AWS: Final = re.compile(r"aws(Sigv4|S3)", re.I)
_NAMES: Final = {"oauth2": "OAuth 2.0", "openIdConnect": "OpenID Connect"}


class Security:
    """The security schemes of a document, and the meaning of its `security` lists."""

    def __init__(self, context: ReaderContext) -> None:
        self._context = context
        self._schemes: dict[str, ApiSecurityScheme | None] = {}
        self._origins: dict[str, frozenset[str]] = {}
        self._same: Mapping[str, str] = {}
        document = context.root.at("security")
        self._asked = document.value is not None
        self._section = Location("", context.spec.schemes)
        try:
            value = context.references.resolve(f"#{self._section.pointer}", Location("", "")).node
        except UnresolvedError:
            value = {}
        section = Node(context, value, self._section)
        message = "the security schemes have to be an object; left out"
        section.is_object("security-invalid", message, null=True)
        for name, scheme in section.members():
            if not name.startswith("x-"):
                self._schemes[name] = self._read(name, scheme)
        self._same = self._merge()
        self._root = self._alternatives(document)

    @property
    def schemes(self) -> tuple[ApiSecurityScheme, ...]:
        """Return the supported schemes, in the order of the document."""
        return tuple(one for name, one in self._schemes.items() if one is not None and name not in self._same)

    @property
    def unused_scheme_alternatives(self) -> tuple[tuple[str, ...], ...]:
        """Return each scheme and () as alternatives if the document uses none of its schemes."""
        return () if self._asked or not self.schemes else (*((scheme.name,) for scheme in self.schemes), ())

    def of(self, operation: Node) -> tuple[tuple[str, ...], ...]:
        """Return the alternatives of one operation.

        An operation's `security` list replaces the document's list, even if the operation's list is empty.
        """
        security = operation.at("security")
        if security.value is None:
            return self._root
        self._asked = True
        return self._alternatives(security)

    def scopes_of(self, operation: Node) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the scopes that an operation requires, from the first requirement of each OAuth scheme."""
        asked = operation.value.get("security")
        asked = self._context.document.data.get("security") if asked is None else asked
        found: dict[str, tuple[str, ...]] = {}
        for one in asked if isinstance(asked, list) else (asked,):
            for name, scopes in one.items() if isinstance(one, dict) else ():
                scheme = self._schemes.get(self._same.get(name, name))
                if scheme is not None and scheme.kind == "oauth2":
                    found.setdefault(scheme.name, read_scopes(scopes))
        return tuple((name, scopes) for name, scopes in found.items() if scopes)

    def _alternatives(self, security: Node) -> tuple[tuple[str, ...], ...]:
        if isinstance(security.value, dict):
            security.report("security-shape", "`security` is an object; read as a list of one", "write `- name: []`")
            security = security.with_value([security.value])
        if not isinstance(security.value, list | None):
            security.report("security-invalid", "`security` has to be a list; left out", "write `- name: []`")
        found: list[tuple[str, ...]] = []
        for one in security.elements():
            alternative = self._alternative(one)
            if alternative is not None:
                found += self._apart(alternative)
        return tuple(dict.fromkeys(found))

    def _apart(self, alternative: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Split an alternative whose schemes write the same header, because a request can have a header only once."""
        by_place: dict[object, list[str]] = {}
        for name in alternative:
            scheme = self._schemes[name]
            by_place.setdefault(scheme.credential_location if scheme is not None else name, []).append(name)
        for names in by_place.values():
            if len(names) > 1:
                listed = " and ".join(repr(name[:80]) for name in names)
                message = f"{listed} are required together, but write the same header; read as alternatives"
                at = Node(self._context, None, self._section.down(names[0]))
                at.report("security-shared", message, "write alternatives: `- a: []` and `- b: []`")
        if prod(map(len, by_place.values())) > _MOST_WAYS:
            return [tuple(names[0] for names in by_place.values())]
        return list(product(*by_place.values()))

    def _merge(self) -> Mapping[str, str]:
        """Merge schemes that obtain the same token. Return the remaining name for each removed name.

        Google describes the implicit flow and the code flow as two schemes. Two schemes on the same host send a token
        of the same provider. Schemes for the same provider are merged unless both have usable flows, or unless the only
        usable flows lack a login. A token for the application itself (client credentials) stays separate.
        """
        same: dict[str, str] = {}
        for name, origins in self._origins.items():
            scheme = self._schemes[name]
            if scheme is None or not origins or name in same:
                continue
            for other, theirs in self._origins.items():
                twin = self._schemes[other]
                if other == name or other in same or twin is None or not origins & theirs:
                    continue
                if _one_token(scheme, twin):
                    scheme = _joined(scheme, twin)
                    same[other] = name
            self._schemes[name] = scheme
        return same

    def _alternative(self, requirement: Node) -> tuple[str, ...] | None:
        """Return the schemes of one alternative, or None for an undefined or unsupported scheme."""
        if isinstance(requirement.value, str):
            message = "a security requirement is a string; read as the name of a scheme"
            requirement.report("security-shape", message, "write `name: []`")
            requirement = requirement.with_value({requirement.value: []})
        message = "a security requirement has to be an object; left out"
        if not requirement.is_object("security-invalid", message, "write `name: []`", null=True):
            return None
        names = []
        for name in requirement.value:
            if name not in self._schemes and not self._by_reference(name):
                message = f"the security scheme {name[:80]!r} is not defined; this alternative is left out"
                requirement.report("security-undefined", message, f"define it in {self._section.pointer[1:]}")
                return None
            if self._schemes[name] is None:
                return None  # the scheme's own error was reported when the scheme was read
            names.append(self._same.get(name, name))
        return tuple(dict.fromkeys(names))

    def _by_reference(self, name: str) -> bool:
        """Return True if a requirement is a reference (3.2), and read the referenced scheme."""
        if "#" not in name:
            return False
        try:
            found = self._context.references.resolve(name, Location("", ""))
        except UnresolvedError:
            return False
        self._schemes[name] = self._read(name, Node(self._context, *found))
        return True

    def _read(self, name: str, written: Node) -> ApiSecurityScheme | None:
        node = written.target()
        message = f"the security scheme {name[:80]!r} is not an object; left out"
        if node is None or not node.is_object("security-invalid", message, null=True):
            return None
        if self._context.spec.shape == "2":
            node = node.with_value(swagger2.convert_security_scheme(node.value))
        node = _normalized_scheme(node)
        node.check("SecurityScheme", node.value)
        reduced = _reduce(name, node)
        self._origins[name] = _origins(node.value)
        if reduced is None:
            said = f"{node.value.get('type')!s} {node.value.get('scheme', '')!s}".strip()[:80]
            message = f"the security scheme {name[:80]!r} ({said}) is not supported; left out"
            hint = "supported: apiKey, http basic and bearer, oauth2, openIdConnect and mutualTLS"
            node.report("security-unsupported", message, hint)
        return reduced


def _reduce(name: str, scheme: Node) -> ApiSecurityScheme | None:
    """Return a simpler scheme that shows how the credential is sent, or None for an unsupported scheme."""
    node = scheme.value
    description = scheme.at("description").text()
    links = tuple(dict.fromkeys(one.rstrip(".,;:!?") for one in _LINK.findall(description)))[:_LINKS]
    common: dict[str, Any] = {"description": description, "links": links}
    kind, way = node.get("type"), str(node.get("scheme", "")).lower()
    if kind == "apiKey":
        where, parameter = node.get("in"), node.get("name")
        if where not in ("query", "header", "cookie") or not isinstance(parameter, str) or not parameter:
            return None
        if _AWS.fullmatch(str(node.get(_AWS_TYPE))) and parameter.lower() == "authorization":
            service = _aws_service(scheme.context.root.at("info").table)
            return ApiSecurityScheme(name, "awsSigV4", **common, note="AWS Signature Version 4", service=service)
        return ApiSecurityScheme(name, "apiKey", where, parameter, **common)
    if kind == "http" and way == "bearer":
        form = node.get("bearerFormat")
        note = f"format: {form}"[:200] if isinstance(form, str) else ""
        return ApiSecurityScheme(name, "bearer", **common, note=note)
    if kind in ("oauth2", "openIdConnect"):
        flows = read_flows(node)
        note = f"{_NAMES[kind]}: {describe_flows(flows)}"
        return ApiSecurityScheme(name, "oauth2" if flows else "bearer", **common, note=note, flows=flows)
    if kind == "http" and way == "basic":
        return ApiSecurityScheme(name, "basic", **common)
    return ApiSecurityScheme(name, "mutualTLS", **common) if kind == "mutualTLS" else None


def _aws_service(info: dict[str, Any]) -> str:
    for key in ("x-aws-signingName", "x-serviceName"):
        name = info.get(key)
        if isinstance(name, str) and re.fullmatch(r"[a-z0-9-]{1,60}", name):
            return name
    return ""


def _one_token(one: ApiSecurityScheme, other: ApiSecurityScheme) -> bool:
    """Return True if two schemes of one provider send the same token, by the rule in `Security._merge`."""
    ways_to_it = one.flows or other.flows
    people = not ways_to_it or any(flow.grant in LOGIN_GRANTS for flow in ways_to_it)
    return people and not (one.flows and other.flows)


def _joined(one: ApiSecurityScheme, other: ApiSecurityScheme) -> ApiSecurityScheme:
    flows = one.flows or other.flows
    return replace(
        one,
        kind="oauth2" if flows else "bearer",
        note=f"{_NAMES['oauth2']}: {describe_flows(flows)}",
        flows=flows,
        description=one.description or other.description,
        links=one.links or other.links,
    )


def _origins(scheme: dict[str, Any]) -> frozenset[str]:
    """Return the hosts of an oauth2 scheme's token and authorization URLs, including URLs of unsupported flows."""
    flows = table(scheme, "flows") if scheme.get("type") == "oauth2" else {}
    urls = (_url(table(flows, name), key) for name in flows for key in ("tokenUrl", "authorizationUrl"))
    return frozenset(_host(url) for url in urls) - {""}


# --- OAuth flows and OpenID Connect (OpenAPI 3.2 §4.29, §4.30) ---


_URL: Final = re.compile(r"[!-~]{1,2000}")  # printable ASCII
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,200}")  # RFC 6749 §3.3
_SCOPES: Final = 200
_WAYS: Final = {
    "clientCredentials": "client credentials",
    "authorizationCode": "a login in a browser",
    "deviceAuthorization": "a login by device code",
    "discovery": "a login or client credentials",
    "serviceAccount": "the key of a service account",
}


def read_flows(scheme: dict[str, Any]) -> tuple[OAuthFlow, ...]:
    """Return the usable flows of an oauth2 or openIdConnect scheme of 3.x.

    The result excludes the implicit flow and the password flow, because OAuth 2.1 removed them.
    """
    if scheme.get("type") == "openIdConnect":
        metadata = _url(scheme, "openIdConnectUrl")
        return (OAuthFlow("discovery", metadata_url=metadata),) if metadata else ()
    flows = table(scheme, "flows")
    own, code, device = (
        table(flows, name) for name in ("clientCredentials", "authorizationCode", "deviceAuthorization")
    )
    found: list[OAuthFlow] = []
    if token := _url(own, "tokenUrl"):
        found.append(OAuthFlow("clientCredentials", token))
    if (token := _url(code, "tokenUrl")) and (page := _url(code, "authorizationUrl")):
        found.append(OAuthFlow("authorizationCode", token, page, refresh_url=_url(code, "refreshUrl")))
    if (token := _url(device, "tokenUrl")) and (page := _url(device, "deviceAuthorizationUrl")):
        refresh = _url(device, "refreshUrl")
        found.append(OAuthFlow("deviceAuthorization", token, device_url=page, refresh_url=refresh))
    if not found and (metadata := _url(scheme, "oauth2MetadataUrl")):
        found.append(OAuthFlow("discovery", metadata_url=metadata))
    return tuple(found)


def read_scopes(node: Any) -> tuple[str, ...]:
    """Return the valid scopes of a security requirement."""
    items = node if isinstance(node, list) else ()
    return tuple(dict.fromkeys(one for one in items if isinstance(one, str) and _SCOPE.fullmatch(one)))[:_SCOPES]


def describe_flows(flows: Iterable[OAuthFlow]) -> str:
    """Return the flows as readable text."""
    return " or ".join(_WAYS[flow.grant] for flow in flows) or "an access token made elsewhere is sent as bearer"


def _url(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value.strip() if isinstance(value, str) and _URL.fullmatch(value.strip()) else ""


_SCHEMES: Final = {"apikey": "apiKey", "oauth": "oauth2", "oauth2.0": "oauth2", "openid": "openIdConnect"}


def _normalized_scheme(scheme: Node) -> Node:
    """Correct the types `basic`, `bearer` and `apikey` of a security scheme."""
    node, kind = scheme.value, scheme.value.get("type")
    if not isinstance(kind, str):
        return scheme
    if kind.lower() in {"basic", "bearer"}:
        intended = {**node, "type": "http", "scheme": kind.lower()}
    else:
        intended = {**node, "type": _SCHEMES.get(kind.lower(), kind)}
        if intended["type"] == "apiKey" and isinstance(node.get("in"), str):
            intended["in"] = node["in"].lower()
    if intended != node:
        changed = ", ".join(f"{key}: {intended[key]}" for key in intended if intended[key] != node.get(key))
        scheme.report("security-shape", f"the scheme has nonstandard values; read as {changed[:120]}")
    return scheme.with_value(intended)


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # for example, a bracket in the URL is unclosed
        return ""
