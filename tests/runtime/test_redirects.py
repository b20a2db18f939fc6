"""One rule for redirects: which are followed, how, and what is said of the others."""

from __future__ import annotations

from mcpfactory_runtime.upstream import Operation
from mcpfactory_runtime.upstream.servers import redirect_message
from mcpfactory_runtime.urls import MAX_REDIRECTS, RedirectTracker, redirect_of
from tests.subtest_table import parametrize_subtests

URL = "http://api.test/v1/books"


@parametrize_subtests(
    "url, status, location, refusal",
    [
        (URL, 301, "http://other.test/v1/books", "origin"),
        (URL, 307, "http://api.test:8080/v1/books", "origin"),
        (URL, 302, "//evil.test", "origin"),
        (URL, 302, "http://api.test.evil.test/", "origin"),
        (URL, 302, "http://api.test@evil.test/", "origin"),
        (URL, 302, "https://api.test:8443/", "origin"),
        ("http://api.test:8080/", 302, "https://api.test/", "origin"),
        ("https://api.test/", 308, "http://api.test/", "downgrade"),
        (URL, 302, "", "target"),
        (URL, 302, "file:///etc/passwd", "target"),
        (URL, 302, "javascript:alert(1)", "target"),
        (URL, 302, "https:///evil.test", "target"),
        (URL, 302, "http://[::1", "target"),
        (URL, 302, "http://api.test:99999/", "target"),
        (URL, 300, "/x", "target"),
        (URL, 305, "http://proxy.test", "target"),
    ],
)
def test_any_other_is_not_followed(url: str, status: int, location: str, refusal: str) -> None:
    found = redirect_of("GET", url, status, location)
    assert found is not None
    assert found.refusal == refusal


def test_a_request_goes_nowhere_twice_and_ends_after_a_few_hops() -> None:
    circle = RedirectTracker()
    assert [one and one.refusal for one in (circle.next("GET", URL, 302, place) for place in ("/a", URL))] == [
        "",
        "circle",
    ]
    chain = RedirectTracker()
    refusals = []
    for number in range(MAX_REDIRECTS + 1):
        found = chain.next("GET", f"http://api.test/{number}", 302, f"/{number + 1}")
        assert found is not None
        refusals.append(found.refusal)
    assert refusals == [""] * MAX_REDIRECTS + ["circle"]


@parametrize_subtests("method, status, location, words", [
        (
            "GET",
            301,
            "https://user:pw@new.test:8443/api/v2/books/7?token=1",
            "to new.test:8443, which is another origin and not followed.\n"
            "hint: the person who runs this server sets SHOP_BASE_URL to https://new.test:8443/api/v2, if it is trusted.",
        ),
        ("GET", 302, "https://files.test/3f2", "sets SHOP_BASE_URL to the address that answers, if it is trusted."),
        ("GET", 302, "https://accounts.test/signin?next=1", "checks its credentials: the target looks like a login page."),
        ("GET", 302, "https://login.test/", "checks its credentials: the target looks like a login page."),
        ("GET", 302, "https://blogin.test/catalogin", "sets SHOP_BASE_URL"),
        ("POST", 301, "/v1/books/7/", "corrects the path in the API document: the API expects a trailing slash."),
        ("POST", 302, "/v2/books/7", "to /v2/books/7 of the same host, with a status that does not repeat POST"),
        ("POST", 302, "/v2/books/7", "sets SHOP_BASE_URL to https://api.test/v2, if"),
        ("GET", 301, "http://api.test/v1/books/7", "to http://api.test, which is not encrypted"),
        ("GET", 302, "", "a redirect without a valid target"),
    ])  # fmt: skip
def test_the_hint_fits_the_case(method: str, status: int, location: str, words: str) -> None:
    url = "https://api.test/v1/books/7"
    redirect = redirect_of(method, url, status, location)
    told = redirect_message(redirect, Operation(method, "/books/{id}"), url, "SHOP_BASE_URL")
    assert words in told
    assert "token" not in told
    assert "pw" not in told
