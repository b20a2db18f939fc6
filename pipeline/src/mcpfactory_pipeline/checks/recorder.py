"""Recording proxy on loopback: it forwards requests to the real API, and stores both sides without secrets.

The recorder stores the method, path, query and JSON body of requests, and the status, content type and body of
responses. Headers are never stored. Query parameters with credentials are omitted, and the value of each secret
variable is masked everywhere.
"""

from __future__ import annotations

import http.client
import json
import ssl
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, quote

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.checks.exchange import mask_secrets
from mcpfactory_runtime.urls import split_web_url

_DROPPED: Final = frozenset(
    {"host", "connection", "accept-encoding", "transfer-encoding", "content-length", "keep-alive"}
)
_TELLING: Final = ("key", "token", "secret", "password", "signature", "credential", "auth")
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_LARGEST: Final = 5_000_000  # maximum bytes of a body
_SHORTEST: Final = 4  # minimum characters of a secret; a shorter value may also occur in ordinary text
_PATIENCE: Final = 60.0  # seconds; timeout of one request to the API


def recording_path(file: Path) -> Path:
    """Return the path of the recording for a test file: `tests/search.yaml` → `tests/search.recording.json`."""
    return file.with_name(f"{file.stem}.recording.json")


def _split(url: str) -> SplitResult:
    parts = split_web_url(url)
    if parts is None:
        raise ConfigError(
            f"{url!r} is not a valid http or https URL", hint="use a URL such as --record https://api.example.com/v1"
        )
    return parts


class RequestRecorder:
    """Proxy that forwards requests to `upstream` and records them; use it as a context manager.

    `secrets` (name → value) are never recorded. `servers` (name → URL) has the API's additional servers: the proxy
    forwards `additional_servers_url`/NAME to server NAME. `additional_servers_url` has a separate port, because the
    upstream may have a path with the same name. The separate port also keeps the upstream's credentials from other
    hosts. `cases` has the recordings so far, as stub cases. Raises ConfigError if the upstream is not an http or https
    URL.
    """

    def __init__(self, upstream: str, secrets: Mapping[str, str], servers: Mapping[str, str] = _NONE) -> None:
        self.cases: list[dict[str, Any]] = []
        self._upstream = _split(upstream)
        self._servers = {name: _split(url) for name, url in servers.items()}
        plain = {name: value for name, value in secrets.items() if len(value) >= _SHORTEST}
        forms: tuple[Callable[[str], str], ...] = (
            str,
            quote,
            partial(quote, safe=""),
            lambda value: b64encode(value.encode()).decode(),
        )
        self._forms = [{name: form(value) for name, value in plain.items()} for form in forms]
        self._listening = [ThreadingHTTPServer(("127.0.0.1", 0), self._handler(beside)) for beside in (False, True)]

    @property
    def base_url(self) -> str:
        """Return the URL that tools must use, including the path of the upstream."""
        return f"http://127.0.0.1:{self._listening[0].server_address[1]}{self._upstream.path.rstrip('/')}"

    @property
    def additional_servers_url(self) -> str:
        """Return the URL below which each additional server has a folder."""
        return f"http://127.0.0.1:{self._listening[1].server_address[1]}"

    def __enter__(self) -> RequestRecorder:
        for one in self._listening:
            Thread(target=one.serve_forever, name="recorder", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for one in self._listening:
            one.shutdown()
            one.server_close()

    def forward(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes, *, beside: bool = False
    ) -> tuple[int, str, bytes]:
        """Forward a request, record both sides, and return the response's status, content type and body.

        With `beside`, the first path segment names the additional server that gets the request.

        Raises:
            OSError, HTTPException: no response arrived.
        """
        upstream, meant, path = self._beside(target) if beside else self._root(target)
        status, kind, content = self._ask(upstream, method, meant, headers, body)
        query = target.partition("?")[2]
        request: dict[str, Any] = {"method": method, "path": path, "query": self._public_query(query)}
        if "json" in headers.get("content-type", ""):
            request["json"] = self._redact(_json(body))
        response: dict[str, Any] = {"status": status, "content_type": kind}
        if content:
            text = content.decode("utf-8", "replace")
            known = _json(content) if "json" in kind else None
            if known is not None:
                response["body"] = self._redact(known)
            elif text.encode() == content:
                response["body"] = self._redact(text)
            else:
                response["body"] = {"base64": b64encode(content).decode()}
        self.cases.append({"request": self._redact(request), "response": response})
        return status, kind, content

    def _root(self, target: str) -> tuple[SplitResult, str, str]:
        path = target.partition("?")[0]
        return self._upstream, target, path.removeprefix(self._upstream.path.rstrip("/"))

    def _beside(self, target: str) -> tuple[SplitResult, str, str]:
        path = target.partition("?")[0]
        name = path.removeprefix("/").partition("/")[0]
        if name not in self._servers:
            raise http.client.InvalidURL(f"the API has no server {name!r}")
        server = self._servers[name]
        return server, server.path.rstrip("/") + target.removeprefix(f"/{name}"), path

    def _public_query(self, query: str) -> list[list[str]]:
        values = {value for form in self._forms for value in form.values()}
        pairs = parse_qsl(query, keep_blank_values=True)
        return [[k, v] for k, v in pairs if v not in values and not any(word in k.lower() for word in _TELLING)]

    def _redact(self, value: Any) -> Any:
        for form in self._forms:
            value = mask_secrets(value, form)
        return value

    def _ask(
        self, upstream: SplitResult, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, str, bytes]:
        host, port = upstream.hostname or "", upstream.port
        connection: http.client.HTTPConnection
        if upstream.scheme == "https":
            connection = http.client.HTTPSConnection(
                host, port, timeout=_PATIENCE, context=ssl.create_default_context()
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
        sent = {name: value for name, value in headers.items() if name not in _DROPPED}
        try:
            connection.request(method, target, body or None, {**sent, "accept-encoding": "identity"})
            answer = connection.getresponse()
            return answer.status, answer.getheader("content-type") or "", answer.read(_LARGEST)
        finally:
            connection.close()

    def _handler(self, beside: bool) -> type[BaseHTTPRequestHandler]:
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _forward(self) -> None:
                body = self.rfile.read(min(int(self.headers.get("content-length") or 0), _LARGEST))
                headers = {name.lower(): value for name, value in self.headers.items()}
                try:
                    status, kind, content = recorder.forward(self.command, self.path, headers, body, beside=beside)
                except (OSError, http.client.HTTPException) as error:
                    status, kind, content = 502, "text/plain", f"the upstream did not answer: {error}".encode()
                self.send_response(status)
                if kind:
                    self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _forward  # noqa: N815 - names required by http.server

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
                """Log nothing: request lines may contain secrets."""

        return Handler


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None
