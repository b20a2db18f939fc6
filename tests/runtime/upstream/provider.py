"""OAuth 2 authorization server (by oauthlib), and an API that trusts it, on a real socket.

Only clients, storage and the consent page are our code. `now` is the clock of the server, so that tests can expire
tokens.
"""

from __future__ import annotations

import json
import threading
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode
from urllib.request import urlopen
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import jwt
from oauthlib.oauth2 import (  # type: ignore[import-untyped]  # it has no types
    DeviceApplicationServer,
    OAuth2Error,
    RequestValidator,
    Server,
)
from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant  # type: ignore[import-untyped]  # likewise

from mcpfactory_runtime.types import Json
from tests.timeouts import TIMEOUT

LIFE = 60  # seconds of an access token
JWT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
SECRETS = {"robot": "robot-secret", "app": "", "form-only": "form-secret"}


class Rules(RequestValidator):  # type: ignore[misc]  # the library has no types
    """Rules of the clients. `robot` and `form-only` have secrets, `app` is public and needs PKCE."""

    def __init__(self, provider: Provider) -> None:
        self.at = provider

    def authenticate_client(self, request: Any, *_: Any, **__: Any) -> bool:
        header = request.headers.get("Authorization", "")
        pair: tuple[str, str] = (request.client_id or "", getattr(request, "client_secret", None) or "")
        if header.startswith("Basic "):
            first, _, second = b64decode(header[6:]).decode().partition(":")
            pair = (unquote_plus(first), unquote_plus(second))
            if pair[0] == "form-only":
                return False
        request.client = SimpleNamespace(client_id=pair[0])
        return pair[1] != "" and SECRETS.get(pair[0]) == pair[1]

    def client_authentication_required(self, request: Any, *_: Any, **__: Any) -> bool:
        return request.client_id != "app"

    def authenticate_client_id(self, client_id: str, request: Any, *_: Any, **__: Any) -> bool:
        request.client = SimpleNamespace(client_id=client_id)
        return client_id == "app"

    def validate_client_id(self, client_id: str, request: Any, *_: Any, **__: Any) -> bool:
        request.client = SimpleNamespace(client_id=client_id)
        return client_id in SECRETS

    def validate_redirect_uri(self, _client: str, uri: str, *_: Any, **__: Any) -> bool:
        return uri.startswith("http://127.0.0.1:")

    def get_default_scopes(self, *_: Any, **__: Any) -> list[str]:
        return ["read"]

    def validate_scopes(self, _client: str, scopes: list[str], *_: Any, **__: Any) -> bool:
        return set(scopes) <= {"read", "write"}

    def validate_response_type(self, *_: Any, **__: Any) -> bool:
        return True

    def validate_grant_type(self, *_: Any, **__: Any) -> bool:
        return True

    def is_pkce_required(self, *_: Any, **__: Any) -> bool:
        return True

    def save_authorization_code(self, client_id: str, code: Json, request: Any, *_: Any, **__: Any) -> None:
        kept = ("scopes", "redirect_uri", "code_challenge", "code_challenge_method")
        self.at.codes[code["code"]] = {"client": client_id, **{name: getattr(request, name) for name in kept}}

    def validate_code(self, client_id: str, code: str, _client: Any, request: Any, *_: Any, **__: Any) -> bool:
        held = self.at.codes.get(code)
        if held is None or held["client"] != client_id:
            return False
        request.scopes, request.user = held["scopes"], "ada"
        return True

    def confirm_redirect_uri(self, _client: str, code: str, uri: str, *_: Any, **__: Any) -> bool:
        return bool(self.at.codes[code]["redirect_uri"] == uri)

    def get_code_challenge(self, code: str, *_: Any) -> str:
        return str(self.at.codes[code]["code_challenge"])

    def get_code_challenge_method(self, code: str, *_: Any) -> str:
        return str(self.at.codes[code]["code_challenge_method"])

    def invalidate_authorization_code(self, _client: str, code: str, *_: Any, **__: Any) -> None:
        del self.at.codes[code]

    def validate_device_code(self, client_id: str, code: str, request: Any, *_: Any, **__: Any) -> str | None:
        if self.at.codes.get(code) != {"client": client_id}:
            return None
        if self.at.pending:
            self.at.pending -= 1
            return str(DeviceCodeGrant.DEVICE_CODE_PENDING)
        request.scopes, request.user = ["read"], "ada"
        return str(DeviceCodeGrant.DEVICE_CODE_AUTHORIZED)

    def validate_refresh_token(self, token: str, _client: Any, request: Any, *_: Any, **__: Any) -> bool:
        if token not in self.at.refresh_tokens:
            return False
        request.user = "ada"
        return True

    def get_original_scopes(self, token: str, *_: Any, **__: Any) -> list[str]:
        return self.at.refresh_tokens[token]

    def rotate_refresh_token(self, *_: Any) -> bool:
        return True

    def save_bearer_token(self, token: Json, request: Any, *_: Any, **__: Any) -> None:
        self.at.refresh_tokens.pop(request.refresh_token, None)
        scopes = token.get("scope", "").split()
        self.at.tokens[token["access_token"]] = (self.at.now + LIFE, scopes)
        if "refresh_token" in token:
            self.at.refresh_tokens[token["refresh_token"]] = scopes

    def validate_bearer_token(self, token: str, scopes: list[str], request: Any) -> bool:
        until, granted = self.at.tokens.get(token, (0.0, []))
        request.lacks = until > self.at.now and not set(scopes) <= set(granted)
        return until > self.at.now and not request.lacks


class Provider:
    """Recorded requests, and settings. `exchanges` are the grant types of all token requests, valid or not."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.codes: dict[str, Json] = {}
        self.tokens: dict[str, tuple[float, list[str]]] = {}
        self.refresh_tokens: dict[str, list[str]] = {}
        self.exchanges: list[Json] = []
        self.calls: list[tuple[str, str]] = []
        self.asked = threading.Event()
        self.refusals = Counter[str]()
        self.challenge = 'Bearer error="invalid_token"'
        self.pending = 1  # number of `authorization_pending` responses to a device
        self.url = ""
        self.account_key = ""  # the public one
        self.statements: list[Json] = []
        rules = Rules(self)
        self.oauth = Server(rules, token_expires_in=LIFE)
        self.devices = DeviceApplicationServer(rules, "", interval=0)
        self.oauth.grant_types[DEVICE] = DeviceCodeGrant(rules)

    @property
    def grants(self) -> list[str]:
        return [str(form.get("grant_type")) for form in self.exchanges]

    def clock(self) -> float:
        return self.now

    def __call__(self, environ: Json, start: Any) -> list[bytes]:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(size).decode() if size else ""
        uri = f"{self.url}{environ['PATH_INFO']}{'?' + environ['QUERY_STRING'] if environ['QUERY_STRING'] else ''}"
        headers = {
            "Authorization": environ.get("HTTP_AUTHORIZATION", ""),
            "Content-Type": environ.get("CONTENT_TYPE", ""),
        }
        headers = {name: value for name, value in headers.items() if value}
        page = getattr(self, f"on_{environ['PATH_INFO'].strip('/').split('/')[0].replace('.', '_').replace('-', '_')}")
        status, extra, text = page(uri, environ["REQUEST_METHOD"], body, headers)
        start(f"{status} Status", [("Content-Type", "application/json"), *extra.items()])
        return [text.encode()]

    def on_authorize(self, uri: str, method: str, body: str, headers: Json) -> tuple[int, Json, str]:
        try:
            scopes, request = self.oauth.validate_authorization_request(uri, "GET", body, headers)
        except OAuth2Error as error:
            return 400, {}, error.json
        if method == "GET":
            return 200, {"Content-Type": "text/html"}, "<form method=post><button>Agree</button></form>"
        told, text, status = self.oauth.create_authorization_response(uri, "GET", "", headers, scopes, request)
        return status, told, text or ""

    def on_token(self, uri: str, method: str, body: str, headers: Json) -> tuple[int, Json, str]:
        self.exchanges.append(dict(parse_qsl(body)))
        self.asked.set()
        if self.grants[-1] == JWT:
            return self.for_statement(self.exchanges[-1]["assertion"])
        told, text, status = self.oauth.create_token_response(uri, method, body, headers)
        return status, {**told, "Content-Type": "application/json"}, text

    def for_statement(self, assertion: str) -> tuple[int, Json, str]:
        """Return a token for an assertion (RFC 7523), which oauthlib does not implement."""
        try:
            told = jwt.decode(
                assertion,
                self.account_key,
                ["RS256"],
                audience=f"{self.url}/token",
                options={"verify_exp": False, "verify_iat": False},
            )
        except jwt.PyJWTError as error:
            return 400, {}, json.dumps({"error": "invalid_grant", "error_description": str(error)})
        self.statements.append({**told, "kid": jwt.get_unverified_header(assertion).get("kid")})
        token = f"account-{len(self.statements)}"
        self.tokens[token] = (self.now + LIFE, told["scope"].split())
        return 200, {}, json.dumps({"access_token": token, "token_type": "Bearer", "expires_in": LIFE})

    def on_device(self, uri: str, method: str, body: str, headers: Json) -> tuple[int, Json, str]:
        told, data, status = self.devices.create_device_authorization_response(uri, method, body, headers)
        data = data if isinstance(data, dict) else json.loads(data)
        self.codes[data["device_code"]] = {"client": dict(parse_qsl(body)).get("client_id")}
        return status, told, json.dumps({**data, "verification_uri": f"{self.url}/device-page"})

    def on__well_known(self, *_: Any) -> tuple[int, Json, str]:
        ends = {"authorization": "authorize", "token": "token", "device_authorization": "device"}
        data = {"issuer": self.url, **{f"{name}_endpoint": f"{self.url}/{path}" for name, path in ends.items()}}
        methods = ["client_secret_basic", "client_secret_post", "none"]
        return 200, {}, json.dumps({**data, "token_endpoint_auth_methods_supported": methods})

    def on_api(self, uri: str, method: str, body: str, headers: Json) -> tuple[int, Json, str]:
        scope = "write" if method == "POST" else "read"
        good, request = self.oauth.verify_request(uri, method, body, headers, [scope])
        if good:
            self.calls.append((method, headers["Authorization"].removeprefix("Bearer ")))
            return 200, {}, json.dumps({"echo": headers["Authorization"]})
        if request.lacks:
            told = f'Bearer error="insufficient_scope", scope="{scope}"'
            return 403, {"WWW-Authenticate": told}, json.dumps({"message": "more scopes"})
        self.refusals[method] += 1
        return 401, {"WWW-Authenticate": self.challenge}, json.dumps({"message": "token?"})

    def on_orders(self, uri: str, method: str, body: str, headers: Json) -> tuple[int, Json, str]:
        """Accept an order, and redirect to its result, for which the token is no longer valid."""
        self.calls.append((method, headers["Authorization"].removeprefix("Bearer ")))
        self.tokens.clear()
        return 303, {"Location": "/api/things"}, ""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def provider() -> Iterator[Provider]:
    """Yield a running provider."""
    at = Provider()
    with make_server("127.0.0.1", 0, at, _Server, _Quiet) as server:
        at.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield at
        finally:
            server.shutdown()
            thread.join()


def agree(url: str) -> str:
    """Act as the browser: open the consent page, agree, follow redirects; return the last page."""
    with urlopen(url, timeout=TIMEOUT) as page:
        assert b"Agree" in page.read()
    with urlopen(url, data=urlencode({"agree": "yes"}).encode(), timeout=TIMEOUT) as page:
        return str(page.read().decode())
