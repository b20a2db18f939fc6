"""What is said of the addresses that a server calls, before it calls them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_pipeline.workspace.api_addresses import api_addresses
from tests.subtest_table import parametrize_subtests

LOCAL, PRIVATE, PUBLIC = "http://127.0.0.1:8000/v1", "http://10.0.0.7", "https://api.example.com"


def told(base_url: str, environ: dict[str, str], **more: Any) -> list[tuple[str, bool, str]]:
    data = {"base_url": base_url, "prefix": "SHOP", "allow_private": [], "further": [], **more}
    return [(one.url, one.is_usable, one.hint) for one in api_addresses(data, environ, server="shop")]


@parametrize_subtests(
    "base_url, environ, more",
    [
        (PUBLIC, {}, {}),
        (LOCAL, {}, {"allow_private": ["127.0.0.1:8000"]}),
        (LOCAL, {}, {"allow_private": ["127.0.0.1"]}),
        (LOCAL, {"SHOP_ALLOW_PRIVATE": "1"}, {}),
        (LOCAL, {"MCPFACTORY_ALLOW_PRIVATE": "1"}, {}),
        (LOCAL, {"SHOP_BASE_URL": LOCAL}, {}),
        (LOCAL, {"MCPFACTORY_BASE_URL": LOCAL}, {}),
        (LOCAL, {"SHOP_BASE_URL": PUBLIC}, {}),
        ("", {"SHOP_BASE_URL": PRIVATE}, {}),
    ],
)
def test_an_address_that_can_be_called_has_no_hint(
    base_url: str, environ: dict[str, str], more: dict[str, Any]
) -> None:
    ((_, works, hint),) = told(base_url, environ, **more)
    assert (works, hint) == (True, "")


@pytest.mark.parametrize(
    ("base_url", "environ", "more"),
    [
        (LOCAL, {}, {"allow_private": ["127.0.0.1:9000", "localhost:8000"]}),
        (LOCAL, {"SHOP_ALLOW_PRIVATE": "0", "MCPFACTORY_ALLOW_PRIVATE": "1"}, {}),
        (LOCAL, {"OTHER_BASE_URL": LOCAL}, {}),
    ],
)
def test_a_private_address_that_nobody_permits_says_what_would(
    base_url: str, environ: dict[str, str], more: dict[str, Any]
) -> None:
    ((url, works, hint),) = told(base_url, environ, **more)
    assert (url, works) == (base_url, False)
    assert 'allow_private = ["127.0.0.1:8000"] below [api] in servers/shop/mcpfactory.toml' in hint
    assert "export SHOP_ALLOW_PRIVATE=1" in hint


@pytest.mark.parametrize(("base_url", "environ"), [("", {}), (PUBLIC, {"SHOP_BASE_URL": "api.example.com"})])
def test_what_is_no_address_says_which_variable_takes_one(base_url: str, environ: dict[str, str]) -> None:
    ((_, works, hint),) = told(base_url, environ)
    assert (works, hint) == (False, "export SHOP_BASE_URL=https://…")


SERVERS = [{"name": "uploads", "url": "https://uploads.example.com", "variable": "SHOP_UPLOADS_BASE_URL", "tools": 2}]


@pytest.mark.parametrize(
    ("environ", "told_of_uploads"),
    [
        ({}, ("2 tools are at https://uploads.example.com", "")),
        (
            {"SHOP_BASE_URL": "https://sandbox.example.com"},
            (
                "2 tools are at https://uploads.example.com; SHOP_BASE_URL does not change this address",
                "export SHOP_UPLOADS_BASE_URL=https://…",
            ),
        ),
        (
            {"SHOP_BASE_URL": "https://sandbox.example.com", "SHOP_UPLOADS_BASE_URL": LOCAL},
            (f"2 tools are at {LOCAL}, by SHOP_UPLOADS_BASE_URL, on this machine", ""),
        ),
        (
            {"SHOP_UPLOADS_BASE_URL": "nowhere"},
            ("2 tools are at nowhere, by SHOP_UPLOADS_BASE_URL, which is not an http", "export"),
        ),
    ],
)
def test_another_server_of_the_api_says_what_moves_it(
    environ: dict[str, str], told_of_uploads: tuple[str, str]
) -> None:
    data = {"base_url": PUBLIC, "prefix": "SHOP", "allow_private": [], "servers": SERVERS}
    _, uploads = api_addresses(data, environ, server="shop")
    message, hint = told_of_uploads
    assert uploads.message.startswith(message)
    assert uploads.hint.startswith(hint)
    assert bool(uploads.hint) == bool(hint)
