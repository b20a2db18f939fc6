"""Rules of `server.json`: schema 2025-12-11 and additional rules of the official MCP registry.

A JSON Schema checks the form of the document. Each rule checks what a schema cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
PUBLISHER: Final = "io.modelcontextprotocol.registry/publisher-provided"

# --- the shape of the document ---

_TEXT: Final = {"type": "string"}
_FILLED: Final = {"type": "string", "minLength": 1}
_TRUTH: Final = {"type": "boolean"}


def _one(shape: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{shape}"}


def _list(item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _map(shape: str) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": _one(shape)}


def _object(needed: str, **fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of an object. Additional fields are invalid, because the registry drops unknown fields."""
    return {"type": "object", "required": needed.split(), "properties": fields, "additionalProperties": False}


_INPUT: Final[dict[str, Mapping[str, Any]]] = {
    "description": _TEXT, "isRequired": _TRUTH, "isSecret": _TRUTH, "default": _TEXT, "placeholder": _TEXT, "value": _TEXT,
    "format": {"enum": ["string", "number", "boolean", "filepath"]}, "choices": _list(_TEXT),
}  # fmt: skip
_SHAPES: Final[Mapping[str, Mapping[str, Any]]] = {
    "server": _object(
        "$schema name description version",
        **{"$schema": _FILLED},
        name={"type": "string", "minLength": 3, "maxLength": 200},
        description={**_FILLED, "maxLength": 100},
        version={**_FILLED, "maxLength": 255},
        title={**_FILLED, "maxLength": 100},
        websiteUrl=_TEXT, repository=_one("repository"), icons=_list(_one("icon")), packages=_list(_one("package")),
        remotes=_list(_one("remote")), _meta={"type": "object"},
    ),
    "repository": _object("url source", url=_FILLED, source=_FILLED, subfolder=_TEXT, id=_TEXT),
    "icon": _object(
        "src",
        src={**_FILLED, "maxLength": 255},
        mimeType={"enum": ["image/jpeg", "image/jpg", "image/png", "image/svg+xml", "image/webp"]},
        sizes=_list({"type": "string", "pattern": r"^(\d+x\d+|any)$"}),
        theme={"enum": ["light", "dark"]},
    ),
    "package": _object(
        "registryType identifier transport",
        registryType={"enum": ["npm", "pypi", "nuget", "cargo", "oci", "mcpb"]},
        identifier={**_FILLED, "pattern": r"^\S*$"},
        transport=_one("transport"), version=_TEXT, registryBaseUrl=_TEXT,
        fileSha256={"type": "string", "pattern": "^[a-f0-9]{64}$"},
        runtimeHint=_TEXT, runtimeArguments=_list(_one("argument")), packageArguments=_list(_one("argument")),
        environmentVariables=_list(_one("setting")),
    ),
    "transport": _object(
        "type", type={"enum": ["stdio", "streamable-http", "sse"]}, url=_TEXT, headers=_list(_one("setting"))
    ),
    "remote": _object(
        "type url", type={"enum": ["streamable-http", "sse"]}, url=_FILLED, headers=_list(_one("setting")), variables=_map("input")
    ),
    "argument": _object(
        "type", type={"enum": ["named", "positional"]}, name=_TEXT, valueHint=_TEXT, isRepeated=_TRUTH,
        variables=_map("input"), **_INPUT,
    ),
    "setting": _object("name", name=_FILLED, variables=_map("input"), **_INPUT),
    "input": _object("", **_INPUT),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Node:
    shape: str
    path: str
    value: Mapping[str, Any]
    parent: Mapping[str, Any]

    def text(self, field: str) -> str:
        value = self.value.get(field)
        return value if isinstance(value, str) else ""

    def rows(self, field: str) -> list[Any]:
        value = self.value.get(field)
        return value if isinstance(value, list) else []

    def at(self, field: str) -> str:
        return f"{self.path}.{field}" if self.path else field


def _nodes(node: _Node) -> Iterator[_Node]:
    yield node
    for name, part in _SHAPES[node.shape]["properties"].items():
        inside: list[tuple[str, Any]] = []
        match part, node.value.get(name):
            case {"$ref": str(child)}, dict(value):
                inside = [("", value)]
            case {"items": {"$ref": str(child)}}, list(values):
                inside = [(f"[{number}]", value) for number, value in enumerate(values)]
            case {"additionalProperties": {"$ref": str(child)}}, dict(values):
                inside = [(f".{key}", value) for key, value in values.items()]
        for suffix, value in inside:
            if isinstance(value, dict):
                yield from _nodes(_Node(child.rpartition("/")[2], node.at(name) + suffix, value, node.value))


# --- rules and their checks ---

Finder = Callable[[_Node], Iterator[tuple[str, str]]]


@dataclass(frozen=True, slots=True)
class DocumentRule:
    """A rule for objects in `server.json` with one of the `shapes`.

    `find` yields the field and the message of each violation. `source` is the origin of the rule: `schema`, `registry`,
    or `mcpfactory`.
    """

    id: str
    shapes: tuple[str, ...]
    source: str
    statement: str
    find: Finder


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule: rule ID, path, and message."""

    rule: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def find_violations(document: object) -> list[Violation]:
    """Return all violations in `server.json`."""
    if not isinstance(document, dict):
        return [Violation("server-json/shape", "", "the document is not an object")]
    return [*_shape_errors(document)] + [
        Violation(rule.id, node.at(field), message)
        for node in _nodes(_Node("server", "", document, {}))
        for rule in RULES
        if node.shape in rule.shapes
        for field, message in rule.find(node)
    ]


def _shape_errors(document: Mapping[str, Any]) -> Iterator[Violation]:
    import jsonschema  # noqa: PLC0415 - takes 0.2 s to load, and only publishing needs it

    validator = jsonschema.Draft202012Validator({**_one("server"), "$defs": _SHAPES})
    for error in validator.iter_errors(document):
        limit = f" ({error.validator} {error.validator_value})" if str(error.validator).endswith("Length") else ""
        yield Violation("server-json/shape", error.json_path.removeprefix("$").removeprefix("."), error.message + limit)


_ROWS: Final[list[DocumentRule]] = []


def _rule(name: str, source: str, shapes: str, statement: str) -> Callable[[Finder], Finder]:
    def register(find: Finder) -> Finder:
        _ROWS.append(DocumentRule(f"server-json/{name}", tuple(shapes.split()), source, statement, find))
        return find

    return register


def _text_rule(
    name: str, source: str, shapes: str, field: str, statement: str, *, fits: Callable[[str], object], message: str
) -> None:
    """Register a rule for a text field. `message` may contain `{text}` and `{length}`."""

    def find(node: _Node) -> Iterator[tuple[str, str]]:
        text = node.text(field)
        if text and not fits(text):
            yield field, message.format(text=text, length=len(text))

    _ROWS.append(DocumentRule(f"server-json/{name}", tuple(shapes.split()), source, statement, find))


# --- the server, its repository and its icons ---

_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9.-]*[a-zA-Z0-9]/[a-zA-Z0-9][a-zA-Z0-9._-]*[a-zA-Z0-9]")
_NUMBER: Final = r"v?\d+(?:\.\d+){0,3}(?:-[0-9A-Za-z.-]+)?"
_RANGE: Final = re.compile(
    rf"\s*(?:(?:\^|~|>=|<=|>|<|=)\s*{_NUMBER}|{_NUMBER}\s-\s*{_NUMBER}|{_NUMBER}\s*(?:\|\|\s*{_NUMBER}\s*)+"
    r"|(?=.*[xX*])(?:v?\d+|x|X|\*)(?:\.(?:\d+|x|X|\*)){1,2}(?:-[0-9A-Za-z.-]+)?)\s*"
)
_HOSTED: Final = {
    "github": re.compile(r"https?://(www\.)?github\.com/[\w.-]+/[\w.-]+/?"),
    "gitlab": re.compile(r"https?://(www\.)?gitlab\.com/[\w.-]+(/[\w.-]+)+/?"),
}


def _is_https(url: str) -> bool:
    try:
        return url.startswith("https://") and bool(urlsplit(url).hostname)
    except ValueError:  # raised for example for `https://[::1`
        return False


_text_rule(
    "name", "registry", "server", "name", "The name is reverse-DNS/name; both begin and end with a letter or digit.",
    fits=_NAME.fullmatch, message="{text!r} does not have the form reverse-DNS/name, such as io.github.acme/weather",
)  # fmt: skip
_text_rule(
    "version", "registry", "server package", "version", "A version is one version: no range, not `latest`.",
    fits=lambda text: text != "latest" and not _RANGE.fullmatch(text), message="{text!r} is not a single version",
)  # fmt: skip
_text_rule(
    "website", "registry", "server", "websiteUrl", "The website is an https URL.",
    fits=_is_https, message="{text} is not a valid https URL",
)  # fmt: skip


@_rule("start", "mcpfactory", "server", "There is a package or a remote.")
def _start(node: _Node) -> Iterator[tuple[str, str]]:
    if not node.value.get("packages") and not node.value.get("remotes"):
        yield "packages", "neither a package nor a remote: nobody could start or reach the server"


@_rule("repository", "registry", "repository", "A repository is at github or gitlab, and its URL matches.")
def _repository(node: _Node) -> Iterator[tuple[str, str]]:
    pattern = _HOSTED.get(node.text("source"))
    if pattern is None:
        yield "source", f"{node.text('source')!r} is not github or gitlab"
    elif not pattern.fullmatch(node.text("url")):
        yield "url", f"{node.text('url')!r} is not a repository at {node.text('source')}.com"


_text_rule(
    "subfolder", "registry", "repository", "subfolder", "A subfolder is a clean relative path.",
    fits=lambda text: re.fullmatch(r"[a-zA-Z0-9_./-]+", text) and not {"", ".", ".."} & set(text.split("/")),
    message="{text!r} is not a clean relative path",
)  # fmt: skip


_text_rule(
    "icon-source", "registry", "icon", "src", "An icon is an https URL.",
    fits=_is_https, message="{text} is not a valid https URL",
)  # fmt: skip


# --- packages ---

# Public indexes by type of package.
_SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "npm": ("https://registry.npmjs.org",),
    "pypi": ("https://pypi.org",),
    "nuget": ("https://api.nuget.org/v3/index.json", "https://api.nuget.org"),
    "cargo": ("https://crates.io",),
    "mcpb": ("https://github.com", "https://gitlab.com"),
}
_IMAGE_HOST: Final = re.compile(r"docker\.io|ghcr\.io|mcr\.microsoft\.com|[\w.-]+\.pkg\.dev|[\w-]+\.azurecr\.io")
_IMAGE: Final = re.compile(r"(?P<host>[\w.-]+)/[a-z0-9._/-]+(?::[\w][\w.-]*)?(?:@sha256:[a-f0-9]{64})?")
_VARIABLE: Final = re.compile(r"\{([^}]+)\}")


def _host(url: str) -> str:
    """Return the host of a URL template."""
    try:
        return urlsplit(_VARIABLE.sub("x", re.sub(r":\{[^}]+\}", ":80", url))).hostname or ""
    except ValueError:
        return ""


@_rule("package-version", "registry", "package", "A package of an index has a version.")
def _package_version(node: _Node) -> Iterator[tuple[str, str]]:
    if node.text("registryType") in {"npm", "pypi", "nuget", "cargo"} and not node.text("version"):
        yield "version", f"it is missing, and a package of {node.text('registryType')} needs one"


@_rule("package-source", "registry", "package", "A package comes from the public index of its type.")
def _package_source(node: _Node) -> Iterator[tuple[str, str]]:
    allowed, url = _SOURCES.get(node.text("registryType")), node.text("registryBaseUrl")
    if url and allowed and url not in allowed:
        yield "registryBaseUrl", f"{url} is not {' or '.join(allowed)}: the registry takes public packages only"


@_rule("image", "registry", "package", "An image is a full reference at a permitted host, without other fields.")
def _image(node: _Node) -> Iterator[tuple[str, str]]:
    if node.text("registryType") != "oci":
        return
    for field in ("version", "registryBaseUrl", "fileSha256"):
        if field in node.value:
            yield field, "it repeats a part of the image's identifier; the registry refuses the field"
    image = node.text("identifier")
    found = _IMAGE.fullmatch(image)
    if found is None or not _IMAGE_HOST.fullmatch(found["host"]):
        hosts = "docker.io, ghcr.io, *.pkg.dev, *.azurecr.io or mcr.microsoft.com"
        yield "identifier", f"{image!r} is not an image at {hosts}"
    elif "@" not in image and (":" not in image or image.endswith(":latest")):
        yield "identifier", f"{image!r} has no fixed tag or digest"


@_rule("bundle", "registry", "package", "A bundle is a release at github or gitlab with `mcp` in its URL and a hash.")
def _bundle(node: _Node) -> Iterator[tuple[str, str]]:
    if node.text("registryType") != "mcpb":
        return
    url = node.text("identifier").lower()
    hosted = url.startswith("https://") and _host(url).removeprefix("www.") in {"github.com", "gitlab.com"}
    if not hosted or "mcp" not in url:
        yield "identifier", "it is not an https URL at github.com or gitlab.com that contains `mcp`"
    if not node.text("fileSha256"):
        yield "fileSha256", "it is missing, and clients must check a bundle by it"


# --- transports and URLs ---


@_rule("transport-url", "registry", "transport", "A package on stdio has no URL, and a package on HTTP has a URL.")
def _transport_url(node: _Node) -> Iterator[tuple[str, str]]:
    url = node.text("url")
    if node.text("type") == "stdio":
        if url:
            yield "url", "a server on stdio has no URL"
    elif not re.fullmatch(r"https?://\S+", url) or not _host(url):
        yield "url", f"{url!r} is not a valid http or https URL"


@_rule("remote-url", "registry", "remote", "A remote is an https URL that is not on the caller's own machine.")
def _remote_url(node: _Node) -> Iterator[tuple[str, str]]:
    url, host = node.text("url"), _host(node.text("url"))
    if not re.fullmatch(r"https://\S+", url) or not host:
        yield "url", f"{url!r} is not an https URL"
    elif host in {"localhost", "127.0.0.1"} or host.endswith(".localhost"):
        yield "url", f"{host} is the caller's own machine"


@_rule("url-variables", "registry", "transport remote", "Every variable in a URL is declared.")
def _url_variables(node: _Node) -> Iterator[tuple[str, str]]:
    if node.shape == "remote":
        variables = node.value.get("variables")
        known = set(variables) if isinstance(variables, dict) else set()
    else:
        package = _Node("package", "", node.parent, {})
        fields = ("environmentVariables", "runtimeArguments", "packageArguments")
        rows = [row for field in fields for row in package.rows(field) if isinstance(row, dict)]
        known = {name for row in rows for key in ("name", "valueHint") if isinstance(name := row.get(key), str)}
    for name in _VARIABLE.findall(node.text("url")):
        if name not in known:
            names = ", ".join(sorted(known)) or "none"
            yield "url", f"{{{name}}} is not declared; declared variables: {names}"


# --- inputs of the server ---


@_rule("secret", "mcpfactory", "argument setting input", "No secret has a value or a default.")
def _secret(node: _Node) -> Iterator[tuple[str, str]]:
    if node.value.get("isSecret") is True:
        for field in ("value", "default"):
            if node.text(field) and not _VARIABLE.search(node.text(field)):
                yield field, "it contains a secret that everybody can read"


RULES: Final[tuple[DocumentRule, ...]] = tuple(_ROWS)
