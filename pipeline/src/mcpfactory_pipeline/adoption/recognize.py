"""Recognition of a server to adopt and of its start command. The server is not run."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shlex
import shutil
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from dataclasses import replace
from email.parser import HeaderParser
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from mcpfactory_pipeline.adoption import npm, pypi, remote_offers
from mcpfactory_pipeline.adoption.command import NO_IMAGE, refuse_secrets_in_commands_and_urls, refuse_wrapper_program
from mcpfactory_pipeline.adoption.projects import recognize_project
from mcpfactory_pipeline.adoption.proposal import (
    RecognizedServer,
    derive_server_name,
    detect_framework,
    find_variables_in_code,
    framework_finding,
)
from mcpfactory_pipeline.adoption.sources import LOCKS, AdoptionRequest
from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, RefusedError
from mcpfactory_pipeline.base.text import pluralize, printable_line
from mcpfactory_pipeline.build.programs import ToolRejectedInputError
from mcpfactory_pipeline.isolation.levels import path_without_mcpfactory
from mcpfactory_pipeline.workspace.workspace import Workspace, WorkspaceServer

FORMS: Final = "FOLDER, pypi:NAME==VERSION, npm:NAME@VERSION, https://…, or --command 'PROGRAM …'"
_PYPI: Final = re.compile(r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?:==(?P<version>[A-Za-z0-9.!+_-]+))?")
_NPM: Final = re.compile(
    r"(?P<name>(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*)(?:@(?P<version>[A-Za-z0-9.+-]+))?"
)
# Interpreters belong to the machine, not to a candidate.
_INTERPRETERS: Final = re.compile(r"node|deno|bun|java|dotnet|ruby|php|perl|python(3(\.\d+)?)?|sh|bash")
_LARGEST: Final = 1 << 21  # maximum size in bytes of a file that is searched


def recognize(workspace: Workspace, request: AdoptionRequest) -> RecognizedServer:
    """Return the recognized server for an adoption request.

    Raises:
        ConfigError: the server's start command is unknown, or options conflict.
        RefusedError: this kind of server cannot be adopted.
    """
    if bool(request.what) == bool(request.command):
        raise ConfigError("give either a server or --command", hint=f"mcpfactory adopt {FORMS}")
    refuse_secrets_in_commands_and_urls(request.what, [_words(text) for text in (request.command, request.start)])
    with tempfile.TemporaryDirectory(prefix="mcpfactory-adopt-") as work:
        try:
            found = _by_form(workspace, request)(Path(work))
        except ToolRejectedInputError as error:
            raise NotFoundError(
                f"{request.what or request.command} cannot be adopted: {error}", hint=f"mcpfactory adopt {FORMS}"
            ) from error
    return replace(found, decided=frozenset({"start"} if request.start or request.command else ()))


def find_earlier_adoption(workspace: Workspace, kind: str, field: str, value: str) -> WorkspaceServer | None:
    """Return the server that was adopted from the same source, or None if there is not exactly one."""
    found = [
        server
        for server in workspace.servers()
        if server.adopted and server.adopted.kind == kind and getattr(server.adopted, field) == value
    ]
    return found[0] if len(found) == 1 else None


def _by_form(workspace: Workspace, request: AdoptionRequest) -> Callable[[Path], RecognizedServer]:
    if request.command:
        return lambda _work: _command(workspace, request)
    scheme, colon, rest = request.what.partition(":")
    forms: Mapping[str, Callable[[Path], RecognizedServer]] = {
        "pypi": lambda work: _from_pypi(workspace, rest, request, work),
        "npm": lambda work: _from_npm(workspace, rest, request, work),
        "http": lambda _work: _at_url(workspace, request),
        "https": lambda _work: _at_url(workspace, request),
    }
    if colon and scheme in {"oci", "docker"}:
        raise RefusedError(
            "a container image cannot be adopted: mcpfactory starts and checks programs, not images",
            hint=NO_IMAGE,
        )
    if colon and scheme in forms:
        return forms[scheme]
    place = (request.here / request.what).resolve()
    if place.is_dir():
        return lambda work: recognize_project(workspace, place, request, work)
    if place.is_file():
        return lambda _work: _command(
            workspace, replace(request, what="", command=shlex.join([request.what, *_words(request.start)]))
        )
    raise NotFoundError(
        f"{request.what} is neither an existing folder nor a package nor a URL", hint=f"mcpfactory adopt {FORMS}"
    )


# --- packages ---


def _from_pypi(workspace: Workspace, text: str, request: AdoptionRequest, work: Path) -> RecognizedServer:
    asked = _PYPI.fullmatch(text)
    if asked is None:
        raise ConfigError(
            f"pypi:{text} does not select exactly one version of a package", hint="mcpfactory adopt pypi:NAME==VERSION"
        )
    name = canonicalize_name(asked["name"])
    row = pypi.find_wheel(f"{name}=={asked['version']}" if asked["version"] else name, work)
    data = pypi.fetch_wheel(row)
    before = find_earlier_adoption(workspace, "pypi", "package", name)
    constraints = request.constraints or (before.adopted.constraints if before and before.adopted else ())
    lock = pypi.compile_lock([f"{name}=={row.version}"], constraints, work)
    with zipfile.ZipFile(io.BytesIO(data)) as wheel:
        scripts, needs = _wheel_programs(wheel), _wheel_needs(wheel)
        names = find_variables_in_code(_zip_files(wheel))
    start = _chosen(_words(request.start), scripts, name)
    packages = len(re.findall(r"^\S+==", lock, re.M))
    found = (
        f"{name} {row.version} of the package index: {row.file}, {row.hash[:19]}…",
        *framework_finding([canonicalize_name(need.name) for need in needs]),
        f"{pluralize(packages, 'package')} in {LOCKS['python']}, each by its hash",
    )
    table = {"package": name, "version": row.version, "hash": row.hash, "start": start, "constraints": constraints}
    return RecognizedServer(
        "pypi",
        before.name if before else derive_server_name(name),
        table,
        {LOCKS["python"]: lock},
        names,
        (*found, f"starts by {shlex.join(start)}"),
        tuple(_newer_than_known(needs, lock)),
    )


def _newer_than_known(needs: Sequence[Requirement], lock: str) -> Iterator[str]:
    """Yield a note for each framework whose locked major version is newer than the declared version."""
    for need in needs:
        locked = re.search(rf"^{re.escape(canonicalize_name(need.name))}==([\w.!+-]+)", lock, re.M)
        known = [Version(one.version) for one in need.specifier if one.operator in {">=", ">"}]
        if (
            detect_framework([canonicalize_name(need.name)])
            and locked
            and known
            and max(known).major < Version(locked[1]).major
        ):
            bound = f"{need.name}<{max(known).major + 1}"
            yield (
                f"the package requires {need.name}{need.specifier}, and the lock has {locked[1]}: if the server does "
                f"not start with this version, use --constraint '{bound}'"
            )


def _wheel_programs(wheel: zipfile.ZipFile) -> list[str]:
    parser = ConfigParser(delimiters=("=",), strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign] # program names are case-sensitive
    try:
        parser.read_string(_in_info(wheel, "entry_points.txt"))
        return list(parser["console_scripts"]) if parser.has_section("console_scripts") else []
    except ConfigParserError:
        return []


def _wheel_needs(wheel: zipfile.ZipFile) -> list[Requirement]:
    found = HeaderParser().parsestr(_in_info(wheel, "METADATA")).get_all("Requires-Dist", [])
    needs: list[Requirement] = []
    for text in found:
        with suppress(InvalidRequirement):
            needs.append(Requirement(str(text)))
    return needs


def _in_info(wheel: zipfile.ZipFile, name: str) -> str:
    path = next((one for one in wheel.namelist() if one.endswith(f".dist-info/{name}")), None)
    return wheel.read(path).decode(errors="replace") if path else ""


def _zip_files(wheel: zipfile.ZipFile) -> Iterator[tuple[str, bytes]]:
    for entry in wheel.infolist():
        if entry.filename.endswith(".py") and entry.file_size <= _LARGEST:
            yield entry.filename, wheel.read(entry)


def _from_npm(workspace: Workspace, text: str, request: AdoptionRequest, work: Path) -> RecognizedServer:
    asked = _NPM.fullmatch(text)
    if asked is None:
        raise ConfigError(
            f"npm:{text} does not select exactly one version of a package",
            hint="mcpfactory adopt npm:@scope/NAME@VERSION",
        )
    if request.constraints:
        raise ConfigError("--constraint is only for Python packages", hint="leave out --constraint")
    about, data = npm.fetch_tarball(text, work, log=False)
    name, version = str(about["name"]), str(about["version"])
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        package, names = _package_json(archive), find_variables_in_code(_tar_files(archive))
    programs = package.get("bin", {})
    programs = [name.rpartition("/")[2]] if isinstance(programs, str) else list(programs)
    start = _chosen(_words(request.start), programs, name.rpartition("/")[2])
    before = find_earlier_adoption(workspace, "npm", "package", name)
    lock = npm.lock_dependency_tree(name, data, work)
    rows: Mapping[str, Any] = json.loads(lock)["packages"]
    found = [
        f"{name} {version} of the registry: {npm.npm_integrity(data)[:23]}…",
        *framework_finding(package.get("dependencies", {})),
    ]
    found.append(f"{pluralize(len(rows) - 1, 'package')} in {LOCKS['node']}, each by its integrity")
    scripted = npm.packages_with_install_scripts(lock)
    notes = (f"installation scripts are not run: {', '.join(scripted[:5])}",) if scripted else ()
    table = {"package": name, "version": version, "hash": npm.npm_integrity(data), "start": start}
    return RecognizedServer(
        "npm",
        before.name if before else derive_server_name(name),
        table,
        {LOCKS["node"]: lock},
        names,
        (*found, f"starts by {shlex.join(start)}"),
        notes,
    )


def _package_json(archive: tarfile.TarFile) -> dict[str, Any]:
    for member in archive.getmembers():
        if member.isfile() and member.name.count("/") == 1 and member.name.endswith("/package.json"):
            stream = archive.extractfile(member)
            found = json.loads(stream.read()) if stream else {}
            return found if isinstance(found, dict) else {}
    return {}


def _tar_files(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive.getmembers():
        if member.isfile() and member.size <= _LARGEST and member.name.endswith((".js", ".mjs", ".cjs")):
            stream = archive.extractfile(member)
            if stream is not None:
                yield member.name, stream.read()


def _chosen(given: Sequence[str], programs: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the command line.

    If the first given word is a program of the package, the given words are the whole command. Otherwise, the given
    words are arguments for the package's program.
    """
    if given and given[0] in programs:
        return tuple(given)
    program = name if name in programs else programs[0] if len(programs) == 1 else ""
    if not program:
        has = f"it has {', '.join(programs)}" if programs else "it has no program"
        raise ConfigError(f"{name} does not define a start program: {has}", hint="use --started-by 'PROGRAM …'")
    return (program, *given)


# --- URLs and commands ---


def _at_url(workspace: Workspace, request: AdoptionRequest) -> RecognizedServer:
    if not _is_url(request.what):
        raise ConfigError(
            f"{request.what!r} is not a valid URL: it has spaces, line breaks, other invalid characters, or an "
            "invalid port",
            hint="https://host/mcp",
        )
    parts = urlsplit(request.what)
    if not parts.hostname or parts.username is not None or parts.password is not None:
        raise ConfigError(
            "the URL must have a host, and must not contain a user name or a password", hint="https://host/mcp"
        )
    if request.start or request.constraints or request.copy:
        raise ConfigError(
            "--started-by, --constraint and --copy cannot be used with a URL",
            hint="leave out these options",
        )
    offers = asyncio.run(remote_offers.fetch_offers(request.what))
    server = offers.get("server") or {}
    who = f"{server.get('name', 'a server')} {server.get('version', '')}"
    found = (
        f"{printable_line(who)} at {request.what}: "
        f"{pluralize(len(offers['tools']), 'tool')}, {pluralize(len(offers['resources']), 'resource')}, {pluralize(len(offers['prompts']), 'prompt')}",
        f"the server's offers are recorded in {LOCKS['url']}; the server is checked for drift, and not built",
    )
    before = find_earlier_adoption(workspace, "url", "url", request.what)
    name = before.name if before else derive_server_name(str(server.get("name") or parts.hostname))
    text = remote_offers.offers_to_text(request.what, offers)
    return RecognizedServer(
        "url", name, {"url": request.what}, {LOCKS["url"]: text}, (), found, _offer_notes(before, offers)
    )


def _is_url(text: str) -> bool:
    """Return True if a text is a valid URL. Line breaks are invalid, although `urlsplit` silently drops them."""
    try:
        _ = urlsplit(text).port
    except ValueError:
        return False
    return re.fullmatch(r"[\x21-\x7e]+", text) is not None


def _offer_notes(before: WorkspaceServer | None, offers: Mapping[str, Any]) -> tuple[str, ...]:
    """Return notes about changes of a URL's offers since the last adoption."""
    try:
        known = remote_offers.parse_offers((before.folder / LOCKS["url"]).read_bytes()) if before else None
    except (OSError, ToolRejectedInputError):
        known = None  # a new lock file replaces an unreadable one
    changes = remote_offers.describe_offer_changes(known, offers) if known else []
    return (
        (f"it offers something else than was adopted: {remote_offers.summarize_offer_changes(changes)}",)
        if changes
        else ()
    )


def _command(workspace: Workspace, request: AdoptionRequest) -> RecognizedServer:
    words = [*_words(request.command), *(_words(request.start) if request.what else [])]
    if not words:
        raise ConfigError("the command is empty", hint="use --command './server --stdio'")
    refuse_wrapper_program(words)
    here, copied = request.here.resolve(), dict[str, Path]()
    plain = "/" not in words[0] and not (here / words[0]).is_file()
    if plain and shutil.which(words[0], path=path_without_mcpfactory()) is None:
        raise NotFoundError(
            f"program {words[0]} not found", hint="give the path of the program, or install the program"
        )
    if plain and not _INTERPRETERS.fullmatch(words[0]):
        words[0] = str(Path(shutil.which(words[0], path=path_without_mcpfactory()) or words[0]).resolve())
    own = words[1:] if _INTERPRETERS.fullmatch(Path(words[0]).name) else words
    places = {word: (here / word).resolve() for word in own if not word.startswith("-") and (here / word).is_file()}
    if not places:
        raise ConfigError(
            "mcpfactory cannot check the program: the command does not name a file",
            hint="adopt the package that contains the program",
        )
    outside = [str(place) for place in places.values() if not place.is_relative_to(workspace.root)]
    if outside and not request.copy:
        raise RefusedError(
            f"{outside[0]} is outside the workspace, so other checkouts do not have this file",
            hint="use --copy to copy the file into the server's folder, or move the file into the workspace",
        )
    name = derive_server_name(request.name or Path(next(iter(places.values()))).stem)
    if outside:
        copied = {f"files/{place.name}": place for place in places.values()}
        path, named = f"servers/{name}/files", {word: place.name for word, place in places.items()}
    else:
        inside = here.is_relative_to(workspace.root) and all(place.is_relative_to(here) for place in places.values())
        folder = here if inside else workspace.root
        path = folder.relative_to(workspace.root).as_posix()
        named = {word: place.relative_to(folder).as_posix() for word, place in places.items()}
    start = tuple(named.get(word, word) for word in words)
    size = sum(place.stat().st_size for place in places.values())
    found = [
        f"{pluralize(len(places), 'file')} of {size} bytes: {', '.join(named.values())}",
        f"starts by {shlex.join(start)}",
    ]
    notes = () if start[0] in named.values() else (f"{start[0]} belongs to the machine, not to the candidate",)
    names = find_variables_in_code(
        (word, place.read_bytes()) for word, place in places.items() if place.stat().st_size <= _LARGEST
    )
    return RecognizedServer("command", name, {"path": path, "start": start}, {}, names, tuple(found), notes, copied)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is not a valid command line: {str(error).lower()}", hint="close every quote"
        ) from error
