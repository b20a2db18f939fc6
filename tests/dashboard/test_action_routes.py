"""People act from the dashboard, over real HTTP: what they confirm happens once and by their name, and nothing else does."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.base.errors import ConfigError, PromotionError
from mcpfactory_pipeline.base.ids import acting_as, new_id
from mcpfactory_pipeline.build.factory_distributions import cached_runtime_wheel
from mcpfactory_pipeline.dashboard.access import AccessError, DashboardAccess, read_access_tokens
from mcpfactory_pipeline.dashboard.actions import ACTIONS
from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.operations.decisions import Promote, Retire, Rollback
from mcpfactory_pipeline.operations.operation import OperationContext
from mcpfactory_pipeline.operations.run import Run
from mcpfactory_pipeline.state.verify import verify
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Answer, Browser, confirming
from tests.dates import NEXT_MONTH
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

POLICY = """
[[pipeline.channels]]
name = "staging"
[[pipeline.channels]]
name = "production"
from = "staging"
approvals = 2
"""


def offered(builder: WorkspaceBuilder, server: str, version: str) -> str:
    """A candidate whose bytes are those that were checked, in staging."""
    candidate = f"{version}-fedcba987654"
    data = f"wheel {version}".encode()
    files = {f"{server}_mcp-{version}-py3-none-any.whl": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    builder.finished(server, "build", "passed", candidate=candidate, built={"version": version, "files": files})
    folder = builder.workspace.artifacts / server / candidate
    folder.mkdir(parents=True)
    for file in files:
        (folder / file).write_bytes(data)
    builder.passed(server, "test", "validate", candidate=candidate)
    builder.passed(server, "staging", candidate=candidate, channel="staging", version=version)
    return candidate


@pytest.fixture(scope="session")
def offering_builder(filled_builder: WorkspaceBuilder, tmp_path_factory: pytest.TempPathFactory) -> WorkspaceBuilder:
    """What `four_servers` is copied from here: the same with a policy, and with candidates of `bookshop` in staging."""
    builder = filled_builder.copy(tmp_path_factory.mktemp("offering") / "library")
    config = builder.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    for version in ("1.3.0", "1.4.0"):
        offered(builder, "bookshop", version)
    cached_runtime_wheel(builder.workspace.artifacts)  # Each promotion would build it, which takes a second.
    return builder


@pytest.fixture
def four_servers(offering_builder: WorkspaceBuilder, tmp_path: Path) -> WorkspaceBuilder:
    return offering_builder.copy(tmp_path / "library")


@pytest.fixture
def acting(four_servers: WorkspaceBuilder) -> Iterator[str]:
    with serving(four_servers.root, PEOPLE) as address:
        yield address


@pytest.fixture
def ada(acting: str) -> Browser:
    return Browser(acting).login("Ada")


def kept(root: Path) -> dict[str, bytes]:
    """Everything that an action could have changed."""
    folders = (root / "pipeline" / "state", root / "pipeline" / "history", root / "servers")
    return {str(file): file.read_bytes() for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()}


def happened(builder: WorkspaceBuilder, server: str) -> list[tuple[str, str]]:
    usual = {"stage.finished", "stage.started"}
    return [(e["event"], e["actor"]) for e in builder.store.history(server) if e["event"] not in usual]


def test_two_people_approve_one_promotes_and_the_history_names_each(
    four_servers: WorkspaceBuilder, acting: str
) -> None:
    ada, grace = Browser(acting).login("Ada"), Browser(acting).login("Grace")
    page = ada.get("/").text
    address = "servers/bookshop/actions/approve/?channel=production&amp;candidate=1.4.0-fedcba987654"
    assert f'href="{address}"' in page
    for who in (ada, grace):
        answer = who.act("bookshop", "approve", channel="production", reason="tried it")
        assert (answer.status, answer.headers["location"]) == (303, "/")
        told = 'id="done" role="status"><p>Done: bookshop 1.4.0 (1.4.0-fedcba987654) is approved for production'
        assert told in who.get("/").text
        assert told not in who.get("/").text
    assert ada.act("bookshop", "promote", channel="production").status == 303
    assert happened(four_servers, "bookshop") == [("approved", "Ada"), ("approved", "Grace"), ("promoted", "Ada")]
    assert four_servers.store.state("bookshop").channels["production"].version == "1.4.0"
    assert verify(four_servers.workspace) == []


def test_hold_release_reject_and_waive_are_done_by_whoever_confirmed_them(
    four_servers: WorkspaceBuilder, ada: Browser
) -> None:
    ada.act("bookshop", "reject", channel="production", reason="prices are wrong")
    ada.act("bookshop", "hold", channel="staging", reason="audit")
    assert four_servers.store.state("bookshop").holds["staging"] == {"actor": "Ada", "reason": "audit"}
    ada.act("bookshop", "unhold", channel="staging", reason="it is over")
    ada.act("atlas", "waive", rule="descriptions.arguments", expires=NEXT_MONTH, reason="soon")
    assert happened(four_servers, "bookshop") == [("rejected", "Ada"), ("held", "Ada"), ("released", "Ada")]
    assert happened(four_servers, "atlas") == [("waived", "Ada")]
    assert 'person = "Ada"' in (four_servers.root / "servers/atlas/waivers.toml").read_text()
    assert verify(four_servers.workspace) == []


def test_roll_back_brings_back_what_was_there_and_holds_the_channel(
    four_servers: WorkspaceBuilder, ada: Browser
) -> None:
    form = ada.confirmation("bookshop", "rollback", channel="staging", reason="orders fail")
    assert form["candidate"].startswith("1.3.0-")
    assert ada.post("/servers/bookshop/actions/rollback/", form).status == 303
    state = four_servers.store.state("bookshop")
    assert state.channels["staging"].version == "1.3.0"
    assert state.holds["staging"]["actor"] == "Ada"


def test_a_run_is_begun_by_whoever_confirmed_it_and_can_be_followed(
    four_servers: WorkspaceBuilder, ada: Browser
) -> None:
    page = ada.get("/servers/weather/actions/run/", until="generate").text
    assert "1 stage of weather would run" in page
    late = ada.confirmation("weather", "run", until="generate")
    answer = ada.post("/servers/weather/actions/run/", confirming(page))
    run = answer.headers["location"].removeprefix("/runs/").rstrip("/")
    assert "end" in ada.get(f"/live/runs/{run}/").text  # which comes when the run has ended
    begun = [event for event in four_servers.store.history("weather") if event.get("run") == run]
    assert (begun[0]["event"], begun[0]["actor"]) == ("stage.finished", "Ada")
    again = ada.post("/servers/weather/actions/run/", late).headers["location"]
    assert again == "/servers/weather/", "a run in which nothing is due has no page"
    assert "weather has no stage to run, so no run was started" in ada.get(again).text
    checked = ada.get("/servers/weather/actions/run/", until="generate").text
    assert "weather has no stage to run" in checked
    assert 'name="ticket"' not in checked


def test_a_run_that_cannot_begin_says_why_in_its_log_in_words(four_servers: WorkspaceBuilder) -> None:
    command = [sys.executable, "-m", "mcpfactory_pipeline.dashboard.run_process", str(four_servers.root), new_id()]
    command.append(Run(servers=("nobody",)).model_dump_json())
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: workspace")
    assert "hint: servers: atlas" in done.stderr


def test_what_cannot_be_done_is_said_before_there_is_anything_to_confirm(
    four_servers: WorkspaceBuilder, ada: Browser
) -> None:
    (
        four_servers.workspace.artifacts / "bookshop" / "1.4.0-fedcba987654" / "bookshop_mcp-1.4.0-py3-none-any.whl"
    ).unlink()
    for action, values, words in (
        ("promote", {"channel": "production"}, "approvals missing"),
        ("promote", {"channel": "staging", "candidate": "1.4.0-fedcba987654"}, "cannot be promoted"),
        ("unhold", {}, "no channel of bookshop"),
        ("hold", {"channel": "nowhere", "reason": "r"}, "nowhere"),
        ("waive", {"rule": "no.such", "expires": NEXT_MONTH, "reason": "r"}, "unknown rule 'no.such'"),
        ("waive", {"rule": "descriptions.tool", "expires": "2001-01-31", "reason": "r"}, "is in the past"),
        ("rollback", {"check": "1"}, "Reason is missing"),
    ):
        page = ada.get(f"/servers/bookshop/actions/{action}/", **values).text
        assert words in unescape(page)
        assert 'name="ticket"' not in page
    assert ada.get("/servers/bookshop/actions/delete/").status == 404
    assert ada.get("/servers/nobody/actions/hold/").status == 404


def test_a_page_that_is_only_looked_at_changes_nothing(four_servers: WorkspaceBuilder, ada: Browser) -> None:
    before = kept(four_servers.root)
    for action in ACTIONS.values():
        values = {"channel": "production", "reason": "why", "expires": NEXT_MONTH if action.name == "waive" else ""}
        page = ada.get(f"/servers/bookshop/actions/{action.name}/", check="1", **values)
        assert page.status == 200
        assert "What will happen" in page.text or "callout bad" in page.text
    assert kept(four_servers.root) == before


FOREIGN: list[tuple[dict[str, str], int]] = [
    ({"Host": "evil.example"}, 421),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
    ({"Origin": "https://127.0.0.1"}, 403),
    ({"Sec_Fetch_Site": "same-site"}, 403),
    ({"Cookie": ""}, 401),
    ({"Cookie": "{session}=guessed"}, 401),
    ({"Authorization": "Bearer wrong-token-0123456789", "Origin": ""}, 401),
    ({"Content_Type": "text/plain"}, 422),
]


def test_a_request_from_elsewhere_or_from_nobody_is_refused_and_changes_nothing(
    four_servers: WorkspaceBuilder, ada: Browser
) -> None:
    form = ada.confirmation("bookshop", "hold", channel="staging", reason="audit")
    before = kept(four_servers.root)
    (session,) = ada.cookies
    told = [{name: text.format(session=session) for name, text in headers.items()} for headers, _ in FOREIGN]
    answers = [ada.post("/servers/bookshop/actions/hold/", form, **headers).status for headers in told]
    assert answers == [status for _, status in FOREIGN]
    assert kept(four_servers.root) == before
    # The very form works from where it belongs, so it was the change that was refused.
    assert ada.post("/servers/bookshop/actions/hold/", form).status == 303


def test_a_form_that_is_sent_again_is_refused_and_changes_nothing(four_servers: WorkspaceBuilder, ada: Browser) -> None:
    form = ada.confirmation("bookshop", "hold", channel="staging", reason="audit")
    assert ada.post("/servers/bookshop/actions/hold/", form).status == 303
    ada.act("bookshop", "unhold", channel="staging", reason="it is over")
    before = kept(four_servers.root)
    again = ada.post("/servers/bookshop/actions/hold/", form)
    assert again.status == 403
    assert "you have already confirmed this action" in again.text
    assert "nothing was done" not in again.text, "it was"
    links = re.findall(r'<a href="([^"]*)">(The history of bookshop|The form again)</a>', again.text)
    ways = {words: urljoin("http://d/servers/bookshop/actions/hold/", unescape(href)) for href, words in links}
    assert ways["The history of bookshop"] == "http://d/servers/bookshop/#history"
    assert 'value="audit"' in ada.get(ways["The form again"].removeprefix("http://d")).text, "with what was given"
    assert kept(four_servers.root) == before


def test_another_form_than_the_one_that_was_checked_is_refused(four_servers: WorkspaceBuilder, ada: Browser) -> None:
    before = kept(four_servers.root)
    for change in ({"ticket": ""}, {"ticket": "x" * 43}, {"channel": "production"}, {"reason": "another"}):
        form = ada.confirmation("bookshop", "hold", channel="staging", reason="audit")
        refused = ada.post("/servers/bookshop/actions/hold/", form | change)
        assert refused.status == 403, change
        assert "nothing was done" in refused.text
        assert "The form again</a>" in refused.text
    assert kept(four_servers.root) == before


def test_a_ticket_is_for_one_session_one_server_and_one_action(four_servers: WorkspaceBuilder, ada: Browser) -> None:
    grace = Browser(ada.address).login("Grace")
    form = ada.confirmation("bookshop", "hold", channel="staging", reason="audit")
    before = kept(four_servers.root)
    assert grace.post("/servers/bookshop/actions/hold/", form).status == 403
    assert ada.post("/servers/atlas/actions/hold/", form).status == 403
    form = ada.confirmation("bookshop", "hold", channel="staging", reason="audit")
    assert ada.post("/servers/bookshop/actions/unhold/", form).status == 403
    assert kept(four_servers.root) == before


def test_whoever_logged_out_may_not_act_any_more(four_servers: WorkspaceBuilder, ada: Browser) -> None:
    form, cookies = ada.confirmation("bookshop", "hold", channel="staging", reason="audit"), dict(ada.cookies)
    assert ada.post("/logout/", {}).status == 303
    ada.cookies = cookies
    before = kept(four_servers.root)
    assert ada.post("/servers/bookshop/actions/hold/", form).status == 401
    assert ada.get("/servers/bookshop/actions/hold/").headers["location"].startswith("../../../../login/?next=")
    assert kept(four_servers.root) == before


def test_the_cookie_is_for_http_and_for_our_own_pages_only(acting: str) -> None:
    answer = Browser(acting).post("/login/", {"token": PEOPLE["Ada"]})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert PEOPLE["Ada"] not in answer.headers["set-cookie"]


def test_the_login_leads_nowhere_else(acting: str) -> None:
    for way in ("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:1", "/\t/evil.example"):
        answer = Browser(acting).post("/login/", {"token": PEOPLE["Ada"], "next": way})
        assert answer.headers["location"] == "/", way


def test_a_wrong_token_is_told_above_the_form_which_is_there_again(acting: str) -> None:
    browser = Browser(acting)
    answer = browser.post("/login/", {"token": "not mine, but long enough", "next": "/board/"})
    assert (answer.status, "unknown token" in answer.text) == (401, True)
    assert '<input type="hidden" name="next" value="/board/">' in answer.text
    assert 'name="token"' in answer.text


def test_without_people_nothing_can_be_done_and_no_page_offers_it(four_servers: WorkspaceBuilder) -> None:
    client = TestClient(create_app(four_servers.root), base_url="http://127.0.0.1")
    assert client.get("/login/").status_code == 404
    assert client.post("/servers/bookshop/actions/hold/").status_code == 404
    for path in ("/", "/board/", "/servers/bookshop/", "/servers/bookshop/tools/"):
        page = client.get(path, headers={"Accept": "text/html"}).text
        assert "/actions/" not in page
        assert "Log in" not in page


def test_programs_act_with_their_token_and_the_same_ticket(four_servers: WorkspaceBuilder, acting: str) -> None:
    def send(method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        text = json.dumps(body) if body is not None else ""
        headers = {"Accept": "application/json", "Content_Type": "application/json", "Origin": ""}
        return Browser(acting).send(method, path, text, **headers, Authorization=f"Bearer {PEOPLE['Grace']}")

    path = "/servers/bookshop/actions/hold/"
    checked = send("GET", f"{path}?channel=staging&reason=audit").data
    assert checked["ready"]
    assert checked["happens"] == ["staging of bookshop is held: neither a run nor a promotion moves it"]
    body = {**checked["settled"], "ticket": checked["ticket"]}
    assert send("POST", path, body).data["says"] == checked["happens"][0]
    before = kept(four_servers.root)
    assert send("POST", path, body).status == 403
    assert kept(four_servers.root) == before
    again = send("GET", f"{path}?channel=staging&reason=audit").data
    assert (again["ready"], again["ticket"]) == (False, "")
    assert "is held by Grace" in again["problem"]
    assert happened(four_servers, "bookshop") == [("held", "Grace")]


def test_tokens_come_from_a_file_that_only_its_owner_reads(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("# who\nAda: ada-token-0123456789\n\nGrace:grace-token-0123456789\n")
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="by other users"):
        read_access_tokens({}, file, "me")
    file.chmod(0o600)
    assert read_access_tokens({}, file, "me") == PEOPLE
    assert set(read_access_tokens({"MCPFACTORY_DASHBOARD_TOKEN": "my-own-token-0123"}, file, "me")) == {
        "Ada",
        "Grace",
        "me",
    }


@parametrize_subtests(
    "text", ["", "Ada: short", "Ada:", "no name here 0123456789", "A: same-token-0123456789\nB: same-token-0123456789"]
)
def test_tokens_that_protect_nothing_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(0o600)
    with pytest.raises(ConfigError):
        read_access_tokens({}, file, "me")


@parametrize_subtests("other", ["ada", "ADA ", "A\u200bda", "A da", "\uff21da", "Ada"])
def test_one_person_is_not_named_twice(tmp_path: Path, other: str) -> None:
    """Approvals count spellings of a name as one person: two tokens would look like two people."""
    file = tmp_path / "tokens"
    file.write_text(f"Ada: ada-token-0123456789\nGrace: grace-token-0123456789\n{other}: other-token-0123456789\n")
    file.chmod(0o600)
    with pytest.raises(ConfigError, match=r"line 3 of .*same person") as refused:
        read_access_tokens({}, file, "me")
    assert "\u200b" not in str(refused.value)
    assert "remove one of the lines" in str(refused.value.hint)
    file.write_text("Ada: ada-token-0123456789\n")
    environ = {"MCPFACTORY_DASHBOARD_TOKEN": "my-own-token-0123"}
    assert read_access_tokens(environ, file, "Ada") == {"Ada": "my-own-token-0123"}
    if other.strip() != "Ada":
        with pytest.raises(ConfigError, match=r"MCPFACTORY_DASHBOARD_TOKEN names .*same person"):
            read_access_tokens(environ, file, other.strip())
    file.write_text("\u200b: other-token-0123456789\n")
    with pytest.raises(ConfigError, match=r"has an invalid name: '\\\\u200b' has no letter"):
        read_access_tokens({}, file, "me")


def test_wrong_tokens_are_limited_and_lock_nobody_else_out() -> None:
    now = 0.0
    access = DashboardAccess(PEOPLE, clock=lambda: now)
    for _ in range(10):
        with pytest.raises(AccessError, match="unknown token"):
            access.login("guess-the-token", "10.0.0.1")
    for wanted in (access.login, access.bearer):
        with pytest.raises(AccessError, match="too many wrong tokens") as caught:
            wanted("guess-another", "10.0.0.1")
        assert caught.value.status == 429
    assert access.login(PEOPLE["Ada"], "10.0.0.1"), "other tokens still work"
    with pytest.raises(AccessError, match="unknown token"):
        access.login("guess-another", "10.0.0.2")
    now = 61.0
    with pytest.raises(AccessError, match="unknown token"):
        access.login("guess-another", "10.0.0.1")


def test_sessions_and_tickets_end_with_time() -> None:
    now = 0.0
    access = DashboardAccess(PEOPLE, clock=lambda: now)
    secret = access.login(PEOPLE["Ada"])
    session = access.session(secret)
    assert session is not None
    ticket = access.ticket(session, "hold")
    now = 601.0
    for _ in range(2):
        with pytest.raises(AccessError, match="nothing was done: the confirmation has expired"):
            access.use_ticket(session, ticket, "hold")
    now = 8 * 3600.0 + 1
    assert access.session(secret) is None


STAGE = '\n[[pipeline.stages]]\nname = "seen"\nkind = "approval"\nneeds = []\nshows = ["file:NOTES.md"]\n'


def test_a_stage_is_decided_by_whoever_confirmed_exactly_what_was_shown(
    four_servers: WorkspaceBuilder, ada: Browser
) -> None:
    config, shown = four_servers.root / "mcpfactory.toml", four_servers.root / "servers/atlas/NOTES.md"
    config.write_text(config.read_text() + STAGE)
    shown.write_text("one")
    checked = ada.get("/servers/atlas/actions/approve/", stage="seen", check="1").text
    assert "seen of atlas is approved" in unescape(checked)
    content, confirm = checked.index("<code>one</code>"), checked.index('id="confirm"')
    assert checked.index("servers/atlas/NOTES.md") < content < confirm, "evidence comes before the button"
    ada.act("atlas", "approve", stage="seen", reason="read")
    assert happened(four_servers, "atlas") == [("approved", "Ada")]
    form = ada.confirmation("atlas", "reject", stage="seen", reason="no")
    shown.write_text("two")
    page = ada.post("/servers/atlas/actions/reject/", form)
    assert page.status == 409
    assert '<th scope="row">shown</th><td>file:NOTES.md sha256:' in page.text
    assert happened(four_servers, "atlas") == [("approved", "Ada")]
    ada.act("atlas", "reject", stage="seen", reason="no")
    assert happened(four_servers, "atlas")[-1] == ("rejected", "Ada")


def asked(root: Path, parts: list[dict[str, Any]]) -> list[int]:
    """What the application answers to a POST of these parts, after which nothing comes."""
    app, left = create_app(root, people=PEOPLE), iter(parts)
    statuses: list[int] = []
    headers = [(b"host", b"127.0.0.1"), (b"origin", b"http://127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http", "method": "POST", "path": "/login/", "raw_path": b"/login/", "query_string": b"", "root_path": "",
        "headers": headers, "scheme": "http", "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "http_version": "1.1",
    }  # fmt: skip

    async def receive() -> Any:
        return next(left, None) or await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    asyncio.run(app(scope, receive, send))
    return statuses


def test_a_request_that_does_not_end_is_answered(
    four_servers: WorkspaceBuilder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcpfactory_pipeline.dashboard.action_routes._BODY_SECONDS", 0.1)
    assert asked(four_servers.root, [{"type": "http.request", "body": b"{", "more_body": True}]) == [422]


def test_only_operators_move_a_channel_and_lift_its_hold(four_servers: WorkspaceBuilder, acting: str) -> None:
    config = four_servers.root / "mcpfactory.toml"
    config.write_text(config.read_text().replace('name = "staging"\n', 'name = "staging"\noperators = ["Ada"]\n', 1))
    ada, grace = Browser(acting).login("Ada"), Browser(acting).login("Grace")
    assert grace.act("bookshop", "hold", channel="staging", reason="it leaks").status == 303, (
        "anyone can stop a channel"
    )
    page = unescape(grace.get("/servers/bookshop/actions/unhold/", channel="staging").text)
    assert "Grace has no permission to lift the hold of staging" in page
    assert "ask an operator: Ada" in page
    assert "; operators: Ada" in unescape(ada.get("/servers/bookshop/").text)
    workspace = Workspace.find(four_servers.root)  # the command line and agents run the same operations
    for operation in (
        Promote(server="bookshop", channel="staging"),
        Rollback(server="bookshop", channel="staging", reason="x"),
        Retire(server="bookshop", channel="staging", reason="x"),
    ):
        with acting_as("agent:x"), pytest.raises(PromotionError, match=r"agent:x has no permission to .* staging"):
            operation.run(OperationContext(workspace, dry_run=True))
    page = unescape(ada.get("/servers/bookshop/actions/unhold/", channel="staging").text)
    assert "staging was held by Grace: it leaks, since 20" in page, "evidence comes before the reason"
    assert 'id="confirm"' not in page
    assert ada.act("bookshop", "unhold", channel="staging", reason="fixed").status == 303
    assert happened(four_servers, "bookshop")[-1] == ("released", "Ada")
