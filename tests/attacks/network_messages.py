"""Attacks by third-party bytes: web pages and sealed states."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_runtime.protocol.errors import McpError
from mcpfactory_runtime.protocol.http import LOOPBACK, Rejection, check_host_and_origin, declares_json_body
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
    **each_refused("a page of", _ORIGINS, lambda _, origin: _rejected(check_host_and_origin({"host": "localhost:8000", "origin": origin}, LOOPBACK, ()))),
    **each_refused("to the host", _HOSTS, lambda _, host: _rejected(check_host_and_origin({"host": host}, LOOPBACK, ()))),
    **each_refused("a body of type", _TYPES, lambda _, kind: "" if declares_json_body({"content-type": kind}) else "415"),
}  # fmt: skip

_NOW = 1_000_000.0

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
