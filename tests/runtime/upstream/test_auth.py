from __future__ import annotations

from base64 import b64encode

import pytest

from mcpfactory_runtime.server.errors import ToolError
from mcpfactory_runtime.upstream import Operation, SecurityScheme
from mcpfactory_runtime.upstream.auth import Credentials, credentials_for
from tests.subtest_table import parametrize_subtests

SCHEMES = {
    scheme.name: scheme
    for scheme in (
        SecurityScheme("header", "apiKey", ("KEY",), "header", "X-Key"),
        SecurityScheme("query", "apiKey", ("KEY",), "query", "api_key"),
        SecurityScheme("cookie", "apiKey", ("KEY",), "cookie", "sid"),
        SecurityScheme("basic", "basic", ("USER_NAME", "PASSWORD")),
        SecurityScheme("bearer", "bearer", ("TOKEN",)),
    )
}


def found(*security: tuple[str, ...], **environ: str) -> Credentials:
    return credentials_for(Operation("GET", "/x", security=security), SCHEMES, environ)


@parametrize_subtests(
    "scheme, expected",
    [
        ("header", Credentials(headers=(("X-Key", "k1"),))),
        ("query", Credentials(query=(("api_key", "k1"),))),
        ("cookie", Credentials(cookies=(("sid", "k1"),))),
        ("basic", Credentials(headers=(("Authorization", "Basic dTpw"),))),
        ("bearer", Credentials(headers=(("Authorization", "Bearer t1"),))),
    ],
)
def test_a_credential_travels_as_its_scheme_says(scheme: str, expected: Credentials) -> None:
    assert found((scheme,), KEY="k1\n", USER_NAME="u", PASSWORD="p", TOKEN="t1") == expected


@parametrize_subtests(
    "security, environ, named",
    [
        ([("header",)], {"KEY": "  "}, ["KEY is not set"]),
        ([("header",), ("bearer",)], {}, ["KEY; or TOKEN are not set"]),
        ([("header", "bearer")], {"KEY": "k-value"}, ["TOKEN is not set"]),
        ([("basic",)], {"USER_NAME": "u-value"}, ["PASSWORD is not set"]),
        ([("basic",)], {"USER_NAME": "", "PASSWORD": ""}, ["USER_NAME and PASSWORD are not set"]),
        ([("stranger",)], {}, ["'stranger'"]),
    ],
)
def test_what_is_missing_is_named_and_no_value_is(
    security: list[tuple[str, ...]], environ: dict[str, str], named: list[str]
) -> None:
    with pytest.raises(ToolError) as caught:
        found(*security, **environ)
    assert all(name in str(caught.value) for name in named)
    assert "value" not in str(caught.value)


@pytest.mark.parametrize(("password", "hidden"), [("", True), ("x", True), ("api_token", True), ("longer", False)])
def test_a_user_name_is_a_secret_only_where_its_password_is_none(password: str, hidden: bool) -> None:
    secrets = found(("basic",), USER_NAME="sk-live", PASSWORD=password).secrets
    assert ("sk-live" in secrets) is hidden
    assert (password in secrets) is (len(password) >= 6)
    assert b64encode(f"sk-live:{password}".encode()).decode() in secrets


def test_a_line_end_inside_a_credential_is_refused_without_showing_it() -> None:
    with pytest.raises(ToolError, match="KEY") as caught:
        found(("header",), KEY="s3cret\nX-Evil: 1")
    assert "s3cret" not in str(caught.value)
