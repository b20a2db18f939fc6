"""Grants, step by step: what is sent to an authorization server, and what its answers come to. No connection is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from mcpfactory_runtime.oauth.grants import (
    GrantContext,
    Registration,
    Tokens,
    authorization_code_grant,
    client_credentials_grant,
)
from mcpfactory_runtime.oauth.steps_and_metadata import AuthorizationServer, HttpAnswer, OAuthError, Pause, Steps, Visit
from tests.subtest_table import parametrize_subtests

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


def returned(**changes: str) -> Any:
    """The browser comes back as the page asked, but for `changes`; "" leaves a member out."""

    def come_back(page: Visit) -> str:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}
        query = {"code": "c", "state": asked["state"], "iss": SERVER.issuer} | changes
        return f"{asked['redirect_uri']}?" + "&".join(f"{name}={value}" for name, value in query.items() if value)

    return come_back


@parametrize_subtests(
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
