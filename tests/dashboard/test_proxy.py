"""A proxy in front of the dashboard says who people are; whoever is not the proxy says so in vain. Over real HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.dashboard.access import PROXY_SECRET_VARIABLE, SECRET_HEADER, public_origin, read_proxy
from tests.dashboard.conftest import WorkspaceBuilder, serving
from tests.dashboard.http_browser import PEOPLE, Browser
from tests.dashboard.test_action_routes import POLICY, happened, kept, offered
from tests.subtest_table import parametrize_subtests
from tests.timeouts import TIMEOUT

SECRET = "what-proxy-and-dashboard-know"
ORIGIN = "https://factory.example.org"
USER = "X-Forwarded-User"
PROXY = read_proxy({PROXY_SECRET_VARIABLE: SECRET}, USER)


@pytest.fixture
def behind(four_servers: WorkspaceBuilder) -> Iterator[str]:
    config = four_servers.root / "mcpfactory.toml"
    config.write_text(config.read_text() + POLICY)
    offered(four_servers, "bookshop", "1.4.0")
    with serving(four_servers.root, PEOPLE, proxy=PROXY, origin=ORIGIN) as address:
        yield address


def through(address: str, person: str, **more: str) -> Browser:
    """The browser of somebody whom the proxy logged in."""
    usual = {"Host": "factory.example.org", "Origin": ORIGIN, USER: person, SECRET_HEADER: SECRET}
    return Browser(address, headers=usual | {k.replace("_", "-"): v for k, v in more.items()})


def test_whom_the_proxy_names_acts_by_that_name_without_a_token(four_servers: WorkspaceBuilder, behind: str) -> None:
    ada = through(behind, "Zoë Lovelace".encode().decode("latin-1"))
    page = ada.get("/").text
    assert "acting as Zoë Lovelace" in page
    assert "Log out" not in page, "the proxy logs people out"
    assert ada.act("bookshop", "approve", channel="production", reason="tried").status == 303
    assert through(behind, "Grace").act("bookshop", "approve", channel="production").status == 303
    assert happened(four_servers, "bookshop") == [("approved", "Zoë Lovelace"), ("approved", "Grace")]
    assert "Done: bookshop 1.4.0" in ada.get("/servers/bookshop/").text
    assert ada.cookies == {}


def test_who_comes_past_the_proxy_reads_and_logs_in_with_a_token(four_servers: WorkspaceBuilder, behind: str) -> None:
    assert "Log in to act" in Browser(behind).get("/").text
    assert "acting as Ada" in Browser(behind).login("Ada").get("/").text
    nobody = through(behind, "")
    assert "acting as" not in nobody.get("/").text
    assert nobody.get("/servers/bookshop/actions/hold/").status == 303


SPOOFS: list[tuple[str, dict[str, str]]] = [
    ("no secret", {SECRET_HEADER: ""}),
    ("another secret", {SECRET_HEADER: SECRET + "x"}),
    ("a secret in other letters", {SECRET_HEADER: SECRET.upper()}),
    ("two names in one", {USER: "mallory, Ada"}),
    ("no characters", {USER: "Ada\xff"}),
    ("a character that is not seen", {USER: "Ada\u200b".encode().decode("latin-1")}),
    ("a very long name", {USER: "a" * 101}),
]


@pytest.mark.parametrize(("change", "values"), SPOOFS, ids=[name for name, _ in SPOOFS])
def test_a_name_that_the_proxy_did_not_give_is_refused_for_every_page_and_changes_nothing(
    four_servers: WorkspaceBuilder, behind: str, change: str, values: dict[str, str]
) -> None:
    form = through(behind, "Ada").confirmation("bookshop", "hold", channel="staging", reason="audit")
    before = kept(four_servers.root)
    mallory = through(behind, "Ada")
    mallory.headers |= values
    for answer in (
        mallory.get("/"),
        mallory.get("/live/runs/none/"),
        mallory.post("/servers/bookshop/actions/hold/", form),
    ):
        assert answer.status == 403, change
        assert "hint:" in answer.text
        assert SECRET not in answer.text
        assert "content-security-policy" in answer.headers
    assert kept(four_servers.root) == before
    assert through(behind, "Ada").post("/servers/bookshop/actions/hold/", form).status == 303


def test_a_name_beside_another_is_refused(behind: str) -> None:
    connection = http.client.HTTPConnection(behind.removeprefix("http://"), timeout=TIMEOUT)
    connection.putrequest("GET", "/", skip_host=True)
    for name, value in (("Host", "factory.example.org"), (USER, "mallory"), (USER, "Ada"), (SECRET_HEADER, SECRET)):
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    assert (answer.status, "more than once" in answer.read().decode()) == (403, True)
    connection.close()


def test_without_a_proxy_that_was_named_its_headers_are_nothing(four_servers: WorkspaceBuilder) -> None:
    with serving(four_servers.root, PEOPLE) as address:
        page = Browser(address, headers={USER: "Ada", SECRET_HEADER: SECRET}).get("/")
        assert (page.status, "acting as" in page.text) == (200, False)


FOREIGN = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1"}, {"Origin": ""},
           {"Sec_Fetch_Site": "cross-site"}]  # fmt: skip


def test_another_site_cannot_use_the_login_of_the_proxy(four_servers: WorkspaceBuilder, behind: str) -> None:
    ada = through(behind, "Ada")
    form = ada.confirmation("bookshop", "hold", channel="staging", reason="audit")
    before = kept(four_servers.root)
    own = {"Host": behind.removeprefix("http://"), "Origin": behind}  # as if the proxy had written the address anew
    for headers in (*FOREIGN, own):
        assert ada.post("/servers/bookshop/actions/hold/", form, **headers).status == 403, headers
    assert through(behind, "Grace").post("/servers/bookshop/actions/hold/", form).status == 403, "it is Ada's ticket"
    assert ada.post("/servers/bookshop/actions/hold/", form | {"ticket": "x" * 43}).status == 403
    assert kept(four_servers.root) == before
    assert ada.post("/servers/bookshop/actions/hold/", form).status == 303


def test_a_bearer_that_the_proxy_passes_on_is_not_taken_for_ours(behind: str) -> None:
    page = through(behind, "Ada", Authorization="Bearer a-token-of-somebody-else").get(
        "/servers/bookshop/actions/hold/"
    )
    assert page.status == 200


def test_the_login_page_says_where_to_go_where_nobody_has_a_token(four_servers: WorkspaceBuilder) -> None:
    with serving(four_servers.root, proxy=PROXY, origin=ORIGIN) as address:
        page = Browser(address).get("/login/").text
        assert f'<a href="{ORIGIN}/">' in page
        assert 'name="token"' not in page
        assert "acting as Ada" in through(address, "Ada").get("/").text


def test_the_public_address_is_one_that_a_request_may_be_addressed_to(four_servers: WorkspaceBuilder) -> None:
    with serving(four_servers.root, origin=ORIGIN) as address:
        assert Browser(address, headers={"Host": "factory.example.org"}).get("/").status == 200
        assert Browser(address, headers={"Host": "evil.example"}).get("/").status == 421


def test_behind_the_proxy_every_address_is_the_public_one(four_servers: WorkspaceBuilder) -> None:
    with serving(four_servers.root, origin=ORIGIN) as address:
        outside = Browser(address, headers={"Host": "factory.example.org"})
        assert outside.get("/board").headers["location"] == f"{ORIGIN}/board/"
        assert json.loads(outside.get("/openapi.json").text)["servers"] == [{"url": ORIGIN}]
        assert Browser(address).get("/board").headers["location"] == f"{address}/board/"


@parametrize_subtests(
    "header, secret, words",
    [
        (USER, "", "is not set"),
        (USER, "short", "fewer than 16"),
        ("Cookie", SECRET, "not a valid header"),
        ("X-Forwarded-For", SECRET, "not a valid header"),
        (SECRET_HEADER, SECRET, "not a valid header"),
        ("X User\n", SECRET, "not a valid header"),
    ],
)
def test_a_proxy_that_protects_nothing_is_refused(header: str, secret: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        read_proxy({PROXY_SECRET_VARIABLE: secret} if secret else {}, header)
    assert caught.value.hint


@parametrize_subtests(
    "url, origin",
    [
        ("", ""),
        ("https://Factory.example.org/", ORIGIN),
        ("https://factory.example.org:443", ORIGIN),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("https://factory.example.org/below", None),
        ("https://ada@factory.example.org", None),
        ("factory.example.org", None),
        ("javascript:alert(1)", None),
        ("https://a:b", None),
    ],
)
def test_the_public_address_is_an_origin(url: str, origin: str | None) -> None:
    if origin is not None:
        assert public_origin(url) == origin
        return
    with pytest.raises(ConfigError):
        public_origin(url)
