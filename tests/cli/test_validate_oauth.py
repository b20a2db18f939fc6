"""`validate` gets its token as an OAuth client, from the authorization server that the validated server names."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import CliProcess, CommandResult
from tests.cli.sums_server import CASES, sums
from tests.runtime.auth.conftest import Protected, listen, protected, serving
from tests.runtime.client.authority import basic

pytestmark = pytest.mark.anyio
SECRET = "s3cret-of-the-nightly-job"


async def validated(folder: Path, url: str, issuer: str, *more: str, secret: str = SECRET) -> CommandResult:
    (folder / "cases.json").write_text(json.dumps(CASES))
    words = ["--oauth-client-id", "nightly", "--oauth-client-secret-env", "CI_SECRET", "--oauth-issuer", issuer]
    words += ["--cases", "cases.json", "--json", *more]
    return await asyncio.to_thread(CliProcess(folder, {"CI_SECRET": secret}), "validate", "--url", url, *words)


def written(folder: Path) -> list[str]:
    return [(folder / name).read_text() for name in ("report.sarif", "report.html")]


def access_tokens(at: Protected) -> list[str]:
    """Record the access tokens that the authorization server issues from now on."""
    issued: list[str] = []
    exchange = at.issuer.exchange

    def recorded(asked: Any) -> Any:
        answer = exchange(asked)
        issued.append(json.loads(answer[2])["access_token"])
        return answer

    at.issuer.exchange = recorded  # type: ignore[method-assign]
    return issued


async def test_a_protected_server_is_validated_with_a_token_that_no_report_contains(tmp_path: Path) -> None:
    async with protected(sums(), required_scopes=("books:read",)) as at:
        tokens = access_tokens(at)
        done = await validated(tmp_path, at.url, at.issuer.base, "-o", "report.sarif", "-o", "report.html")
        (form,) = at.issuer.exchanges
        assert form == {"grant_type": "client_credentials", "scope": "books:read", "resource": at.url}
        assert basic(at.issuer.proofs[0]) == f"nightly:{SECRET}"
        assert (at.issuer.visits, at.issuer.registrations) == ([], [])
    assert (done.code, done.data["verdict"]) == (0, "passed"), done.out + done.err
    assert {"authorization.challenge", "authorization.metadata", "authorization.token"} <= set(done.data["checked"])
    (token,) = tokens
    for text in (done.out, done.err, *written(tmp_path)):
        assert token not in text
        assert SECRET not in text


async def test_the_given_scopes_are_requested_instead_of_all_that_the_server_lists(tmp_path: Path) -> None:
    async with protected(sums(), scopes_supported=("a", "b", "c")) as at:
        await validated(tmp_path, at.url, at.issuer.base, "--oauth-scope", "a", "--oauth-scope", "b")
        assert [form["scope"] for form in at.issuer.exchanges] == ["a b"]


async def test_a_server_that_accepts_any_token_is_refused(tmp_path: Path) -> None:
    valid: dict[str, Any] = {"active": True, "sub": "anyone", "client_id": "anyone"}

    async def accept(token: str) -> Any:
        return valid

    async with protected(sums(), verify=accept) as at:
        valid |= {"aud": at.url, "iss": at.issuer.base}
        done = await validated(tmp_path, at.url, at.issuer.base)
    assert (done.code, done.data["verdict"]) == (1, "refused"), done.out + done.err
    assert "authorization.token" in {finding["rule"] for finding in done.data["findings"]}


async def test_the_secret_goes_to_no_other_authorization_server(tmp_path: Path) -> None:
    async with protected(sums()) as at:
        done = await validated(tmp_path, at.url, "https://login.example.com")
        assert at.issuer.exchanges == []
    assert done.code == 4
    assert (
        f"cannot get an access token for {at.url}: the client id is registered at https://login.example.com" in done.err
    )
    assert "hint: " in done.err


async def test_a_refused_client_is_told_why(tmp_path: Path) -> None:
    async with protected(sums()) as at:
        at.issuer.token = {"error": "invalid_client", "error_description": "unknown client"}
        done = await validated(tmp_path, at.url, at.issuer.base)
    assert done.code == 4
    assert "unknown client" in done.err
    assert f"hint: mcpfactory validate --url {at.url}" in done.err


async def test_a_server_that_requires_no_token_or_does_not_answer_gets_no_verdict(tmp_path: Path) -> None:
    port, url = listen()
    with port:
        async with serving(sums(), port):
            done = await validated(tmp_path, url, "http://127.0.0.1:9")
    gone = await validated(tmp_path, url, "http://127.0.0.1:9")
    assert [(one.code, one.out) for one in (done, gone)] == [(4, "")] * 2
    assert f"cannot get an access token for {url}: the server requires no token\n" in done.err
    assert f"cannot get an access token for {url}: no connection to 127.0.0.1:" in gone.err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--url http://127.0.0.1:9 --oauth-scope a", "OAuth needs --url, --oauth-client-id, "),
        (
            "--command x --oauth-client-id a --oauth-client-secret-env B --oauth-issuer http://127.0.0.1",
            "OAuth needs --url",
        ),
        (
            "--url http://127.0.0.1:9 --oauth-client-id a --oauth-client-secret-env NONE_SUCH --oauth-issuer http://127.0.0.1",
            "'NONE_SUCH' is not set",
        ),
    ],
)
async def test_options_that_do_not_go_together_are_refused(tmp_path: Path, words: str, why: str) -> None:
    done = CliProcess(tmp_path)("validate", *words.split())
    assert done.code == 2
    assert why in done.err
