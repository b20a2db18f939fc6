"""Which changes of addresses send credentials where nobody gave them for."""

from __future__ import annotations

from typing import Any

from mcpfactory_codegen.servers.report_file import credential_origin_changes
from tests.subtest_table import parametrize_subtests


def report(base: str, *servers: tuple[str, str], **urls: str) -> dict[str, Any]:
    """A report with these addresses, and one OAuth scheme with these URLs."""
    rows = [{"name": name, "url": url} for name, url in servers]
    schemes = [{"name": "oauth", "flows": [{"grant": "authorizationCode", **urls}]}]
    return {"address": {"base_url": base, "servers": rows}, "credentials": {"schemes": schemes}}


KNOWN = report("https://api.test/v1", token_url="https://login.test/token")


@parametrize_subtests(
    "after, what",
    [
        (report("https://api.test/v2", token_url="https://login.test/new"), []),
        (report("https://API.test:443/v1", token_url="/token"), []),
        (report("https://evil.test/v1", token_url="https://login.test/token"), ["the base URL"]),
        (report("http://api.test/v1"), ["the base URL"]),
        (report("https://api.test.evil.test/v1"), ["the base URL"]),
        (report("https://api.test@evil.test/v1"), ["the base URL"]),
        (report("https://api.test:444/v1"), ["the base URL"]),
        (report("https://api.test/v1", ("files", "https://evil.test")), ["the address of files"]),
        (report("https://api.test/v1", token_url="https://evil.test"), ["the token_url of oauth"]),
        (report("https://api.test/v1", refresh_url="https://evil.test"), ["the refresh_url of oauth"]),
        (report("https://api.test/v1", metadata_url="https://evil.test"), ["the metadata_url of oauth"]),
        (report("https://api.test/v1", ("video", "https://video.test")), []),
    ],
)
def test_an_origin_that_was_not_known_is_a_breaking_change(after: dict[str, Any], what: list[str]) -> None:
    found = credential_origin_changes(KNOWN, after, ["video"])
    assert [(one.kind, one.code, one.argument) for one in found] == [
        ("breaking", "origin-changed", one) for one in what
    ]
