"""Rules about a `server.json` as a whole, its repository and its icons; and about the fields of every object in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.publish.server_shapes import KINDS, LIST, OBJECT, SHAPES, Place, Rule

__all__ = ["PUBLISHER", "RULES", "SCHEMA"]

SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
PUBLISHER: Final = "io.modelcontextprotocol.registry/publisher-provided"
_MOST_META: Final = 4096  # bytes
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


def _kind(place: Place) -> Iterator[tuple[str, str]]:
    for field, kind in SHAPES[place.shape].items():
        name = field.rstrip("*")
        if name not in place.value:
            continue
        value: Any = place.value[name]
        how = kind.partition(":")[0]
        wanted = {"one": OBJECT, "map": OBJECT, "list": LIST}.get(how, kind)
        fits = isinstance(value, KINDS[wanted])  # in a name of its own: no type follows from it
        if not fits:
            yield place.at(name), f"it is not {wanted}"
        elif ":" in kind and how != "one":
            if not all(isinstance(one, dict) for one in (value.values() if isinstance(value, dict) else value)):
                yield place.at(name), "not all in it are objects"
        elif wanted == LIST and ":" not in kind and not all(isinstance(one, str) for one in value):
            yield place.at(name), "not all in it are texts"


def _needed(place: Place) -> Iterator[tuple[str, str]]:
    for field in SHAPES[place.shape]:
        if field.endswith("*") and place.value.get(field[:-1], "") == "":
            yield place.at(field[:-1]), "it is missing"


def _unknown(place: Place) -> Iterator[tuple[str, str]]:
    known = {field.rstrip("*") for field in SHAPES[place.shape]}
    for name in place.value:
        if name not in known:
            yield place.at(name), "the schema has no such field"


def _schema(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("$schema") not in {"", SCHEMA}:
        yield "$schema", f"{place.text('$schema')} is not {SCHEMA}"


def _name(place: Place) -> Iterator[tuple[str, str]]:
    name = place.text("name")
    if name and not _NAME.fullmatch(name):
        yield "name", f"{name!r} is not reverse-DNS/name, as io.github.acme/weather is"


def _name_length(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("name") and not 3 <= len(place.text("name")) <= 200:
        yield "name", f"it has {len(place.text('name'))} characters, not 3 to 200"


def _description(place: Place) -> Iterator[tuple[str, str]]:
    if len(place.text("description")) > 100:
        yield "description", f"it has {len(place.text('description'))} characters, 100 at most"


def _title(place: Place) -> Iterator[tuple[str, str]]:
    title = place.value.get("title")
    if isinstance(title, str) and not (title.strip() and len(title) <= 100):
        yield "title", "it is blank, or has more than 100 characters"


def _version(place: Place) -> Iterator[tuple[str, str]]:
    version = place.text("version")
    if version == "latest" or _RANGE.fullmatch(version):
        yield place.at("version"), f"{version!r} is not one version"


def _version_length(place: Place) -> Iterator[tuple[str, str]]:
    if len(place.text("version")) > 255:
        yield "version", f"it has {len(place.text('version'))} characters, 255 at most"


def _website(place: Place) -> Iterator[tuple[str, str]]:
    if place.text("websiteUrl") and not _is_https(place.text("websiteUrl")):
        yield "websiteUrl", f"{place.text('websiteUrl')} is no https URL"


def _something(place: Place) -> Iterator[tuple[str, str]]:
    if not place.value.get("packages") and not place.value.get("remotes"):
        yield "packages", "neither a package nor a remote: nobody could start or reach the server"


def _meta_size(place: Place) -> Iterator[tuple[str, str]]:
    meta = place.value.get("_meta")
    own = meta.get(PUBLISHER) if isinstance(meta, dict) else None
    size = len(json.dumps(own, separators=(",", ":"), ensure_ascii=False).encode()) if own is not None else 0
    if size > _MOST_META:
        yield f"_meta.{PUBLISHER}", f"it takes {size} bytes, {_MOST_META} at most"


def _meta_keys(place: Place) -> Iterator[tuple[str, str]]:
    meta = place.value.get("_meta")
    for key, value in meta.items() if isinstance(meta, dict) else ():
        if key != PUBLISHER:
            yield f"_meta.{key}", f"the registry drops it; only {PUBLISHER} stays"
        elif not isinstance(value, dict):
            yield f"_meta.{key}", "it is not an object"


def _repository(place: Place) -> Iterator[tuple[str, str]]:
    shape = _HOSTED.get(place.text("source"))
    if shape is None:
        yield place.at("source"), f"{place.text('source')!r} is not github or gitlab"
    elif not shape.fullmatch(place.text("url")):
        yield place.at("url"), f"{place.text('url')!r} is no repository at {place.text('source')}.com"


def _subfolder(place: Place) -> Iterator[tuple[str, str]]:
    folder = place.text("subfolder")
    if folder and (not re.fullmatch(r"[a-zA-Z0-9_./-]+", folder) or {"", ".", ".."} & set(folder.split("/"))):
        yield place.at("subfolder"), f"{folder!r} is no clean relative path"


def _icon_source(place: Place) -> Iterator[tuple[str, str]]:
    if not _is_https(place.text("src")) or len(place.text("src")) > 255:
        yield place.at("src"), "it is no https URL of 255 characters at most"


def _icon_fields(place: Place) -> Iterator[tuple[str, str]]:
    kinds = {"", "image/png", "image/jpeg", "image/jpg", "image/svg+xml", "image/webp"}
    if place.text("mimeType") not in kinds:
        yield place.at("mimeType"), f"{place.text('mimeType')!r} is none of {', '.join(sorted(kinds - {''}))}"
    if place.text("theme") not in {"", "light", "dark"}:
        yield place.at("theme"), f"{place.text('theme')!r} is not light or dark"
    sizes = place.value.get("sizes")
    for size in sizes if isinstance(sizes, list) else ():
        if not re.fullmatch(r"\d+x\d+|any", str(size)):
            yield place.at("sizes"), f"{size!r} is not like 48x48, or any"


def _is_https(url: str) -> bool:
    try:
        return url.startswith("https://") and bool(urlsplit(url).hostname)
    except ValueError:  # as for `https://[::1`
        return False


RULES: Final[tuple[Rule, ...]] = (
    Rule("server-json/kind", "", "schema", "A field holds what its kind asks for.", _kind),
    Rule("server-json/needed", "", "schema", "A field that is needed is there and not empty.", _needed),
    Rule(
        "server-json/unknown",
        "",
        "mcpfactory",
        "No field is unknown to the schema: fields of drafts are dropped.",
        _unknown,
    ),
    Rule("server-json/schema", "server", "registry", "`$schema` is the released one.", _schema),
    Rule(
        "server-json/name",
        "server",
        "registry",
        "The name is reverse-DNS/name; both begin and end with a letter or digit.",
        _name,
    ),
    Rule("server-json/name-length", "server", "schema", "The name has 3 to 200 characters.", _name_length),
    Rule("server-json/description", "server", "schema", "The description has 100 characters at most.", _description),
    Rule("server-json/title", "server", "registry", "A title is not blank and has 100 characters at most.", _title),
    Rule(
        "server-json/version",
        "server package",
        "registry",
        "A version is one version: no range, not `latest`.",
        _version,
    ),
    Rule("server-json/version-length", "server", "schema", "The version has 255 characters at most.", _version_length),
    Rule("server-json/website", "server", "registry", "The website is an https URL.", _website),
    Rule("server-json/start", "server", "mcpfactory", "There is a package or a remote.", _something),
    Rule(
        "server-json/meta-size", "server", "registry", "What the publisher adds takes 4096 bytes at most.", _meta_size
    ),
    Rule("server-json/meta-keys", "server", "registry", "`_meta` has the publisher's key only.", _meta_keys),
    Rule(
        "server-json/repository",
        "repository",
        "registry",
        "A repository is at github or gitlab, and its URL is one of theirs.",
        _repository,
    ),
    Rule("server-json/subfolder", "repository", "registry", "A subfolder is a clean relative path.", _subfolder),
    Rule(
        "server-json/icon-source",
        "icon",
        "registry",
        "An icon is an https URL of 255 characters at most.",
        _icon_source,
    ),
    Rule(
        "server-json/icon-fields",
        "icon",
        "schema",
        "An icon's type, theme and sizes are among those known.",
        _icon_fields,
    ),
)
