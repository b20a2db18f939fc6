"""Attempts by bytes of strangers: web pages, tokens, messages, sealed states, sessions of the dashboard, and packages."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.build.secret_scan import find_secrets_in_files
from mcpfactory_pipeline.dashboard.access import AccessError, DashboardAccess, read_people
from mcpfactory_runtime.auth.tokens import (
    BearerChallenge,
    ClaimRules,
    TokenError,
    check_claims,
    read_claims,
    read_header,
    read_token,
)
from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.http import LOOPBACK, Rejection, check_origin, is_json
from mcpfactory_runtime.protocol.jsonrpc import check, decode
from mcpfactory_runtime.server.request_state import LIFETIME, RequestStateSealer
from mcpfactory_runtime.types import Json
from tests.attacks.rejected_values import Rows, each_refused

# --- web pages of others ---

_ORIGINS = (
    "https://evil.test", "http://localhost.evil.test", "http://evil.test:80", "null", "NULL", "file://", "", " ", "http://127.0.0.1.evil.test",
    "http://127.0.0.1@evil.test", "http://localhost@evil.test", "http://localhost:1@evil.test", "http://[::1].evil.test", "http://localhost:abc",
    "http://localhost:1 http://evil.test", "http://localhost, http://evil.test", "http://localhost/evil", "ftp://localhost", "localhost",
    "http://localhost\n.evil.test", "http://127.1", "http://127.0.0.2", "http://0.0.0.0", "chrome-extension://abc", "http://localhost:123456",
    "http://xlocalhost", "http://[::2]", "https://127.0.0.1\0.evil.test",
)  # fmt: skip
_HOSTS = (
    "evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "127.0.0.1@evil.test", "", "[::1].evil.test", "[::1]evil.test", "0.0.0.0",
    "127.0.0.2", "169.254.169.254", "xlocalhost", "localhost.", "[::ffff:127.0.0.1]", "2130706433",
)  # fmt: skip
_TYPES = (
    "", "text/plain", "text/plain; charset=utf-8", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "text/json",
    "application/jsonp", "application/json-evil", "application", "json", "*/*", "application/json\0", "text/plain, application/json",
    "application/json, text/plain", "text/plain;application/json", "text/plain\tapplication/json", '"application/json"',
)  # fmt: skip


def _rejected(found: Rejection | None) -> str:
    return "" if found is None else f"{found.status} {found.text.strip()}"


PAGES: Rows = {
    **each_refused("a page of", _ORIGINS, lambda _, origin: _rejected(check_origin({"host": "localhost:8000", "origin": origin}, LOOPBACK, ()))),
    **each_refused("to the host", _HOSTS, lambda _, host: _rejected(check_origin({"host": host}, LOOPBACK, ()))),
    **each_refused("a body of type", _TYPES, lambda _, kind: "" if is_json({"content-type": kind}) else "415"),
}  # fmt: skip

# --- tokens ---

_NOW = 1_000_000.0
_RULES = ClaimRules(("https://issuer.test",), frozenset({"https://server.test/mcp"}))
_GOOD: Json = {"iss": "https://issuer.test", "aud": "https://server.test/mcp", "exp": _NOW + 60, "sub": "ada"}
_CLAIMS: tuple[Json, ...] = (
    {"iss": "https://evil.test"}, {"iss": "https://issuer.test/"}, {"iss": None}, {"iss": ["https://issuer.test"]}, {"iss": "HTTPS://ISSUER.TEST"},
    {"aud": "https://other.test/mcp"}, {"aud": []}, {"aud": None}, {"aud": {"https://server.test/mcp": 1}}, {"aud": "https://server.test/mcp/"},
    {"aud": [["https://server.test/mcp"]]}, {"exp": _NOW - 60}, {"exp": None}, {"exp": "9999999999"}, {"exp": True}, {"exp": -1}, {"exp": float("inf")},
    {"nbf": _NOW + 600}, {"nbf": "0"}, {"cnf": {"jkt": "x"}}, {"cnf": None}, {"sub": None}, {"sub": ""}, {"sub": ["ada"]},
)  # fmt: skip
_HEADERS: tuple[Json, ...] = (
    {"alg": "none"}, {"alg": "None"}, {"alg": "NONE"}, {"alg": ""}, {}, {"alg": None}, {"alg": ["RS256"]}, {"alg": "HS256"}, {"alg": "rs256"},
    {"alg": "RS256", "crit": ["exp"]}, {"alg": "RS256", "crit": []}, {"alg": "RS256", "typ": "id+jwt"}, {"alg": "RS256", "typ": 3},
    {"alg": "RS256", "typ": "dpop+jwt"},
)  # fmt: skip
_FORMS = (
    "",
    ".",
    "..",
    "a.b",
    "a.b.c.d",
    "a.b.c.d.e",
    "e30.e30.",
    "e30.e30.\n",
    "W10.e30.x",
    "e30.W10.x",
    "=.=.=",
    "é.é.é",
    "a" * 5 + ".e30.x",
)
_AUTHORIZATIONS = (
    "", "Bearer", "Bearer ", "bearer  ", "Basic YTpi", "Token x", "Bearer a b", "Bearer a, Bearer b", "Bearer a,b", "Bearer \0", "Bearer é", "Bearer a\nb",
    f"Bearer {'a' * 16_385}", "Bearer =", "Bearer {}", "Bearertoken",
)  # fmt: skip


def _jwt(header: Json, payload: Json) -> str:
    parts = (urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in (header, payload))
    return f"{'.'.join(parts)}.x"


def _authorization(_: Path, header: str) -> str:
    found = read_token(header)
    return f"{found.status} {found.error or 'no token'}" if isinstance(found, BearerChallenge) else ""


TOKENS: Rows = {
    **each_refused("claims", _CLAIMS, lambda _, claims: check_claims({**_GOOD, **claims}, _RULES, _NOW), TokenError),
    **each_refused("a head", _HEADERS, lambda _, head: read_header(_jwt(head, _GOOD), ("RS256",)), TokenError),
    **each_refused("a token", _FORMS, lambda _, token: read_header(token, ("RS256",)), TokenError),
    **each_refused("the header", _AUTHORIZATIONS, _authorization),
    **each_refused("a payload", (b"", b"[]", b"3", b"{", b'{"a":NaN}', b"\xff", b"[" * 10_000), lambda _, data: read_claims(data), TokenError),
}  # fmt: skip

# --- messages ---

_TEXTS = (
    b"", b" ", b"{", b"[", b"}", b"\xff\xfe", b"\x00", b"{'a': 1}", b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1}{"b": 2}', b'{"a": 1,}',
    b"[" * 100_000, b'{"a":' * 100_000, b"nul", b"0x10", b'{"a": 01}', b"// x\n{}", b'\xef\xbb\xbf{"a": 1}', b'"\x01"',
)  # fmt: skip
_WRONG: tuple[Any, ...] = (
    {"jsonrpc": "1.0", "id": 1, "method": "ping"}, {"id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": None, "method": "ping"},
    {"jsonrpc": "2.0", "id": True, "method": "ping"}, {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {"jsonrpc": "2.0", "id": [], "method": "ping"},
    {"jsonrpc": "2.0", "id": 1, "method": 3}, {"jsonrpc": "2.0", "id": 1, "method": None}, {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": 3},
    {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}, {"jsonrpc": 2, "id": 1, "method": "ping"},
)  # fmt: skip
MESSAGES: Rows = {
    **each_refused("the bytes", _TEXTS, lambda _, data: decode(data), McpError),
    **each_refused("the message", _WRONG, lambda _, message: check(message), McpError),
}

# --- sealed states ---

_ASKED: Json = {"principal": "ada", "method": "tools/call", "params": {"name": "pay", "arguments": {"amount": 5}}}


def _sealed() -> tuple[RequestStateSealer, str]:
    sealer = RequestStateSealer(b"key", "till")
    return sealer, sealer.seal({}, ["a"], **_ASKED, now=_NOW)


def _opened(_: Path, change: Json) -> object:
    sealer, state = _sealed()
    given = {**_ASKED, "now": _NOW, **{key: value for key, value in change.items() if key in (*_ASKED, "now")}}
    if "state" in change:
        state = change["state"]
    if "from" in change:
        state = RequestStateSealer(*change["from"]).seal({}, ["a"], **_ASKED, now=_NOW)
    if "flip" in change:
        state = state[: change["flip"]] + ("B" if state[change["flip"]] == "A" else "A") + state[change["flip"] + 1 :]
    return sealer.open(state, **given)


_OPENINGS: tuple[Json, ...] = (
    {"principal": "eve"}, {"principal": ""}, {"method": "prompts/get"}, {"params": {"name": "pay", "arguments": {"amount": 6}}}, {"params": {}},
    {"now": _NOW + LIFETIME + 1}, {"from": (b"other", "till")}, {"from": (b"key", "bank")}, {"state": ""}, {"state": None}, {"state": 3}, {"state": "a.b"},
    {"state": "."}, {"flip": 0}, {"flip": 20}, {"flip": -20},
)  # fmt: skip
STATES: Rows = each_refused("a state with", _OPENINGS, _opened, McpError)

# --- the dashboard ---

_TOKEN = "the token of ada, long enough"
_GUESSES = ("", " ", _TOKEN[:-1], _TOKEN + "x", _TOKEN.upper(), f" {_TOKEN}", "\0", "a" * 100_000, "é")
_PEOPLE = ("", "ada", "ada:", ": x", "ada: short", f"ada: {_TOKEN}\nada: {_TOKEN}2", f"ada: {_TOKEN}\neve: {_TOKEN}")


def _people(folder: Path, text: str, mode: int = 0o600) -> object:
    file = folder / "people"
    file.write_text(text)
    file.chmod(mode)
    return read_people({}, file, "ada")


def _ticket(_: Path, kind: str) -> None:
    time = [0.0]
    access = DashboardAccess({"ada": _TOKEN, "eve": _TOKEN + "2"}, lambda: time[0])
    session, other = (access.session(access.login(token)) for token in (_TOKEN, _TOKEN + "2"))
    assert session is not None
    assert other is not None
    ticket = access.ticket(session, "approve", "notes")
    if kind == "twice":
        access.use_ticket(session, ticket, "approve", "notes")
    time[0] = 601.0 if kind == "late" else 0.0
    about = ("reject", "notes") if kind == "for something else" else ("approve", "notes")
    access.use_ticket(other if kind == "of somebody else" else session, "x" if kind == "made up" else ticket, *about)


DASHBOARD: Rows = {
    **each_refused("the token", _GUESSES, lambda _, token: DashboardAccess({"ada": _TOKEN}).login(token), AccessError),
    **each_refused("people", _PEOPLE, _people, ConfigError),
    **each_refused("a file of mode", (0o644, 0o640, 0o606, 0o660), lambda folder, mode: _people(folder, f"ada: {_TOKEN}", mode), ConfigError),
    **each_refused("a ticket", ("twice", "late", "for something else", "of somebody else", "made up"), _ticket, AccessError),
    **each_refused("a session", ("", "x", _TOKEN), lambda _, secret: "" if DashboardAccess({"ada": _TOKEN}).session(secret) else "none"),
}  # fmt: skip

# --- packages ---

_KEY = "-----BEGIN {} KEY-----\n" + "MIIEpAIBAAKCAQEA7bq1" * 8
_LEAKS = {
    **dict.fromkeys((".netrc", "_netrc", "a/.pypirc", ".git-credentials", "id_rsa", "a/id_ed25519", "id_ecdsa", ".env", ".ENV", ".env.production"), b"x"),
    **{f"{kind}.pem": _KEY.format(kind).encode() for kind in ("PRIVATE", "RSA PRIVATE", "EC PRIVATE", "OPENSSH PRIVATE", "ENCRYPTED PRIVATE")},
    "a/key.py": ("KEY = '''" + _KEY.format("PRIVATE") + "'''").encode(),
    **{
        f"{name}.py": f"T = '{text}'".encode()
        for name, text in {
            "github": f"ghp_{'aB3' * 12}", "github-fine": f"github_pat_{'aB3' * 20}", "gitlab": f"glpat-{'aB3d' * 5}", "aws": f"AKIA{'QRST' * 4}",
            "slack": f"xoxb-123456789012-{'aB3d' * 6}", "stripe": f"sk_live_{'aB3d' * 6}", "npm": f"npm_{'aB3d' * 9}", "pypi": f"pypi-AgEI{'aB3d' * 15}",
            "anthropic": f"sk-ant-{'aB3d' * 9}", "openai": f"sk-proj-{'aB3d' * 12}",
        }.items()
    },
}  # fmt: skip
PACKAGES: Rows = each_refused(
    "a file", _LEAKS, lambda _, name: "; ".join(find_secrets_in_files([("package", name, _LEAKS[name])]))
)
