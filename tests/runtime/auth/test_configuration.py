"""What is believed is checked when it is written down; metadata; the environment; what is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcpfactory_runtime.auth import Authorization, AuthorizationError
from mcpfactory_runtime.auth.authorization import (
    canonical,
    issuer_metadata_url,
    resource_metadata_paths,
    resource_metadata_url,
)
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.client.oauth import OAuth
from mcpfactory_runtime.revisions import R2025_03_26, REVISIONS
from tests.runtime.auth.conftest import challenge, protected
from tests.runtime.auth.issuer import issuer, make_key
from tests.runtime.client.authority import CALLBACK
from tests.runtime.interaction import sample
from tests.runtime.requirements import requirement
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

GOOD: dict[str, Any] = {
    "issuer": "https://login.example",
    "resource": "https://mcp.example/mcp",
    "jwks_url": "https://login.example/jwks",
}
TWO = ("https://a.example", "https://b.example")

# what is wrong → what is changed in a good configuration
WRONG: dict[str, dict[str, Any]] = {
    "no way to check tokens": {"jwks_url": None},
    "two ways to check tokens": {"jwks": {"keys": []}},
    "no issuer": {"issuer": ()},
    "an issuer that is no URL": {"issuer": "login.example"},
    "an issuer without encryption": {"issuer": "http://login.example"},
    "keys without encryption": {"jwks_url": "http://login.example/jwks"},
    "keys of a file": {"jwks_url": "file:///etc/passwd"},
    "a resource without encryption": {"resource": "http://mcp.example/mcp"},
    "a resource with a fragment": {"resource": "https://mcp.example/mcp#x"},
    "a resource with a query": {"resource": "https://mcp.example/mcp?x"},
    "a resource that is a path": {"resource": "/mcp"},
    "a resource with a password": {"resource": "https://a:b@mcp.example/mcp"},
    "one key URL for two issuers": {"issuer": TWO},
    "a key URL for one of two issuers": {"issuer": TWO, "jwks_url": {TWO[0]: "https://a.example/jwks"}},
    "one key set for two issuers": {"issuer": TWO, "jwks_url": None, "jwks": {"keys": []}},
    "the algorithm none": {"algorithms": ("ES256", "none")},
    "a symmetric algorithm": {"algorithms": ("HS256",)},
    "no algorithm": {"algorithms": ()},
    "an algorithm as text": {"algorithms": "ES256"},
    "scopes as text": {"required_scopes": "a b"},
    "an impossible scope": {"required_scopes": ('"',)},
    "a hierarchy with text": {"scope_hierarchy": {"a": "b"}},
}


@parametrize_subtests("wrong", WRONG)
def test_a_wrong_configuration_is_refused_with_a_hint(wrong: str) -> None:
    with pytest.raises(AuthorizationError, match="\nhint: "):
        Authorization(**{**GOOD, **WRONG[wrong]})


@requirement("auth.well-known")
@pytest.mark.parametrize(
    ("url", "is_canonical", "document"),
    [
        ("https://mcp.example/mcp", "https://mcp.example/mcp", "https://mcp.example{}/mcp"),
        ("HTTPS://MCP.example:8443/A/mcp", "https://mcp.example:8443/A/mcp", "https://mcp.example:8443{}/A/mcp"),
        ("https://mcp.example/", "https://mcp.example", "https://mcp.example{}"),
        ("http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000/mcp", "http://127.0.0.1:8000{}/mcp"),
    ],
)
def test_the_well_known_path_goes_between_host_and_path(url: str, is_canonical: str, document: str) -> None:
    assert canonical(url) == is_canonical
    assert resource_metadata_url(is_canonical) == document.format("/.well-known/oauth-protected-resource")


@requirement("auth.metadata", "auth.metadata-issuers", "auth.well-known")
def test_the_document_is_served_where_clients_look() -> None:
    root = "/.well-known/oauth-protected-resource"
    assert resource_metadata_paths("https://x.example/books/mcp", "/mcp") == {root, f"{root}/mcp", f"{root}/books/mcp"}


@requirement("auth.no-offline-access")
@pytest.mark.anyio
async def test_the_document_lists_what_clients_may_ask_for() -> None:
    async with protected(required_scopes=("books:read", "offline_access"), documentation="https://docs.example") as at:
        base = at.url.removesuffix("/mcp")
        documents = [
            (await at.http.get(f"{base}/.well-known/oauth-protected-resource{path}")).json() for path in ("", "/mcp")
        ]
        assert documents[0] == documents[1]
        assert documents[0] == {
            "resource": at.url,
            "authorization_servers": [at.issuer.base],
            "bearer_methods_supported": ["header"],
            "resource_name": "books",
            "scopes_supported": ["books:read", "books:write", "books:burn"],
            "resource_documentation": "https://docs.example",
        }
        assert (await at.http.get(f"{base}/.well-known/openid-configuration")).status_code == 404


@pytest.mark.anyio
@pytest.mark.parametrize("revision", REVISIONS)
async def test_our_client_finds_the_issuer_logs_in_and_gets_more_scopes_when_a_tool_needs_them(revision: str) -> None:
    async with protected(required_scopes=("books:read",)) as at:
        login = OAuth(at.issuer.browse, redirect_uri=CALLBACK)
        async with Client.connect_http(at.url, revision=revision, oauth=login) as client:
            assert "written" in repr(await client.call_tool("write"))
        assert [set(visit["scope"].split()) for visit in at.issuer.visits] == [
            {"books:read"},
            {"books:read", "books:write"},
        ]
        assert {visit["resource"] for visit in at.issuer.visits} == {at.url}


# -- the environment ---------------------------------------------------------------------------------------------------

VARIABLES = {
    "MCPFACTORY_AUTH_ISSUER": "https://login.example",
    "MCPFACTORY_AUTH_RESOURCE": "https://mcp.example/mcp",
    "MCPFACTORY_AUTH_JWKS_URL": "https://login.example/jwks",
}


def test_the_environment_says_the_same_as_the_record() -> None:
    more = {"MCPFACTORY_AUTH_SCOPES": " a  b ", "MCPFACTORY_AUTH_AUDIENCE": "api://x"}
    found = Authorization.from_environment({**VARIABLES, **more})
    assert found == Authorization(**GOOD, required_scopes=["a", "b"], audiences=["api://x"])


@pytest.mark.parametrize("change", [*({name: ""} for name in VARIABLES), {"MCPFACTORY_AUTH_ISUER": "x"}], ids=str)
def test_half_a_configuration_opens_nothing(change: dict[str, str]) -> None:
    with pytest.raises(AuthorizationError) as caught:
        Authorization.from_environment({**VARIABLES, **change})
    assert next(iter(change)) in str(caught.value)


def run(environ: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, str(Path(sample.__file__)), "--http", "--port", "0"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("MCPFACTORY_")}
    return subprocess.Popen(command, env={**clean, **environ}, stderr=subprocess.PIPE, text=True)


def test_a_process_with_half_a_configuration_ends_at_once() -> None:
    with run({"MCPFACTORY_AUTH_ISSUER": "https://login.example"}) as process:
        _, told = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 2
    assert "MCPFACTORY_AUTH_RESOURCE is missing" in told
    assert "hint:" in told
    assert "Traceback" not in told


@pytest.mark.anyio
async def test_a_process_is_protected_by_its_environment_alone() -> None:
    async with issuer(audience="https://mcp.example/mcp") as source, httpx.AsyncClient(trust_env=False) as http:
        named = {"MCPFACTORY_AUTH_ISSUER": source.base, "MCPFACTORY_AUTH_JWKS_URL": source.jwks_url}
        with run({**VARIABLES, **named, "MCPFACTORY_AUTH_SCOPES": "read"}) as process:
            assert process.stderr is not None
            url = process.stderr.readline().split()[-1]
            try:
                refused = await http.post(url, json={})
                assert (refused.status_code, challenge(refused)["scope"]) == (401, "read")
                source.clock.now = 4_000_000_000
                token = make_key().sign(source.claims(scope="read"))
                host = {"Authorization": f"Bearer {token}", "Host": "mcp.example"}
                admitted = await http.post(url, json={}, headers=host)
                assert admitted.status_code == 400  # what is no request is looked at now, under the public name, too
            finally:
                process.terminate()


# -- what is loaded ----------------------------------------------------------------------------------------------------

SERVER = """
import asyncio, sys
from mcpfactory_runtime import Server
from mcpfactory_runtime.auth import Authorization
from mcpfactory_runtime.testing import connect
server = Server("x")
@server.tool(scopes=("a",))
async def hello() -> str: return "hello"
async def main():
    async with connect(server) as client:
        await client.call_tool("hello")
asyncio.run(main())
HEAVY = {"jwt", "cryptography", "httpx", "uvicorn", "starlette", "joserfc"}
"""


@requirement("auth.not-on-stdio")
def test_stdio_loads_nothing_of_authorization_for_servers_without_scopes() -> None:
    code = SERVER.replace('(scopes=("a",))', "").replace("from mcpfactory_runtime.auth import Authorization", "")
    tail = "\nprint([name for name in sys.modules if name.startswith('mcpfactory_runtime.auth')])"
    done = subprocess.run([sys.executable, "-c", code + tail], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@requirement("auth.own-server")
@pytest.mark.anyio
async def test_clients_that_look_for_the_authorization_server_here_are_led_to_it() -> None:
    async with protected() as at:
        place = f"{at.url.removesuffix('/mcp')}/.well-known/oauth-authorization-server"
        told = await at.http.get(place, follow_redirects=True, headers={"MCP-Protocol-Version": R2025_03_26.name})
        assert [response.status_code for response in (*told.history, told)] == [307, 200]
        assert told.json()["token_endpoint"] == f"{at.issuer.base}/token"
        assert (await at.http.get(f"{place}/else")).status_code == 404


@pytest.mark.parametrize(
    ("issuer", "place"),
    [
        ("https://id.example", "https://id.example/.well-known/oauth-authorization-server"),
        ("https://id.example/", "https://id.example/.well-known/oauth-authorization-server"),
        ("https://id.example/tenant/1", "https://id.example/.well-known/oauth-authorization-server/tenant/1"),
    ],
)
def test_the_well_known_path_goes_between_host_and_path_of_an_issuer(issuer: str, place: str) -> None:
    assert issuer_metadata_url(issuer) == place
