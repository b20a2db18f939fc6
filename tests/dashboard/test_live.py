"""The dashboard in process: pages, JSON, errors, and what it refuses."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from mcpfactory_pipeline.dashboard.app import create_app
from mcpfactory_pipeline.dashboard.facts import STATUSES
from tests.dashboard.conftest import WorkspaceBuilder

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def client(four_servers: WorkspaceBuilder) -> TestClient:
    return TestClient(create_app(four_servers.root), base_url="http://127.0.0.1:8765", headers=HTML)


def test_the_board_has_every_server_with_its_stages_and_channels(client: TestClient) -> None:
    page = client.get("/board/").text
    for name in ("bookshop", "atlas", "weather", "zebra"):
        assert f'href="../servers/{name}/"' in page
    assert page.index("atlas") < page.index("weather") < page.index("zebra") < page.index(">bookshop<")
    assert '<th scope="col">validate</th>' in page
    assert '<th scope="col">in staging</th>' in page


def test_the_page_of_a_server_shows_stages_candidate_findings_tools_and_history(client: TestClient) -> None:
    page = client.get("/servers/atlas/").text
    assert "atlas_mcp-0.3.0-py3-none-any.whl" in page
    assert "sha256:" + "ab" * 32 in page
    assert "tool-calls.some-succeed" in page
    assert "score 62 of 100, not promotable" in page
    assert "tool-calls.output-schema" in page
    assert "GET /books/{bookId}" in page
    assert "1 operation left out" in page
    assert "ATLAS_API_KEY" in page
    assert "validate finished" in page


def test_status_is_never_colour_alone(client: TestClient) -> None:
    for path in ("/board/", "/servers/atlas/", "/runs/"):
        badges = re.findall(r'<span class="status \w+">(.*?)</span>', client.get(path).text)
        assert badges
        words = "|".join(status.word for status in STATUSES.values())
        assert all(
            re.fullmatch(rf'<svg class="icon" aria-hidden="true"><use href="#i-\w+"/></svg>({words})', b)
            for b in badges
        )


@pytest.mark.parametrize(
    "path",
    ["/", "/board/", "/servers/atlas/", "/servers/atlas/tools/", "/runs/", "/servers/none/", "/nowhere"],
)
def test_pages_need_no_inline_script_or_style_and_the_policy_forbids_both(client: TestClient, path: str) -> None:
    answer = client.get(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert re.findall(r"<script(?![^>]*\bsrc=)", answer.text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", answer.text) == []
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost", "LOCALHOST:80", "[::1]:8765"])
def test_loopback_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8765", "", "[::2]"])
def test_any_other_host_is_refused_before_anything_is_read(client: TestClient, host: str) -> None:
    for path in ("/", "/board/", "/servers/atlas/", "/assets/style.css"):
        answer = client.get(path, headers={"Host": host})
        assert answer.status_code == 421
        assert "atlas" not in answer.text


def test_every_page_is_json_for_programs(client: TestClient) -> None:
    board = client.get("/board/", headers={"Accept": "application/json"}).json()
    assert {one["key"]: one["number"] for one in board["counts"]} == {"failed": 1, "stale": 1, "never": 1, "passed": 1}
    page = client.get("/servers/atlas/?format=json").json()
    assert page["status"] == "failed"
    assert page["findings"][0]["rule"] == "tool-calls.some-succeed"
    assert client.get("/", headers={"Accept": "*/*"}).text.startswith("<!doctype html>")


def test_the_filter_works_without_javascript(client: TestClient) -> None:
    page = client.get("/board/?status=failed").text
    assert 'data-name="atlas"' in page
    assert 'data-name="bookshop"' not in page
    assert "1 of 4 shown" in page
    assert "No server matches" in client.get("/board/?q=nothing-like-this").text


def test_an_unknown_server_is_a_page_that_says_what_exists(client: TestClient) -> None:
    answer = client.get("/servers/nobody/")
    assert answer.status_code == 404
    assert "hint: servers: atlas, bookshop, weather, zebra" in answer.text
    told = client.get("/servers/nobody/", headers={"Accept": "application/json"})
    assert told.status_code == 404
    assert "nobody" in told.json()["error"]["message"]


@pytest.mark.parametrize(
    "path",
    ["/servers/%00/", "/servers/%00/tools/", "/servers/..%2f..%2fetc/", "/assets/..%2fapp.py", "/assets/app.py"],
)
def test_nothing_outside_is_served(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_dashboard_only_reads(client: TestClient, method: str) -> None:
    assert client.request(method, "/servers/atlas/").status_code == 405


def test_damaged_reports_are_left_out_and_the_page_stands(four_servers: WorkspaceBuilder, client: TestClient) -> None:
    (four_servers.root / "servers/atlas/.mcpfactory/report.json").write_text("{")
    for file in (four_servers.workspace.artifacts / "atlas").rglob("report.json"):
        file.write_text("[" * 100_000)
    page = client.get("/servers/atlas/")
    assert page.status_code == 200
    assert "No validation report on this machine" in page.text
