"""Security: schemes reduced to how the credential travels, and which of them an operation asks for (OpenAPI 3.1 §4.8.27, §4.8.30)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_codegen.ir import ApiOAuthFlow, ApiSecurityScheme
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.reading import Reading, check_object
from mcpfactory_codegen.openapi.references import Location, UnresolvedError

_LINK: Final = re.compile(r"https?://[A-Za-z0-9._~:/?#@!$&'*+,;=%-]+")
_LINKS: Final = 3
_LOGINS: Final = frozenset({"authorizationCode", "deviceAuthorization", "discovery"})
"""Grants by which a person gives a token."""
_MOST_WAYS: Final = 64
"""Choices that one alternative may come apart into; of more, the first scheme of each place is taken."""
_AWS_TYPE: Final = "x-amazon-apigateway-authtype"
_AWS: Final = re.compile(r"aws(Sigv4|S3)", re.I)
_NAMES: Final = {"oauth2": "OAuth 2.0", "openIdConnect": "OpenID Connect"}


class Security:
    """The schemes of a document; answers what a `security` list means."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._schemes: dict[str, ApiSecurityScheme | None] = {}
        self._origins: dict[str, frozenset[str]] = {}
        self._same: Mapping[str, str] = {}
        self._asked = reading.document.data.get("security") is not None
        location = Location("", reading.spec.schemes)
        try:
            node = reading.references.resolve(f"#{location.pointer}", Location("", "")).node
        except UnresolvedError:
            node = {}
        if not isinstance(node, dict):
            reading.report("security-invalid", location, "the security schemes have to be an object; left out")
            node = {}
        for name, scheme in node.items():
            if not name.startswith("x-"):
                self._schemes[name] = self._read(name, scheme, location.down(name))
        self._same = self._merge()
        self._root = self._alternatives(reading.document.data.get("security"), Location("", "/security"))

    @property
    def schemes(self) -> tuple[ApiSecurityScheme, ...]:
        """All schemes that can be used, in the order of the document."""
        return tuple(one for name, one in self._schemes.items() if one is not None and name not in self._same)

    @property
    def unapplied(self) -> tuple[tuple[str, ...], ...]:
        """Return each scheme, or no credentials, as alternatives if the document defines but never uses schemes.

        Return () otherwise.
        """
        return () if self._asked or not self.schemes else (*((scheme.name,) for scheme in self.schemes), ())

    def of(self, operation: dict[str, Any], location: Location) -> tuple[tuple[str, ...], ...]:
        """Return the alternatives of one operation. Its own list replaces the document's, also when it is empty."""
        if operation.get("security") is None:
            return self._root
        self._asked = True
        return self._alternatives(operation["security"], location.down("security"))

    def scopes_of(self, operation: dict[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Return the scopes that an operation asks of each OAuth scheme; the first requirement that names the scheme counts."""
        node = operation.get("security")
        node = self._reading.document.data.get("security") if node is None else node
        found: dict[str, tuple[str, ...]] = {}
        for one in node if isinstance(node, list) else (node,):
            for name, scopes in one.items() if isinstance(one, dict) else ():
                scheme = self._schemes.get(self._same.get(name, name))
                if scheme is not None and scheme.kind == "oauth2":
                    found.setdefault(scheme.name, read_scopes(scopes))
        return tuple((name, scopes) for name, scopes in found.items() if scopes)

    def _alternatives(self, node: Any, location: Location) -> tuple[tuple[str, ...], ...]:
        if node is None:
            return ()
        if isinstance(node, dict):
            self._reading.report(
                "security-shape", location, "`security` is an object; read as a list of one", "write `- name: []`"
            )
            node = [node]
        if not isinstance(node, list):
            self._reading.report(
                "security-invalid", location, "`security` has to be a list; left out", "write `- name: []`"
            )
            return ()
        found: list[tuple[str, ...]] = []
        for index, one in enumerate(node):
            alternative = self._alternative(one, location.down(index))
            if alternative is not None:
                found += self._apart(alternative)
        return tuple(dict.fromkeys(found))

    def _apart(self, alternative: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the remaining alternatives if several schemes of one write the same header.

        A request has each header once.
        """
        by_place: dict[object, list[str]] = {}
        for name in alternative:
            scheme = self._schemes[name]
            by_place.setdefault(scheme.sends if scheme is not None else name, []).append(name)
        for names in by_place.values():
            if len(names) > 1:
                message = f"{' and '.join(repr(name[:80]) for name in names)} are asked for together, and write the same header"
                self._reading.report(
                    "security-shared",
                    Location("", self._reading.spec.schemes).down(names[0]),
                    f"{message}; either is enough",
                    "name them as alternatives: `- a: []` and `- b: []`",
                )
        if prod(map(len, by_place.values())) > _MOST_WAYS:
            return [tuple(names[0] for names in by_place.values())]
        return list(product(*by_place.values()))

    def _merge(self) -> Mapping[str, str]:
        """Merge schemes that obtain the same token; return the removed names, each with the one that remains.

        Google describes the implicit flow and the code flow as two schemes. A scheme without a usable flow is merged
        into the first other scheme that shares a URL with it and is also for people: both want an access token of
        that provider. A token for an application itself (client credentials) is different, and stays separate.
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

    def _alternative(self, node: Any, location: Location) -> tuple[str, ...] | None:
        """Return the schemes that are needed together; None when one of them cannot be satisfied."""
        if isinstance(node, str):
            self._reading.report(
                "security-shape", location, "a security requirement is a text; read as the name", "write `name: []`"
            )
            node = {node: []}
        if not isinstance(node, dict):
            self._reading.report(
                "security-invalid", location, "a security requirement has to be an object; left out", "write `name: []`"
            )
            return None
        names = []
        for name in node:
            if name not in self._schemes and not self._by_reference(name):
                message = f"the security scheme {name[:80]!r} is not defined; this alternative is left out"
                self._reading.report(
                    "security-undefined", location, message, f"define it in {self._reading.spec.schemes[1:]}"
                )
                return None
            if self._schemes[name] is None:
                return None  # reported with the scheme
            names.append(self._same.get(name, name))
        return tuple(dict.fromkeys(names))

    def _by_reference(self, name: str) -> bool:
        """3.2: the name of a requirement may be a reference to the scheme."""
        if "#" not in name:
            return False
        try:
            node, location = self._reading.references.resolve(name, Location("", ""))
        except UnresolvedError:
            return False
        self._schemes[name] = self._read(name, node, location)
        return True

    def _read(self, name: str, written: Any, location: Location) -> ApiSecurityScheme | None:
        target = self._reading.follow(written, location)
        if target is None:
            return None
        node, location = target
        if not isinstance(node, dict):
            self._reading.report(
                "security-invalid", location, f"the security scheme {name[:80]!r} is not an object; left out"
            )
            return None
        if self._reading.spec.shape == "2":
            node = swagger2.security_scheme(node)
        node = _normalized_scheme(self._reading, node, location)
        check_object(self._reading, "SecurityScheme", node, location)
        reduced = self._reduce(name, node, location)
        self._origins[name] = _origins(node)
        if reduced is None:
            said = f"{node.get('type')!s} {node.get('scheme', '')!s}".strip()[:80]
            message = f"the security scheme {name[:80]!r} ({said}) is not supported; left out"
            self._reading.report(
                "security-unsupported",
                location,
                message,
                "apiKey, http basic and bearer, oauth2, openIdConnect and mutualTLS are",
            )
        return reduced

    def _reduce(self, name: str, node: dict[str, Any], location: Location) -> ApiSecurityScheme | None:
        description = self._reading.text(node.get("description"), location.down("description"))
        kind, scheme = node.get("type"), str(node.get("scheme", "")).lower()
        links = tuple(dict.fromkeys(one.rstrip(".,;:!?") for one in _LINK.findall(description)))[:_LINKS]
        common: dict[str, Any] = {"description": description, "links": links}
        if kind == "apiKey":
            where, parameter = node.get("in"), node.get("name")
            if where not in ("query", "header", "cookie") or not isinstance(parameter, str) or not parameter:
                return None
            if _AWS.fullmatch(str(node.get(_AWS_TYPE))) and parameter.lower() == "authorization":
                note = "AWS Signature Version 4"
                return ApiSecurityScheme(name, "awsSigV4", **common, note=note, service=_aws_service(self._reading))
            return ApiSecurityScheme(name, "apiKey", where, parameter, **common)
        if kind == "http" and scheme == "basic":
            return ApiSecurityScheme(name, "basic", **common)
        if kind == "http" and scheme == "bearer":
            form = node.get("bearerFormat")
            return ApiSecurityScheme(
                name, "bearer", **common, note=f"format: {form}"[:200] if isinstance(form, str) else ""
            )
        if kind == "mutualTLS":
            return ApiSecurityScheme(name, "mutualTLS", **common)
        if kind in ("oauth2", "openIdConnect"):
            flows = read_flows(node)
            note = f"{_NAMES[kind]}: {ways(flows)}"
            return ApiSecurityScheme(name, "oauth2" if flows else "bearer", **common, note=note, flows=flows)
        return None


def _aws_service(reading: Reading) -> str:
    info = reading.document.data.get("info")
    for key in ("x-aws-signingName", "x-serviceName"):
        name = info.get(key) if isinstance(info, dict) else None
        if isinstance(name, str) and re.fullmatch(r"[a-z0-9-]{1,60}", name):
            return name
    return ""


def _one_token(one: ApiSecurityScheme, other: ApiSecurityScheme) -> bool:
    """Return True if two schemes of one provider want the same token and at most one declares flows."""
    ways_to_it = one.flows or other.flows
    people = not ways_to_it or any(flow.grant in _LOGINS for flow in ways_to_it)
    return people and not (one.flows and other.flows)


def _joined(one: ApiSecurityScheme, other: ApiSecurityScheme) -> ApiSecurityScheme:
    flows = one.flows or other.flows
    return replace(
        one,
        kind="oauth2" if flows else "bearer",
        note=f"{_NAMES['oauth2']}: {ways(flows)}",
        flows=flows,
        description=one.description or other.description,
        links=one.links or other.links,
    )


def _origins(scheme: dict[str, Any]) -> frozenset[str]:
    """Return the hosts that give and take the tokens of an oauth2 scheme, also those of flows that cannot be gone."""
    flows = _object(scheme, "flows") if scheme.get("type") == "oauth2" else {}
    urls = (
        _url(flow, key) for flow in flows.values() if isinstance(flow, dict) for key in ("tokenUrl", "authorizationUrl")
    )
    return frozenset(_host(url) for url in urls) - {""}


# --- OAuth flows and OpenID Connect: the ways to a token that a server can go (OpenAPI 3.2 §4.29, §4.30). Pure ---


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


def read_flows(scheme: dict[str, Any]) -> tuple[ApiOAuthFlow, ...]:
    """Return the usable flows of an oauth2 or openIdConnect scheme of 3.x; () if none is usable.

    The implicit flow and the password flow are excluded, because OAuth 2.1 removed them.
    """
    if scheme.get("type") == "openIdConnect":
        metadata = _url(scheme, "openIdConnectUrl")
        return (ApiOAuthFlow("discovery", metadata_url=metadata),) if metadata else ()
    node = scheme.get("flows")
    flows = node if isinstance(node, dict) else {}
    own, code, device = (
        _object(flows, name) for name in ("clientCredentials", "authorizationCode", "deviceAuthorization")
    )
    found: list[ApiOAuthFlow] = []
    if token := _url(own, "tokenUrl"):
        found.append(ApiOAuthFlow("clientCredentials", token))
    if (token := _url(code, "tokenUrl")) and (page := _url(code, "authorizationUrl")):
        found.append(ApiOAuthFlow("authorizationCode", token, page, refresh_url=_url(code, "refreshUrl")))
    if (token := _url(device, "tokenUrl")) and (page := _url(device, "deviceAuthorizationUrl")):
        found.append(
            ApiOAuthFlow("deviceAuthorization", token, device_url=page, refresh_url=_url(device, "refreshUrl"))
        )
    if not found and (metadata := _url(scheme, "oauth2MetadataUrl")):
        found.append(ApiOAuthFlow("discovery", metadata_url=metadata))
    return tuple(found)


def read_scopes(node: Any) -> tuple[str, ...]:
    """Return the scopes of a security requirement; what cannot be a scope is left out."""
    items = node if isinstance(node, list) else ()
    return tuple(dict.fromkeys(one for one in items if isinstance(one, str) and _SCOPE.fullmatch(one)))[:_SCOPES]


def ways(flows: Iterable[ApiOAuthFlow]) -> str:
    """Return the flows as readable text."""
    return " or ".join(_WAYS[flow.grant] for flow in flows) or "an access token made elsewhere is sent as bearer"


def _object(node: dict[str, Any], key: str) -> dict[str, Any]:
    value = node.get(key)
    return value if isinstance(value, dict) else {}


def _url(node: dict[str, Any], key: str) -> str:
    value = node.get(key)
    return value.strip() if isinstance(value, str) and _URL.fullmatch(value.strip()) else ""


_SCHEMES: Final = {"apikey": "apiKey", "oauth": "oauth2", "oauth2.0": "oauth2", "openid": "openIdConnect"}


def _normalized_scheme(reading: Reading, node: dict[str, Any], location: Location) -> dict[str, Any]:
    """Return a security scheme in the specification's words: `type: basic`, `bearer` and `apikey` are read."""
    kind = node.get("type")
    if not isinstance(kind, str):
        return node
    if kind.lower() in {"basic", "bearer"}:
        intended = {**node, "type": "http", "scheme": kind.lower()}
    else:
        intended = {**node, "type": _SCHEMES.get(kind.lower(), kind)}
        if intended["type"] == "apiKey" and isinstance(node.get("in"), str):
            intended["in"] = node["in"].lower()
    if intended != node:
        changed = ", ".join(f"{key}: {intended[key]}" for key in intended if intended[key] != node.get(key))
        reading.report("security-shape", location, f"the scheme is written in other words; read as {changed[:120]}")
    return intended


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:  # a bracket that is not closed, say
        return ""
