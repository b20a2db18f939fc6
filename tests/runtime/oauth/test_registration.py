"""Which client we are to an authorization server, and what its metadata has to say before anything is sent there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpfactory_runtime.oauth.grants import OAuthClientSettings, Registration, register
from mcpfactory_runtime.oauth.steps_and_metadata import (
    AuthorizationServer,
    Fetch,
    HttpAnswer,
    OAuthError,
    Steps,
    fetch_server_metadata,
)

ISSUER = "https://as.example"
METADATA = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/authorize",
    "token_endpoint": f"{ISSUER}/token",
    "device_authorization_endpoint": f"{ISSUER}/device",
    "scopes_supported": ["openid", 1],
}


def run(steps: Steps[Any], *answers: Any) -> tuple[Any, list[Fetch]]:
    """The outcome after these JSON answers, and the requests."""
    asked: list[Fetch] = []
    sent = None
    remaining = [HttpAnswer(200, {}, json.dumps(data).encode()) for data in answers]
    while True:
        try:
            step = steps.send(sent)
        except StopIteration as end:
            return end.value, asked
        assert isinstance(step, Fetch)
        asked.append(step)
        sent = remaining.pop(0)


def server(**changes: Any) -> AuthorizationServer:
    known: dict[str, Any] = {"registration_endpoint": f"{ISSUER}/register", "auth_methods": ("client_secret_post",)}
    return AuthorizationServer(ISSUER, f"{ISSUER}/authorize", f"{ISSUER}/token", **known | changes)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"issuer": "https://other.example"}, "issuer_mismatch"),
        ({"token_endpoint": None}, "bad_metadata"),
        ({"token_endpoint": "http://as.example/token"}, "unsafe_url"),
        ({"device_authorization_endpoint": "https://127.0.0.1/device"}, "unsafe_url"),
    ],
)
def test_metadata_that_cannot_be_trusted_is_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(OAuthError) as failed:
        run(fetch_server_metadata(f"{ISSUER}/.well-known/x", "https://api.example"), {**METADATA, **changes})
    assert failed.value.code == code


@pytest.mark.parametrize(
    ("identity", "changes", "expected"),
    [
        (
            {"client_id": "me", "client_secret": "s", "issuer": ISSUER},
            {},
            Registration("me", "s", "client_secret_post"),
        ),
        ({"client_id": "me"}, {}, Registration("me")),
        ({"document": "https://me.example/id"}, {"takes_documents": True}, Registration("https://me.example/id")),
    ],
)
def test_what_is_known_beforehand_is_not_registered_anew(
    identity: dict[str, str], changes: dict[str, Any], expected: Registration
) -> None:
    found, asked = run(
        register(OAuthClientSettings("test", "http://127.0.0.1:1/callback", **identity), server(**changes))
    )
    assert (found, asked) == (expected, [])


@pytest.mark.parametrize(
    ("identity", "changes", "code"),
    [
        ({"client_id": "me", "issuer": "https://other.example"}, {}, "issuer_mismatch"),
        ({"client_id": "me", "client_secret": "s"}, {}, "no_issuer"),
        ({}, {"registration_endpoint": ""}, "no_registration"),
        (
            {"client_id": "me", "client_secret": "s", "issuer": ISSUER},
            {"auth_methods": ("private_key_jwt",)},
            "unsupported_method",
        ),
    ],
)
def test_a_client_that_cannot_be_known_there_is_refused(
    identity: dict[str, str], changes: dict[str, Any], code: str
) -> None:
    with pytest.raises(OAuthError) as failed:
        run(register(OAuthClientSettings("test", "http://127.0.0.1:1/callback", **identity), server(**changes)))
    assert failed.value.code == code
