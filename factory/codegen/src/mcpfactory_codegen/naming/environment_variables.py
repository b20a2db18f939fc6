"""Environment variables of a server: settings such as `<PREFIX>_BASE_URL`, credentials and server URLs.

The prefix is `MCPF_<SERVER>`, and the server's name comes from the title of the API document. Without `MCPF_`, an
untrusted title could make the server read a variable of another program, such as GITHUB_TOKEN.

Credentials are `<PREFIX>_<SCHEME>_<PART>`, without uninformative words. For example, the scheme `bearerAuth` of the
server bookshop has the variable MCPF_BOOKSHOP_TOKEN. A part is never the name of a setting.

Each server URL other than the root has a variable that overrides the URL, such as MCPF_GITHUB_UPLOADS_BASE_URL for
`uploads.github.com` of the server github. Variables for URLs cannot collide with credentials, because credential parts
have other endings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from mcpfactory_codegen.ir import Api, ApiSecurityScheme
from mcpfactory_codegen.text import choose_unique_names, names_with_digest, word_group, words
from mcpfactory_runtime.upstream.operation import ServerAddress
from mcpfactory_runtime.urls import DEFAULT_PORTS

# the prefix "MCP" would collide with MCP_REGISTRY_TOKEN and MCP_PROXY_AUTH_TOKEN of other programs
_NAMESPACE: Final = "MCPF"
_PARTS: Final[dict[str, tuple[str, ...]]] = {
    "apiKey": ("API_KEY",),
    "basic": ("USERNAME", "PASSWORD"),
    "bearer": ("TOKEN",),
    "oauth2": ("TOKEN", "CLIENT_ID", "CLIENT_SECRET"),
    "mutualTLS": ("CLIENT_CERT", "CLIENT_KEY"),
    "awsSigV4": ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION"),
}
LOGIN_GRANTS: Final = frozenset({"authorizationCode", "deviceAuthorization", "discovery"})
"""Kinds of OAuth grants for which a person logs in."""

_EMPTY_WORDS: Final = word_group("scheme-words")


def credential_parts(scheme: ApiSecurityScheme) -> tuple[str, ...]:
    """Return the parts of a scheme's credential, in the order that the runtime expects."""
    grants = {flow.grant for flow in scheme.flows}
    account = "serviceAccount" in grants
    refresh = ("REFRESH_TOKEN",) if account or grants & LOGIN_GRANTS else ()
    return _PARTS[scheme.kind] + refresh + (("SERVICE_ACCOUNT",) if account else ())


def variable_prefix(server: str) -> str:
    """Return the common prefix of a server's variables."""
    return f"{_NAMESPACE}_{'_'.join(words(server)).upper() or 'API'}"


def name_variables(schemes: Sequence[ApiSecurityScheme], server: str, prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Return the variables of each scheme, in the order of `credential_parts`. No two schemes share a variable.

    If several schemes would have the same variable, the scheme with exactly that name gets the variable. If `prefix` is
    "", the prefix of a new server is used.
    """
    prefix = prefix or variable_prefix(server)
    named: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    waiting = [(scheme, _stems(scheme, server)) for scheme in schemes]
    while waiting:
        proposals = [(scheme, _variables(scheme, prefix, next(stems)), stems) for scheme, stems in waiting]
        claims = Counter(variable for _, variables, _ in proposals for variable in variables)
        literal = Counter(variables for scheme, variables, _ in proposals if _literal(scheme, prefix) == variables)
        waiting = []
        for scheme, variables, stems in proposals:
            alone = all(claims[variable] == 1 for variable in variables)
            first = literal[variables] == 1 and _literal(scheme, prefix) == variables
            if (alone or first) and taken.isdisjoint(variables):
                named[scheme.name] = variables
            else:
                waiting.append((scheme, stems))
        taken |= claims.keys()
    return {scheme.name: named[scheme.name] for scheme in schemes}


def _stems(scheme: ApiSecurityScheme, server: str) -> Iterator[str]:
    every = words(scheme.name)
    telling = [word for word in every if word not in _EMPTY_WORDS | set(words(server))]
    yield "_".join(telling)
    yield "_".join(every)
    yield from names_with_digest("_".join(every), scheme.name, 6)


def _literal(scheme: ApiSecurityScheme, prefix: str) -> tuple[str, ...]:
    return _variables(scheme, prefix, "_".join(words(scheme.name)))


def _variables(scheme: ApiSecurityScheme, prefix: str, stem: str) -> tuple[str, ...]:
    lead = f"{prefix}_{stem.upper()}" if stem else prefix
    variables = []
    for part in credential_parts(scheme):
        if f"_{lead}".endswith((f"_{part}", "_TOKEN") if part == "API_KEY" and stem else f"_{part}"):
            variables.append(lead)  # a scheme `api_key` gets MCPF_BOOKSHOP_API_KEY, not MCPF_BOOKSHOP_API_KEY_API_KEY
        else:
            variables.append(f"{lead}_{part}")
    return tuple(variables)


_EMPTY_LABELS: Final = frozenset({"www", "api", "apis", "rest"})
_LONGEST: Final = 40  # maximum characters of a server name
_SERVER_NAME: Final = re.compile(r"[a-z0-9_]{1,80}")


def matches_root_url(url: str, root: str) -> bool:
    """Return True if a URL has the same host, port and path as the root.

    An `http` URL also matches an `https` root.
    """
    ours, theirs = _split(url), _split(root)
    same = ours.scheme == theirs.scheme or (ours.scheme, theirs.scheme) == ("http", "https")
    return bool(root) and same and ours[1:] == theirs[1:]


def name_server_urls(urls: Collection[str], root: str) -> tuple[ServerAddress, ...]:
    """Return one server for each URL, sorted by name.

    The words of a name distinguish its URL from all other URLs.
    """
    names = choose_unique_names({url: _candidates(url, root) for url in sorted(urls)}, set())
    return tuple(sorted((ServerAddress(name, url) for url, name in names.items()), key=lambda one: one.name))


def keep_server_names(api: Api, known: Mapping[str, str]) -> Api:
    """Keep the existing names of the API's servers, so that variables in use keep overriding the same URLs.

    `known` has the previous URLs by server name, and the main server has the name "".
    """
    root = known.get("", "")
    # an existing server keeps its mock URL, because users can set a variable to another URL
    if is_mock_url(root) and root in api.servers:
        api = replace(api, servers=(root, *(url for url in api.servers if url != root)))
    known = {name: url for name, url in known.items() if _SERVER_NAME.fullmatch(name)}
    stay = [one.name for one in api.own_servers if matches_root_url(one.url, known.get(one.name, ""))]
    names = dict(zip(stay, stay, strict=True))
    known = {name: url for name, url in known.items() if name not in names}
    waiting = [one for one in api.own_servers if one.name not in names]
    for one in waiting:
        if had := next((name for name, url in known.items() if matches_root_url(one.url, url)), ""):
            names[one.name] = had
            del known[had]
    for one in waiting:
        if one.name not in names:
            proposals = chain((one.name,), filter(None, _candidates(one.url, api.base_url)))
            names[one.name] = next(name for name in proposals if name not in names.values())
    own = (replace(one, name=names[one.name]) for one in api.own_servers)
    return replace(
        api,
        own_servers=tuple(sorted(own, key=lambda one: one.name)),
        operations=tuple(replace(one, server=names.get(one.server, "")) for one in api.operations),
    )


_EXAMPLE: Final = re.compile(r"(^|\.)example(\.(com|org|net))?$")  # reserved example domains (RFC 2606)
_MOCKS: Final = frozenset({"mock", "mocks", "mockserver", "virtserver"})
_SANDBOXES: Final = frozenset({"sandbox", "sandboxes"})
_LOOPBACK: Final = re.compile(r"127(\.\d+){3}|::1|0\.0\.0\.0")


def is_mock_url(url: str) -> bool:
    """Return True if a URL is an example, a mock or a loopback address."""
    host, path = _split(url).host.lower(), _split(url).path
    example = _EXAMPLE.search(host) is not None
    return example or bool(_MOCKS & _labels(host)) or is_loopback_url(url) or path[:1] in {("mock",), ("mocks",)}


def is_loopback_url(url: str) -> bool:
    """Return True if the URL's host is this machine."""
    host = _split(url).host.lower()
    return host == "localhost" or _LOOPBACK.fullmatch(host) is not None


def is_sandbox_url(url: str) -> bool:
    """Return True if the URL's host is a sandbox."""
    return bool(_SANDBOXES & _labels(_split(url).host))


def _labels(host: str) -> set[str]:
    return set(re.split(r"[.-]", host.lower()))


class _ServerParts(NamedTuple):
    """Components of a URL. `port` is "" for the default port of the scheme."""

    scheme: str
    host: str
    port: str
    path: tuple[str, ...]


def _split(url: str) -> _ServerParts:
    try:
        split = urlsplit(url)
        port = "" if split.port in (None, DEFAULT_PORTS.get(split.scheme)) else str(split.port)
    except ValueError:
        return _ServerParts("", url, "", ())
    path = tuple(one for one in split.path.split("/") if one)
    return _ServerParts(split.scheme, (split.hostname or "").rstrip("."), port, path)


def _candidates(url: str, root: str) -> Iterator[str]:
    ours, theirs = _split(url), _split(root)
    labels = ours.host.split(".")
    if ours.host == theirs.host:
        if further := [one for one in ours.path if one not in theirs.path]:
            yield _name(further[:1])
            yield _name(further)
        elif ours.path == theirs.path:
            yield ours.port or ours.scheme
        elif not ours.path:
            yield "origin"
    elif not labels[-1].isdigit():  # an IPv4 address has no domain labels
        other = [one for one in labels[:-1] or labels if one not in theirs.host.split(".")]
        telling = [one for one in other if one not in _EMPTY_LABELS] or other
        yield _name(telling[:1])
        yield _name(telling)
        yield _name([*telling[:1], *ours.path])
    every = [*labels, *([ours.port] if ours.port else []), *ours.path]
    yield _name(every)
    yield _name([ours.scheme, *every])
    yield from names_with_digest(_name(labels) or "server", url, 6)


def _name(parts: Sequence[str]) -> str:
    """Return the words of a host or path as a server name (`dl_boxcloud`), or "" for a missing or too long name."""
    name = "_".join(word for part in parts for word in words(part))
    return name if len(name) <= _LONGEST else ""
