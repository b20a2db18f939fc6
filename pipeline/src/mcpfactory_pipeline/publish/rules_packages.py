"""Rules about the packages and remotes of a `server.json`: where they come from, how they are reached, what they are given."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.publish.server_shapes import Place, Rule

__all__ = ["RULES"]

# Where packages of each type come from; None: the identifier says so itself.
_SOURCES: Final[Mapping[str, tuple[str, ...] | None]] = {
    "npm": ("https://registry.npmjs.org",),
    "pypi": ("https://pypi.org",),
    "nuget": ("https://api.nuget.org/v3/index.json", "https://api.nuget.org"),
    "cargo": ("https://crates.io",),
    "oci": None,
    "mcpb": ("https://github.com", "https://gitlab.com"),
}
_IMAGE_HOST: Final = re.compile(r"docker\.io|ghcr\.io|mcr\.microsoft\.com|[\w.-]+\.pkg\.dev|[\w-]+\.azurecr\.io")
_IMAGE: Final = re.compile(r"(?P<host>[\w.-]+)/[a-z0-9._/-]+(?::[\w][\w.-]*)?(?:@sha256:[a-f0-9]{64})?")
_VARIABLE: Final = re.compile(r"\{([^}]+)\}")


def _package_type(place: Place) -> Iterator[tuple[str, str]]:
    kind = place.text("registryType")
    if kind and kind not in _SOURCES:
        yield place.at("registryType"), f"{kind!r} is none of {', '.join(_SOURCES)}"


def _identifier(place: Place) -> Iterator[tuple[str, str]]:
    if re.search(r"\s", place.text("identifier")):
        yield place.at("identifier"), "it has spaces"


def _package_version(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("registryType") in {"npm", "pypi", "nuget", "cargo"} and not place.text("version"):
        yield place.at("version"), f"it is missing, and a package of {place.text('registryType')} needs one"


def _base_url(place: Place) -> Iterator[tuple[str, str]]:
    allowed, url = _SOURCES.get(place.text("registryType")), place.text("registryBaseUrl")
    if url and allowed and url not in allowed:
        yield (
            place.at("registryBaseUrl"),
            f"{url} is not {' or '.join(allowed)}: the registry takes public packages only",
        )


def _image(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("registryType") != "oci":
        return
    for field in ("version", "registryBaseUrl", "fileSha256"):
        if field in place.value:
            yield place.at(field), "the identifier of an image says it already; the registry refuses the field"
    image = place.text("identifier")
    found = _IMAGE.fullmatch(image)
    if found is None or not _IMAGE_HOST.fullmatch(found["host"]):
        yield (
            place.at("identifier"),
            f"{image!r} is no image at docker.io, ghcr.io, *.pkg.dev, *.azurecr.io or mcr.microsoft.com",
        )
    elif "@" not in image and (":" not in image or image.endswith(":latest")):
        yield place.at("identifier"), f"{image!r} has no tag or digest that stays"


def _bundle(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("registryType") != "mcpb":
        return
    url = place.text("identifier").lower()
    hosted = url.startswith("https://") and _host(url).removeprefix("www.") in {"github.com", "gitlab.com"}
    if not hosted or "mcp" not in url:
        yield place.at("identifier"), "it is no https URL at github.com or gitlab.com with `mcp` in it"
    if not place.text("fileSha256"):
        yield place.at("fileSha256"), "it is missing, and clients must check a bundle by it"


def _hash(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("fileSha256") and not re.fullmatch(r"[a-f0-9]{64}", place.text("fileSha256")):
        yield place.at("fileSha256"), "it is not 64 hexadecimal digits in lower case"


def _hint(place: Place) -> Iterator[tuple[str, str]]:
    if place.value.get("runtimeArguments") and not place.text("runtimeHint"):
        yield place.at("runtimeHint"), "it is missing, and runtimeArguments are for the runtime that it names"


def _transport_type(place: Place) -> Iterator[tuple[str, str]]:
    kinds = ("streamable-http", "sse") if place.shape == "remote" else ("stdio", "streamable-http", "sse")
    if place.text("type") and place.text("type") not in kinds:
        yield place.at("type"), f"{place.text('type')!r} is none of {', '.join(kinds)}"


def _transport_url(place: Place) -> Iterator[tuple[str, str]]:
    url = place.text("url")
    if place.text("type") == "stdio":
        if url:
            yield place.at("url"), "a server on stdio has no URL"
    elif not re.fullmatch(r"https?://\S+", url) or not _host(url):
        yield place.at("url"), f"{url!r} is no http or https URL"


def _remote_url(place: Place) -> Iterator[tuple[str, str]]:
    url, host = place.text("url"), _host(place.text("url"))
    if not re.fullmatch(r"https://\S+", url) or not host:
        yield place.at("url"), f"{url!r} is no https URL"
    elif host in {"localhost", "127.0.0.1"} or host.endswith(".localhost"):
        yield place.at("url"), f"{host} is the caller's own machine"


def _url_variables(place: Place) -> Iterator[tuple[str, str]]:
    if place.shape == "remote":
        variables = place.value.get("variables")
        known = set(variables) if isinstance(variables, dict) else set()
    else:
        fields = ("environmentVariables", "runtimeArguments", "packageArguments")
        lists = [rows for field in fields if isinstance(rows := place.parent.get(field), list)]
        rows = [row for rows in lists for row in rows if isinstance(row, dict)]
        known = {row.get(key) for row in rows for key in ("name", "valueHint")}
    for name in _VARIABLE.findall(place.text("url")):
        if name not in known:
            yield (
                place.at("url"),
                f"{{{name}}} is named by nothing: {', '.join(sorted(map(str, known - {None}))) or 'there are none'}",
            )


def _argument(place: Place) -> Iterator[tuple[str, str]]:
    kind = place.text("type")
    if kind == "named" and not place.text("name"):
        yield place.at("name"), "it is missing, and a named argument needs one"
    elif kind == "positional" and not {"value", "valueHint"} & place.value.keys():
        yield place.at("value"), "a positional argument needs a value or a valueHint"
    elif kind not in {"", "named", "positional"}:
        yield place.at("type"), f"{kind!r} is not named or positional"


def _argument_name(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("type") == "named" and re.search(r"[<> $]", place.text("name")):
        yield place.at("name"), f"{place.text('name')!r} holds more than a name"


def _argument_value(place: Place) -> Iterator[tuple[str, str]]:
    name = place.text("name")
    for field in ("value", "default"):
        if place.text("type") == "named" and name and place.text(field).startswith(name):
            yield place.at(field), f"it begins with the argument's name {name}, which would then stand there twice"


def _format(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("format") not in {"", "string", "number", "boolean", "filepath"}:
        yield place.at("format"), f"{place.text('format')!r} is none of string, number, boolean, filepath"


def _secret(place: Place) -> Iterator[tuple[str, str]]:
    if place.value.get("isSecret") is True:
        for field in ("value", "default"):
            if place.text(field) and not _VARIABLE.search(place.text(field)):
                yield place.at(field), "a secret stands in it, for everybody to read"


def _choices(place: Place) -> Iterator[tuple[str, str]]:
    choices = place.value.get("choices")
    if isinstance(choices, list) and choices and place.text("default") and place.text("default") not in choices:
        yield place.at("default"), f"{place.text('default')!r} is none of the choices"


def _host(url: str) -> str:
    """Return the host of a URL whose variables stand for something."""
    try:
        return urlsplit(_VARIABLE.sub("x", re.sub(r":\{[^}]+\}", ":80", url))).hostname or ""
    except ValueError:
        return ""


_INPUTS: Final = "argument setting input"
RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "server-json/package-type",
        "package",
        "registry",
        "A package is of a type that the registry takes.",
        _package_type,
    ),
    Rule("server-json/identifier", "package", "registry", "A package's identifier has no spaces.", _identifier),
    Rule(
        "server-json/package-version", "package", "registry", "A package of an index has a version.", _package_version
    ),
    Rule(
        "server-json/package-source",
        "package",
        "registry",
        "A package comes from the public index of its type.",
        _base_url,
    ),
    Rule(
        "server-json/image",
        "package",
        "registry",
        "An image is a full reference at a host that the registry takes, and nothing beside it.",
        _image,
    ),
    Rule(
        "server-json/bundle",
        "package",
        "registry",
        "A bundle is a release at github or gitlab with `mcp` in its URL and a hash.",
        _bundle,
    ),
    Rule("server-json/hash", "package", "schema", "A hash is 64 hexadecimal digits in lower case.", _hash),
    Rule("server-json/runtime-hint", "package", "schema", "Arguments for a runtime name the runtime.", _hint),
    Rule(
        "server-json/transport",
        "transport remote",
        "registry",
        "A transport is one that packages, or remotes, may have.",
        _transport_type,
    ),
    Rule(
        "server-json/transport-url",
        "transport",
        "registry",
        "A package on stdio has no URL, one on HTTP has one.",
        _transport_url,
    ),
    Rule(
        "server-json/remote-url",
        "remote",
        "registry",
        "A remote is an https URL, and not the caller's own machine.",
        _remote_url,
    ),
    Rule(
        "server-json/url-variables",
        "transport remote",
        "registry",
        "Every variable in a URL is named by what belongs to it.",
        _url_variables,
    ),
    Rule(
        "server-json/argument",
        "argument",
        "schema",
        "A named argument has a name, a positional one a value or a valueHint.",
        _argument,
    ),
    Rule("server-json/argument-name", "argument", "registry", "An argument's name is a name only.", _argument_name),
    Rule(
        "server-json/argument-value",
        "argument",
        "registry",
        "A value does not begin with the argument's name.",
        _argument_value,
    ),
    Rule("server-json/format", _INPUTS, "schema", "A format is one of the four.", _format),
    Rule("server-json/secret", _INPUTS, "mcpfactory", "No secret has a value or a default.", _secret),
    Rule("server-json/choices", _INPUTS, "mcpfactory", "A default is one of the choices.", _choices),
)
