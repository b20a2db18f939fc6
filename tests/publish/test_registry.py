"""`server.json` goes to the MCP registry when the server asks for it, once, after its package."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.base.errors import ConfigError, PublishError, TargetUnavailableError
from mcpfactory_pipeline.delivery.publish.publish import publish
from mcpfactory_pipeline.delivery.publish.server_json_rules import PUBLISHER, SCHEMA
from tests.publish.mcp_registry import IDENTITY, REQUEST_TOKEN
from tests.publish.promoted_workspace import CONFIG, NAME


@pytest.fixture
def send(promoted, index, registry):
    """Publishes to both, and gives the outcomes by target."""
    promoted.configure(f'{index.settings}[publish.registry]\nurl = "{registry.url}"\nauth = "github"\n')

    def call(*targets, **options):
        found = publish(promoted.workspace, "books", targets or ("pypi", "registry"), **options)
        return {outcome.target: outcome.outcome for outcome in found}

    return call


@pytest.mark.parametrize(
    ("api", "wanted"),
    [
        (("", ""), [{"name": "BOOKS_BASE_URL", "isRequired": True}]),
        (("http://127.0.0.1:8000/v1", ""), [{"name": "BOOKS_BASE_URL"}]),
        (("https://api.example.com/v1", 'ServerAddress("eu", "https://eu.example.com")'), []),
        (
            ("", 'ServerAddress("eu-west", ""), ServerAddress("files", "http://localhost")'),
            [
                {"name": "BOOKS_BASE_URL"},
                {"name": "BOOKS_EU_WEST_BASE_URL", "isRequired": True},
                {"name": "BOOKS_FILES_BASE_URL"},
            ],
        ),
    ],
)
def test_an_address_that_is_of_no_use_elsewhere_is_asked_for(api, wanted, promoted, registry, send):
    code = f"BASE_URL = {api[0]!r}\nSERVERS = ({api[1]})\n"
    promoted.put(
        api=f'{code}def upstream():\n    return Upstream(BASE_URL, SCHEMES, servers=SERVERS, prefix="BOOKS")\n'
    )
    assert send() == {"pypi": "published", "registry": "published"}
    (document,) = registry.entries.values()
    (package,) = document["packages"]
    found = package.get("environmentVariables", [])
    assert [{key: value for key, value in one.items() if key != "description"} for one in found] == wanted


def test_the_document_says_what_the_candidate_says(promoted, index, registry, send):
    candidate = promoted.put(
        config=f'{CONFIG}title = "The books"\nrepository = "https://github.com/acme/servers"\n'
        '[publish.environment.BOOKS_API_KEY]\ndescription = "Your key"\nrequired = true\n'
        '[publish.environment.BOOKS_LANGUAGE]\ndefault = "en"\n'
    )
    assert send() == {"pypi": "published", "registry": "published"}
    (document,) = registry.entries.values()
    meta = document.pop("_meta")[PUBLISHER]
    assert meta["candidate"] == candidate
    assert sorted(meta["files"]) == sorted(index.files)
    assert document == {
        "$schema": SCHEMA,
        "name": NAME,
        "title": "The books",
        "description": "Finds books",
        "repository": {"url": "https://github.com/acme/servers", "source": "github", "subfolder": "servers/books"},
        "version": "1.0.0",
        "packages": [
            {
                "registryType": "pypi",
                "registryBaseUrl": "https://pypi.org",
                "identifier": "books-mcp",
                "version": "1.0.0",
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "environmentVariables": [
                    {"name": "BOOKS_API_KEY", "description": "Your key", "isRequired": True, "isSecret": True},
                    {"name": "BOOKS_TOKEN", "description": "Credentials of login", "isSecret": True},
                    {"name": "BOOKS_CLIENT_ID", "description": "Credentials of login"},
                    {"name": "BOOKS_CLIENT_SECRET", "description": "Credentials of login", "isSecret": True},
                    {"name": "BOOKS_LANGUAGE", "default": "en"},
                ],
            }
        ],
    }


def test_publishing_again_finds_it_there_and_asks_for_no_token(promoted, registry, send):
    promoted.put()
    send()
    asked = list(registry.asked)
    assert asked == ["/v0/auth/github-at", "/v0.1/publish"]
    assert send() == {"pypi": "there", "registry": "there"}
    assert registry.asked == asked
    assert promoted.state.published["registry"].evidence["url"].startswith(registry.url)


def test_a_version_that_says_something_else_there_is_refused(promoted, registry, send):
    promoted.put()
    send()
    registry.entries[NAME, "1.0.0"]["description"] = "Sells books"
    (outcome,) = publish(promoted.workspace, "books", ["registry"])
    assert outcome.outcome == "refused"
    assert "description" in outcome.problems[0]["message"]


@pytest.mark.parametrize("moment", ["break_before", "break_after"])
def test_a_publish_that_broke_off_is_continued(promoted, registry, send, moment):
    promoted.put()
    setattr(registry, moment, True)
    with pytest.raises(TargetUnavailableError):
        send()
    assert list(promoted.state.publishing) == ["registry"]
    assert send() == {"pypi": "there", "registry": "published" if moment == "break_before" else "there"}
    assert len(registry.entries) == 1
    assert promoted.state.publishing == {}


def test_the_package_comes_first(promoted, registry, send):
    promoted.put()
    with pytest.raises(PublishError, match="published to pypi first"):
        send("registry")
    send("pypi")
    assert send("registry") == {"registry": "published"}


def test_a_server_that_does_not_ask_for_it_is_never_sent_there(promoted, registry, send):
    promoted.put(config='[server]\n[publish]\ntargets = ["pypi"]\n')
    found = publish(promoted.workspace, "books", ["registry"])
    assert [problem["rule"] for problem in found[0].problems] == ["registry/opt-in"]
    assert registry.asked == []


def test_a_job_of_github_actions_needs_no_secret(promoted, registry, send, monkeypatch):
    promoted.put()
    monkeypatch.delenv("MCP_REGISTRY_TOKEN")
    given = {"registry": {"auth": "github-oidc"}}
    with pytest.raises(ConfigError, match="no identity"):
        send(given=given)
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{registry.url}/identity?api-version=2")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", REQUEST_TOKEN)
    assert send(given=given)["registry"] == "published"
    assert "/v0/auth/github-oidc" in registry.asked


def test_no_token_gets_into_history_state_or_messages(promoted, registry, send, monkeypatch):
    promoted.put()
    send()
    kept = json.dumps([promoted.state.to_json(), *promoted.events])
    assert "secret-token" not in kept
    monkeypatch.setenv("MCP_REGISTRY_TOKEN", "other-secret-token")
    promoted.put("1.0.1")
    send("pypi")
    with pytest.raises(PublishError, match="401") as refused:
        send("registry")
    assert "secret-token" not in f"{refused.value} {refused.value.hint} {IDENTITY}"
