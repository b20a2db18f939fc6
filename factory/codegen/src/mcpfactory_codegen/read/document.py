"""Loading of API documents from a file or URL, with the files that they reference.

No later step reads a file. Referenced files must be below the folder of the document. Referenced URLs must be on hosts
that the caller allows.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
import socket
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from mcpfactory_codegen.ir import Problem, ProblemCollector
from mcpfactory_codegen.read.parse import Format, ParseError, TextSyntaxError, parse
from mcpfactory_codegen.sources import SOURCES, recognize_document_kind, unsupported_kind
from mcpfactory_runtime.errors import Exit, McpfactoryError
from mcpfactory_runtime.protocol.decoding import iter_decoded
from mcpfactory_runtime.urls import (
    DEFAULT_PORTS,
    MAX_REDIRECTS,
    Redirect,
    has_web_scheme,
    host_port,
    is_public,
    redirect_of,
    split_web_url,
)

if TYPE_CHECKING:
    import httpx


_log: Final = logging.getLogger(__name__)
_SECONDS: Final = 30.0  # seconds; timeout of a request
_URL_HINT: Final = "use a URL such as https://api.example.com/openapi.json"
_BESIDES: Final[ContextVar[Collection[str] | None]] = ContextVar("besides", default=None)


class FetchError(McpfactoryError):
    """Error for a URL that cannot be fetched."""


def host_of(url: str) -> str:
    """Return `host` or `host:port` of an http or https URL in lower case, else "".

    The default port of the scheme is omitted.
    """
    parts = split_web_url(url)
    if parts is None:
        return ""
    host = (parts.hostname or "").lower()
    return host if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f"{host}:{parts.port}"


@contextmanager
def restrict_to_public_hosts(besides: Collection[str] = ()) -> Iterator[None]:
    """Restrict `fetch` to public addresses inside this context.

    Use the restriction for URLs that do not come from the operator. `besides` has hosts (`host`, `host:port`) that may
    be private.
    """
    token = _BESIDES.set(frozenset(one.lower() for one in besides))
    try:
        yield
    finally:
        _BESIDES.reset(token)


def fetch(url: str, *, allowed_hosts: Collection[str], max_bytes: int) -> tuple[bytes, str]:
    """Return the body of `url` and the final URL after redirects.

    Redirects must point to one of `allowed_hosts` (`host` or `host:port`), so that a remote server cannot redirect to
    internal addresses. Redirects must not downgrade from https to http, or use other schemes. Raise a FetchError for a
    refused or unreachable URL, a status other than 200, or a body of more than `max_bytes`.
    """
    _check(url, allowed_hosts)
    import httpx  # noqa: PLC0415  # httpx is slow to import, and only needed for URLs

    try:
        with httpx.Client(timeout=_SECONDS, follow_redirects=False) as client:
            for _ in range(MAX_REDIRECTS + 1):
                _check(url, allowed_hosts)
                target, options = _dialled(url)
                with client.stream("GET", target, **options) as answer:
                    redirect = redirect_of("GET", url, answer.status_code, answer.headers.get("location", ""))
                    if redirect is None:
                        return _body(answer, url, max_bytes), url
                url = redirect_target(redirect, url)
    except httpx.InvalidURL as error:
        raise FetchError(f"{url} is not a URL: {error}", _URL_HINT) from None
    except httpx.HTTPError as error:
        message = f"{url} cannot be read: {error or type(error).__name__}"
        raise FetchError(message, "check the address and the network") from None
    raise FetchError(f"{url} redirects more than {MAX_REDIRECTS} times", "use the final URL")


def redirect_target(redirect: Redirect, url: str) -> str:
    """Return the target URL of a redirect.

    The target may have another origin, because the request has no credentials and `_check` verifies the host. Raise a
    FetchError if the target is neither http nor https, or if the target downgrades from https to http.
    """
    if redirect.refusal == "target":
        raise FetchError(f"{url} redirects to a URL that is neither http nor https", "use the final URL")
    if url.startswith("https:") and not redirect.url.startswith("https:"):
        raise FetchError(f"{url} redirects to the unencrypted URL {redirect.url}", "use the final URL")
    return redirect.url


def _check(url: str, allowed_hosts: Collection[str]) -> None:
    if not has_web_scheme(url):
        raise FetchError(f"{url} is neither http nor https", "give an http or https URL, or the path of a file")
    if split_web_url(url) is None:
        raise FetchError(f"{url} is not a valid URL: the host or the port is invalid", _URL_HINT)
    host = host_of(url)
    if host not in {allowed.lower() for allowed in allowed_hosts}:
        message = f"{url} is on the host {host!r}, which is not allowed"
        raise FetchError(message, f"allow the host {host!r}, or use its URL directly")


def _dialled(url: str) -> tuple[str, dict[str, Any]]:
    """Return the URL to connect to, with headers and options.

    For restricted hosts, the URL contains the checked address, because the name could later resolve to another address.
    """
    headers = {"Accept": "application/json, application/yaml, */*"}
    parts, besides = urlsplit(url), _BESIDES.get()
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    place = host_port(host, port)
    if besides is None or {place, place.rpartition(":")[0]} & set(besides):
        return url, {"headers": headers}
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise FetchError(f"{url} cannot be read: {error.strerror}", "check the address and the network") from None
    addresses = [str(one[4][0]) for one in found]
    if not all(map(is_public, addresses)):
        raise FetchError(f"{url} resolves to a private address", "allow the host when you start the server")
    name = f"[{addresses[0]}]" if ":" in addresses[0] else addresses[0]
    target = parts._replace(netloc=f"{name}:{port}").geturl()
    headers["Host"] = parts.netloc.rpartition("@")[2]
    return target, {"headers": headers, "extensions": {"sni_hostname": host}}


def _body(answer: httpx.Response, url: str, max_bytes: int) -> bytes:
    if answer.status_code != 200:
        raise FetchError(f"{url} returned HTTP {answer.status_code} {answer.reason_phrase}", "check the address")
    chunks: list[bytes] = []
    size = 0
    for chunk in iter_decoded(answer):
        size += len(chunk)
        if size > max_bytes:
            raise FetchError(f"{url} is larger than {max_bytes // 1_000_000} MB", "check that it is the right address")
        chunks.append(chunk)
    return b"".join(chunks)


MAX_BYTES: Final = 64_000_000
"""Maximum bytes of a document with all its files. The largest known public document has 37 MB."""
MAX_FILES: Final = 5_000

# the beginning of a JSON object, or the first key of an OpenAPI document in YAML
_DAMAGED: Final = re.compile(rb"\A\s*\{|^[\"']?(?:openapi|swagger)\b", re.MULTILINE)
_OTHER_FILE: Final = re.compile(rb"\$ref[\"']?\s*:\s*[\"']?[^\"'#\s]")


class DocumentError(McpfactoryError):
    """Error for a source without a usable API document."""

    exit_code = Exit.BAD_INPUT


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """One file of a document: its data, and the bytes as read."""

    data: Any
    raw: bytes
    format: Format = "json"


@dataclass(frozen=True, slots=True)
class Document:
    """An API document. `source` is the path or URL of the document, after redirects.

    `parts` has the files by path relative to the root folder, or by absolute URL. `refused` has the reason for each
    file that was not read. `overlays` has the overlays that were applied to `data`, by the names that problems use.
    """

    data: dict[str, Any]
    raw: bytes
    format: Format
    source: str
    main: str = ""
    parts: dict[str, DocumentFile] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    overlays: dict[str, DocumentFile] = field(default_factory=dict)


def load(
    source: str | Path, *, allowed_hosts: Collection[str] = (), root: Path | None = None, max_bytes: int = MAX_BYTES
) -> Document:
    """Read the API document at a path or an http(s) URL, and the files that it references.

    Referenced URLs and redirects may use `allowed_hosts` (`host` or `host:port`), in addition to the host of the
    document's URL. Referenced files must be in the directory `root`, by default the directory of the document.
    `max_bytes` limits the size of all files together. Raise a DocumentError for a source that is missing, invalid, too
    big, or of an unknown kind.
    """
    _log.info("read %s", source)
    return _Loading(_PartLoader(source, root, allowed_hosts), max_bytes).document()


def join_reference(base: str, reference: str) -> str:
    """Return the name of the part that a reference in the part `base` points to, such as `../common.yaml`."""
    if has_web_scheme(reference):
        return reference
    if has_web_scheme(base):
        try:
            return urljoin(base, reference)
        except ValueError:  # the host is invalid; the error is reported when the file is read
            return f"{base.partition(':')[0]}:{reference}"
    if reference.startswith("/"):
        return reference
    return posixpath.normpath(posixpath.join(posixpath.dirname(base), unquote(reference)))


def _elsewhere(source: str) -> str:
    """Return a hint for a missing file, because the given source can be a URL without a scheme."""
    is_address = re.match(r"(localhost|[\w-]+(\.[\w-]+)+)(:\d+)?/", source) and not source.startswith(".")
    return f"check the path; for a URL, write its scheme: http://{source}" if is_address else "check the path"


class _RefusedError(Exception):
    """Error for a part that must not be read, with the reason as text."""


class _PartLoader:
    """Reader of the parts of one document: files below one folder, and URLs on allowed hosts."""

    def __init__(self, source: str | Path, root: Path | None, allowed_hosts: Collection[str]) -> None:
        self.source = self.main = str(source)
        self._remote = re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", self.source) is not None
        self._hosts = {*allowed_hosts, host_of(self.source)} if self._remote else allowed_hosts
        self._root = Path() if self._remote else (root or Path(source).parent).resolve()

    def read_main(self, max_bytes: int) -> bytes:
        """Return the document's bytes, or raise a DocumentError."""
        if self._remote:
            try:
                raw, self.main = fetch(self.source, allowed_hosts=self._hosts, max_bytes=max_bytes)
            except FetchError as error:
                raise DocumentError(str(error), error.hint) from None
            self.source = self.main
            return raw
        path = Path(self.source).resolve()
        if not path.is_relative_to(self._root):
            raise DocumentError(f"{self.source} is outside {self._root}", "choose a parent folder of the document")
        self.main = path.relative_to(self._root).as_posix()
        if path.is_dir():
            raise DocumentError(f"{self.source} is a folder", "give the path of the document in it")
        try:
            return _read(path, max_bytes)
        except FileNotFoundError:
            raise DocumentError(f"{self.source} does not exist", _elsewhere(self.source)) from None
        except (OSError, _RefusedError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            message = f"{self.source} cannot be read: {reason}"
            raise DocumentError(message, "make it readable, or check the path") from None

    def read(self, part: str, max_bytes: int) -> bytes:
        """Return the bytes of another part, or raise a FetchError or _RefusedError."""
        if self._remote or has_web_scheme(part):
            return fetch(part, allowed_hosts=self._hosts, max_bytes=max_bytes)[0]
        try:
            path = (self._root / part).resolve()
            if not path.is_relative_to(self._root):
                raise _RefusedError("the file is outside the folder of the document")
            return _read(path, max_bytes)
        except FileNotFoundError:
            raise _RefusedError("there is no such file") from None
        except (OSError, ValueError) as error:  # Python raises ValueError if the name contains a NUL
            raise _RefusedError(str(getattr(error, "strerror", None) or error)) from None


def _read(path: Path, max_bytes: int) -> bytes:
    if not path.is_file():
        if path.exists():
            raise _RefusedError("the path is not a regular file")
        raise FileNotFoundError
    if path.stat().st_size > max_bytes:
        raise _RefusedError(f"the file is larger than {max_bytes // 1_000_000} MB")
    return path.read_bytes()


class _Loading:
    def __init__(self, origin: _PartLoader, max_bytes: int) -> None:
        self._origin = origin
        self._left = max_bytes
        self._problems = ProblemCollector()
        self._parts: dict[str, DocumentFile] = {}
        self._refused: dict[str, str] = {}

    def document(self) -> Document:
        origin = self._origin
        raw = origin.read_main(self._left)
        self._left -= len(raw)
        try:
            data, form = parse(raw, self._problems)
        except ParseError as error:
            if not isinstance(error, TextSyntaxError) or _DAMAGED.search(raw):
                raise self._refusal(raw, str(error), error.hint) from None
            data = None  # a file of another kind, where the place of the error does not help
        if not isinstance(data, dict):
            raise self._unknown_kind(raw)
        if recognize_document_kind(data) is None and isinstance(data.get("paths"), dict):
            data = {**_assumed(data, self._problems), **data}
        source = recognize_document_kind(data)
        if source is None:
            raise self._unknown_kind(raw)
        if source.stored is not None:
            data = source.stored(data)
            raw = json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8", "replace")
        self._parts[origin.main] = DocumentFile(data, raw, form)
        if source.translate is None:  # documents of other kinds have no references to files
            self._gather(origin.main)
        problems = self._problems.all()
        return Document(data, raw, form, origin.source, origin.main, self._parts, self._refused, problems)

    def _unknown_kind(self, raw: bytes) -> DocumentError:
        file = f"{posixpath.splitext(urlsplit(self._origin.main).path)[1]} file".strip()
        known = ", ".join(one.noun for one in SOURCES)
        hint = f"check that it is the right file; supported formats: {known}; convert others first"
        return self._refusal(raw, f"the {file} has neither `openapi` nor `swagger` at the top", hint)

    def _refusal(self, raw: bytes, reason: str, hint: str) -> DocumentError:
        """Return the error for a document that cannot be read. A known but unsupported kind replaces the reason."""
        if noun := unsupported_kind(raw):
            message = f"{self._origin.source} cannot be read: it is {noun}, which is not supported"
            hint = "give an OpenAPI document, such as /openapi.json, or write the tools yourself: mcpfactory new NAME --template minimal"
            return DocumentError(message, hint)
        return DocumentError(f"{self._origin.source} is not an API document: {reason}", hint)

    def _gather(self, first: str) -> None:
        waiting = [first]
        while waiting:
            name = waiting.pop()
            part = self._parts[name]
            if not _OTHER_FILE.search(part.raw):
                continue
            for reference in _other_files(part.data):
                other = join_reference(name, reference)
                if other not in self._parts and other not in self._refused and self._add(other):
                    waiting.append(other)

    def _add(self, name: str) -> bool:
        """Read one part of the document, or report the reason at the reference and return False."""
        try:
            if len(self._parts) >= MAX_FILES:
                raise _RefusedError(f"the document has more than {MAX_FILES} files")
            raw = self._origin.read(name, self._left)
            self._left -= len(raw)
            data, form = parse(raw, self._problems, f"{name}#")
        except (FetchError, _RefusedError, ParseError) as error:
            self._refused[name] = str(error)
            return False
        self._parts[name] = DocumentFile(data, raw, form)
        return True


def _assumed(data: dict[str, Any], problems: ProblemCollector) -> dict[str, str]:
    """Return a version field for a document with paths but no version: 2.0 for Swagger keywords, else 3.1.0."""
    old = {"definitions", "securityDefinitions", "basePath", "host", "schemes", "consumes", "produces"} & data.keys()
    key, version = ("swagger", "2.0") if old else ("openapi", "3.1.0")
    message = f"neither `openapi` nor `swagger` is present; read as {version}"
    problems.add("version-unknown", "", message, f"write `{key}: {version}` at the top")
    return {key: version}


def _other_files(data: Any) -> Iterator[str]:
    found: dict[str, None] = {}
    stack: list[Any] = [data]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, dict):
            stack.extend(node.values())
            reference = node.get("$ref")
            if isinstance(reference, str) and (name := reference.partition("#")[0].strip()):
                found[name] = None
    yield from found
