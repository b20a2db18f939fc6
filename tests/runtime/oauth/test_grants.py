"""Grants, step by step: what is sent to an authorization server, and what its answers come to. No connection is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

import pytest

from mcpfactory_runtime.oauth.grants import (
    GrantContext,
    Tokens,
    authorization_code_grant,
    client_credentials_grant,
    device_code_grant,
    refresh_token_grant,
)
from mcpfactory_runtime.oauth.metadata import AuthorizationServer
from mcpfactory_runtime.oauth.model import Fetch, HttpAnswer, OAuthError, Pause, Steps, Visit
from mcpfactory_runtime.oauth.registration import Registration
from tests.rows import rows

SERVER = AuthorizationServer(
    "https://as.example",
    "https://as.example/authorize?tenant=t",
    "https://as.example/token",
    device_endpoint="https://as.example/device",
    names_issuer=True,
)
TOKEN = {"access_token": "a", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r", "scope": "x y"}


def context(method: str = "client_secret_basic") -> GrantContext:
    return GrantContext(SERVER, Registration("me", "s3cret", method), "https://mcp.example/mcp")


def answer(data: Any, status: int = 200) -> HttpAnswer:
    return HttpAnswer(status, {}, json.dumps(data).encode())


def run(steps: Steps[Tokens], answers: Sequence[Any]) -> tuple[Tokens, list[Any]]:
    """The outcome, and the steps that were asked for."""
    asked: list[Any] = []
    sent: Any = None
    remaining = list(answers)
    while True:
        try:
            step = steps.send(sent)
        except StopIteration as end:
            assert remaining == []
            return end.value, asked
        asked.append(step)
        sent = None if isinstance(step, Pause) else remaining.pop(0)
        if callable(sent):
            sent = sent(step)


def form(step: Any) -> dict[str, str]:
    assert isinstance(step, Fetch)
    return dict(parse_qsl((step.content or b"").decode()))


def returned(**changes: str) -> Any:
    """The browser comes back as the page asked, but for `changes`; "" leaves a member out."""

    def come_back(page: Visit) -> str:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
        query = {"code": "c", "state": asked["state"], "iss": SERVER.issuer} | changes
        return f"{asked['redirect_uri']}?" + "&".join(f"{name}={value}" for name, value in query.items() if value)

    return come_back


def test_a_code_is_exchanged_with_its_verifier() -> None:
    steps = authorization_code_grant(context(), "http://127.0.0.1:1/callback", ["x", "y"])
    tokens, (page, exchange) = run(steps, [returned(), answer(TOKEN)])
    assert tokens == Tokens("a", "r", 60.0, ("x", "y"))
    asked = parse_qs(urlsplit(page.url).query)
    assert asked["tenant"] == ["t"]
    assert (asked["scope"], asked["resource"]) == (["x y"], ["https://mcp.example/mcp"])
    assert asked["code_challenge_method"] == ["S256"]
    assert exchange.headers["Authorization"].startswith("Basic ")
    assert form(exchange)["code"] == "c"
    assert len(form(exchange)["code_verifier"]) >= 43
    assert "client_secret" not in form(exchange)


@rows(
    "changes, code",
    [
        ({"state": "another"}, "state_mismatch"),
        ({"iss": "https://evil.example"}, "issuer_mismatch"),
        ({"iss": ""}, "issuer_mismatch"),
        ({"error": "access_denied", "code": ""}, "access_denied"),
        ({"code": ""}, "bad_response"),
    ],
)
def test_an_answer_that_is_not_the_one_asked_for_gives_no_token(changes: dict[str, str], code: str) -> None:
    with pytest.raises(OAuthError) as failed:
        run(authorization_code_grant(context(), "http://127.0.0.1:1/callback", []), [returned(**changes)])
    assert failed.value.code == code


def test_a_device_is_asked_about_until_the_person_has_agreed() -> None:
    device = {"device_code": "d", "user_code": "WXYZ", "verification_uri": "https://as.example/enter", "interval": 2}
    waiting, slower = ({"error": code} for code in ("authorization_pending", "slow_down"))
    answers = [answer(device), "", answer(waiting, 400), answer(slower, 400), answer(TOKEN)]
    tokens, asked = run(device_code_grant(context("none"), ["x"]), answers)
    assert tokens.access_token == "a"
    assert asked[1] == Visit("https://as.example/enter", "WXYZ")
    assert [step.seconds for step in asked if isinstance(step, Pause)] == [2.0, 2.0, 7.0]
    assert form(asked[-1])["device_code"] == "d"


def test_a_device_code_that_has_expired_ends_the_waiting() -> None:
    device = {"device_code": "d", "user_code": "W", "verification_uri": "https://as.example/enter"}
    answers = [answer(device), "", answer({"error": "expired_token"}, 400)]
    with pytest.raises(OAuthError, match="no token: expired_token") as failed:
        run(device_code_grant(context(), []), answers)
    assert failed.value.code == "expired_token"


def test_a_refresh_token_stays_when_no_other_is_given() -> None:
    tokens, (asked,) = run(refresh_token_grant(context(), "old"), [answer({**TOKEN, "refresh_token": None})])
    assert tokens.refresh_token == "old"
    assert form(asked)["grant_type"] == "refresh_token"


def test_a_client_acts_for_itself_with_its_secret_in_the_form_where_the_server_wants_it_there() -> None:
    _, (asked,) = run(client_credentials_grant(context("client_secret_post"), ["x"]), [answer(TOKEN)])
    assert (form(asked)["client_id"], form(asked)["client_secret"], form(asked)["scope"]) == ("me", "s3cret", "x")
    assert "Authorization" not in asked.headers


@pytest.mark.parametrize(
    ("data", "status", "code"),
    [
        ({"error": "invalid_grant", "error_description": "gone"}, 400, "invalid_grant"),
        ({**TOKEN, "token_type": "mac"}, 200, "bad_response"),
        ({**TOKEN, "access_token": ""}, 200, "bad_response"),
        (["no object"], 200, "bad_response"),
    ],
)
def test_what_is_no_token_is_refused_by_its_code(data: Any, status: int, code: str) -> None:
    with pytest.raises(OAuthError) as failed:
        run(client_credentials_grant(context(), []), [answer(data, status)])
    assert failed.value.code == code
