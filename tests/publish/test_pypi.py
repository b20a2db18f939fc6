"""What a channel offers goes to a package index, byte for byte, once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from mcpfactory_pipeline.base.errors import ConfigError, NotFoundError, PublishError, StateError, TargetUnavailableError
from mcpfactory_pipeline.delivery.publish.publish import publish
from tests.cli.conftest import InProcessCli
from tests.publish.package_index import LOGIN, REQUEST_TOKEN
from tests.publish.promoted_workspace import README
from tests.timeouts import TIMEOUT


@pytest.fixture
def send(promoted, index):
    """Publishes to the index, and gives the outcome there."""
    promoted.configure(index.settings)

    def call(**options):
        (found,) = publish(promoted.workspace, "books", ["pypi"], **options)
        return found

    return call


def kinds(promoted) -> list[str]:
    return [event["event"] for event in promoted.events if event["event"].startswith("publish")]


def test_exactly_the_bytes_of_the_candidate_are_uploaded_and_what_is_live_is_written_down(promoted, index, send):
    candidate = promoted.put()
    outcome = send()
    folder = promoted.workspace.artifacts / "books" / candidate
    assert outcome.outcome == "published"
    assert index.files == {name: (folder / name).read_bytes() for name in outcome.files}
    assert [form["filetype"] for form in index.forms] == ["sdist", "bdist_wheel"]
    assert {form["version"] for form in index.forms} == {"1.0.0"}
    live = promoted.state.published["pypi"]
    assert (live.candidate, live.version, live.channel, live.actor) == (candidate, "1.0.0", "production", "tester")
    assert live.evidence["index"] == f"{index.url}/simple/books-mcp/"
    assert promoted.state.publishing == {}
    assert kinds(promoted) == ["publish.started", "published"]


def test_publishing_again_says_that_it_is_there_and_writes_nothing(promoted, index, send):
    promoted.put()
    send()
    assert send().outcome == "there"
    assert len(index.forms) == 2
    assert kinds(promoted) == ["publish.started", "published"]


def test_a_kill_between_history_and_state_makes_no_second_record(promoted, index, send):
    promoted.put()
    file = promoted.workspace.pipeline / "state" / "books.json"
    before = file.read_bytes()
    send()
    file.write_bytes(before)  # so a process leaves it that dies before it replaced the state
    assert send().outcome == "there"
    assert kinds(promoted) == ["publish.started", "published"]
    assert list(promoted.state.published) == ["pypi"]


def test_other_bytes_of_the_same_version_are_refused_and_nothing_is_sent(promoted, index, send):
    promoted.put()
    send()
    promoted.put(summary="Finds other books")
    outcome = send()
    assert outcome.outcome == "refused"
    assert "with other bytes" in outcome.problems[0]["message"]
    assert len(index.forms) == 2
    assert kinds(promoted) == ["publish.started", "published"]


def test_what_broke_off_after_the_first_file_is_continued_with_the_second(promoted, index, send):
    promoted.put()
    index.break_at = 2
    with pytest.raises(TargetUnavailableError):
        send()
    assert list(promoted.state.publishing) == ["pypi"]
    assert [name[-6:] for name in index.files] == ["tar.gz"]
    assert send(mode="dry-run").message.endswith("books_mcp-1.0.0-py3-none-any.whl")
    assert send().outcome == "published"
    assert [form["filetype"] for form in index.forms] == ["sdist", "bdist_wheel", "bdist_wheel"]
    assert promoted.state.publishing == {}


def test_a_process_that_is_killed_between_two_uploads_is_continued(promoted, index, send):
    promoted.put()
    index.hold_at = 2
    words = [sys.executable, "-m", "mcpfactory", "publish", "books", "--target", "pypi"]
    with subprocess.Popen(words, cwd=promoted.workspace.root, stderr=subprocess.DEVNULL) as process:
        assert index.held.wait(TIMEOUT)
        process.kill()
    index.released.set()
    assert list(promoted.state.publishing) == ["pypi"]
    assert send().outcome == "published"
    assert [form["filetype"] for form in index.forms] == ["sdist", "bdist_wheel", "bdist_wheel"]
    assert kinds(promoted) == ["publish.started", "publish.started", "published"]


def test_an_index_that_is_away_ends_in_another_code_than_one_that_refuses(promoted, index, send):
    promoted.put()

    def command(*words: str) -> int:
        return InProcessCli(promoted.workspace.root)("publish", "books", "--target", "pypi", *words).code

    assert command("--set", "pypi.index=http://127.0.0.1:9/simple/", "--dry-run") == 5
    index.files["books_mcp-1.0.0.tar.gz"] = b"other bytes"
    assert command() == 1


def test_what_was_sent_but_not_written_down_is_only_written_down(promoted, index, send):
    candidate = promoted.put()
    folder = promoted.workspace.artifacts / "books" / candidate
    index.files = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert send().outcome == "there"
    assert index.forms == []
    assert promoted.state.published["pypi"].candidate == candidate


@pytest.mark.parametrize("mode", ["dry-run", "check"])
def test_what_only_looks_sends_nothing_and_writes_nothing(promoted, index, send, mode):
    promoted.put()
    before = promoted.events
    assert send(mode=mode).outcome == {"dry-run": "would", "check": "fit"}[mode]
    assert (index.forms, promoted.events) == ([], before)


def test_only_what_was_promoted_is_published(promoted, send):
    promoted.put(channel="staging")
    with pytest.raises(PublishError, match="production has no release"):
        send()


def test_bytes_that_were_changed_after_the_checks_are_not_published(promoted, index, send):
    folder = promoted.workspace.artifacts / "books" / promoted.put()
    next(folder.glob("*.whl")).write_bytes(b"other")
    with pytest.raises(StateError, match="differs from the checked file"):
        send()
    assert index.forms == []


def test_a_token_that_is_not_set_or_not_accepted_is_said_without_the_token(promoted, index, send, monkeypatch):
    promoted.put()
    monkeypatch.delenv("PYPI_TOKEN")
    with pytest.raises(ConfigError, match="PYPI_TOKEN is not set"):
        send()
    monkeypatch.setenv("PYPI_TOKEN", "wrong-secret")
    with pytest.raises(PublishError, match="403") as refused:
        send()
    assert "wrong-secret" not in str(refused.value) + refused.value.hint
    assert index.files == {}


@pytest.mark.parametrize("provider", ["github", "gitlab"])
def test_trusted_publishing_needs_no_secret(promoted, index, send, monkeypatch, provider):
    promoted.put()
    monkeypatch.delenv("PYPI_TOKEN")
    with pytest.raises(ConfigError, match="no identity"):
        send(given={"pypi": {"auth": "trusted"}})
    if provider == "github":
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{index.url}/identity?api-version=2")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", REQUEST_TOKEN)
    else:
        monkeypatch.setenv("PYPI_ID_TOKEN", "another-job")
        with pytest.raises(PublishError, match="returned no token: HTTP 422"):
            send(given={"pypi": {"auth": "trusted"}})
        monkeypatch.setenv("PYPI_ID_TOKEN", "job-identity")
    assert send(given={"pypi": {"auth": "trusted"}}).outcome == "published"


@pytest.mark.parametrize("mode", ["send", "dry-run"])
def test_a_token_never_travels_in_the_clear(promoted, index, send, mode):
    promoted.put()
    with pytest.raises(ConfigError, match="unencrypted"):
        send(given={"pypi": {"url": "http://index.example/legacy/"}}, mode=mode)
    index.private = True
    assert send(mode="dry-run").outcome == "would"
    assert index.logins == [LOGIN], "who asks for it where it belongs to gets it"
    with pytest.raises(TargetUnavailableError, match="401"):
        send(given={"pypi": {"url": index.settings.split('"')[1].replace("http:", "https:")}}, mode=mode)
    assert index.logins == [LOGIN], "the same host without encryption does not"


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        ("pypi/sdist", {"sdist": False}),
        ("pypi/readme", {"readme": " ", "config": "[server]"}),
        ("pypi/mcp-name", {"readme": "# Books\n"}),
        ("pypi/mcp-name", {"readme": README.replace("books -->", "books-2 -->")}),
        ("pypi/requires", {"requires": ("httpx @ https://example.org/httpx.whl",)}),
        ("pypi/version", {"version": "1.0.0+mine"}),
    ],
)
def test_what_an_index_would_refuse_is_refused_before_it_is_asked(promoted, index, send, rule, parts):
    promoted.put(**parts)
    outcome = send(mode="check")
    assert outcome.outcome == "refused"
    assert [problem["rule"] for problem in outcome.problems] == [rule]
    assert send().outcome == "refused"
    assert index.forms == []


def test_a_server_whose_runtime_the_index_lacks_is_refused_unless_the_runtime_is_published_too(promoted, index, send):
    promoted.put(requires=("mcpfactory-runtime>=0.1,<0.2",))
    with pytest.raises(PublishError, match="books-mcp could not be installed"):
        send()
    assert index.forms == []
    assert send(given={"pypi": {"runtime": "assume"}}).outcome == "published"
    with pytest.raises(PublishError, match="books-mcp could not be installed"):
        send()
    index.files["mcpfactory_runtime-0.1.7-py3-none-any.whl"] = b"x"
    assert send().outcome == "there"


def test_the_targets_are_those_that_the_candidate_names_and_no_others(promoted, index):
    promoted.configure(index.settings)
    promoted.put(config='[server]\n[publish]\ntargets = ["pypi"]\n')
    assert [one.target for one in publish(promoted.workspace, "books", mode="check")] == ["pypi"]
    promoted.put("1.0.1", config="[server]")
    with pytest.raises(ConfigError, match="has no publish targets"):
        publish(promoted.workspace, "books", mode="check")
    with pytest.raises(NotFoundError, match="unknown target 'npm'"):
        publish(promoted.workspace, "books", ["npm"], mode="check")


def test_a_file_of_somebody_else_under_the_same_version_is_refused(promoted, index, send):
    promoted.put()
    index.files["books_mcp-1.0.0-cp311-cp311-linux_x86_64.whl"] = b"x"
    assert "not of this candidate" in send().problems[0]["message"]
