"""Which server is the root of an API, what the others are called, and which of them each operation has."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.ir import Api, ApiOperation
from mcpfactory_codegen.naming.environment_variables import keep_server_names, name_server_urls
from mcpfactory_runtime.upstream.operation import ServerAddress
from tests.codegen.reading.support import FRONT, Reader
from tests.subtest_table import parametrize_subtests

ROOT = "https://api.test"
ROOTLESS = {key: value for key, value in FRONT["3.1"].items() if key != "servers"}


def document(*servers: Any, root: Any = ()) -> dict[str, Any]:
    """An operation for each of `servers`, which is a URL, a list of them, or None for no server of its own."""
    paths = {}
    for number, one in enumerate(servers):
        urls = [one] if isinstance(one, str) else one
        paths[f"/{number}"] = {"get": {}, **({"servers": [{"url": url} for url in urls]} if urls else {})}
    return ROOTLESS | {"paths": paths} | ({"servers": [{"url": url} for url in root]} if root else {})


@parametrize_subtests(
    "servers, meant",
    [
        ([ROOT], [""]),
        (["https://api.test/"], [""]),
        (["https://API.test:443"], [""]),
        (["//api.test"], [""]),
        (["http://api.test"], [""]),
        (["/"], [""]),
        ([["https://other.test", ROOT]], [""]),
        (["https://spare.test", None], ["spare", ""]),
        (["https://api.test:8443"], ["8443"]),
        (["https://api.test/v2", "https://api.test/v2/"], ["v2", "v2"]),
        (["https://up.test:443/x", "https://UP.test/x/", "http://up.test/x"], ["up", "up", "up"]),
        (["http://up.test:8080", "https://up.test:8080"], ["up", "up"]),
    ],
)
def test_the_root_is_the_root_however_it_is_written(reader: Reader, servers: list[Any], meant: list[str]) -> None:
    api = reader.text(document(*servers, root=(ROOT, "https://spare.test")))
    assert api.base_url == ROOT
    assert [one.server for one in api.operations] == meant
    assert {one.name for one in api.own_servers} == {name for name in meant if name}


@parametrize_subtests(
    "servers, root, problems",
    [
        (["https://a.test", "https://a.test"], "https://a.test", []),
        (["https://a.test", "https://b.test", "https://b.test"], "https://b.test", []),
        (["https://a.test", "https://b.test"], "https://a.test", []),
        (["https://b.test", "https://a.test"], "https://a.test", []),
        (["https://a.test", "https://a.test", None], "https://a.test", ["server-missing"]),
        (["https://a.test", None, None], "", ["server-missing"]),
    ],
)
def test_a_document_without_a_root_has_the_server_of_most_operations(
    reader: Reader, servers: list[Any], root: str, problems: list[str]
) -> None:
    api = reader.text(document(*servers))
    assert api.base_url == root
    assert [one.code for one in api.problems if one.code == "server-missing"] == problems
    assert [one.server for one in api.operations] == ["" if one in (None, root) else one[8] for one in servers]


def test_an_operation_has_its_own_server_before_that_of_its_path(reader: Reader) -> None:
    item = {"servers": [{"url": "https://path.test"}], "get": {"servers": [{"url": "/v2"}]}, "put": {}}
    api = reader.parts(paths={"/a": item, "/b": {"get": {}}})
    assert [one.server for one in api.operations] == ["v2", "path", ""]
    assert {one.name: one.url for one in api.own_servers} == {"v2": "https://api.test/v2", "path": "https://path.test"}


@parametrize_subtests(
    "root, names",
    [
        ("https://api.shop.test", {"https://uploads.shop.test": "uploads"}),
        (
            "https://api.shop.test/2.0",
            {"https://upload.shop.test/api/2.0": "upload", "https://api.shop.test": "origin"},
        ),
        ("https://api.shop.test/2.0", {"https://dl.files.test/2.0": "dl", "https://rest.shop.test": "rest"}),
        ("https://api.shop.test/v4", {"https://api.shop.test/v4beta": "v4beta"}),
        ("https://api.shop.test", {"https://eu.shop.test": "eu", "https://us.shop.test": "us"}),
        ("https://api.test", {"https://a.shop.test/v1": "a_v1", "https://a.shop.test/v2": "a_v2"}),
        ("", {"https://api.shop.test": "shop", "http://localhost:8080": "localhost"}),
        ("https://api.test", {"http://127.0.0.1:6326": "127_0_0_1_6326"}),
        ("http://api.test", {"https://api.test": "https"}),
        ("https://api.test", {"https://müsli.test": "musli", "https://日本.test": "test"}),
    ],
)
def test_a_name_tells_a_server_from_the_root_and_the_others(root: str, names: dict[str, str]) -> None:
    assert {one.url: one.name for one in name_server_urls(names, root)} == names
    assert {one.url: one.name for one in name_server_urls(list(names)[::-1], root)} == names


def test_names_are_unique_and_parts_of_variables_for_any_number_of_servers() -> None:
    urls = [f"https://{host}.test/{'p' * length}?{host}" for host in ("a", "b", "日") for length in range(0, 90, 7)]
    named = name_server_urls(urls, "https://api.test")
    assert len({one.name for one in named}) == len(urls)
    assert all(one.name.replace("_", "").isalnum() and one.name.isascii() for one in named)


def api_with_servers(names: dict[str, str]) -> Api:
    operations = tuple(ApiOperation("GET", f"/{name}", "", server=name) for name in names)
    own = tuple(ServerAddress(name, url) for name, url in sorted(names.items()))
    return Api("x", servers=(ROOT,), own_servers=own, operations=operations)


@parametrize_subtests(
    "named, known, kept",
    [
        ({"up_a": "https://up.a.test", "up_b": "https://up.b.test"}, {"up": "https://up.a.test/"}, ["up", "up_b"]),
        ({"up": "https://up.b.test"}, {"up": "https://up.a.test"}, ["up"]),
        ({"up": "https://up.b.test", "z": "https://up.a.test"}, {"up": "https://up.a.test"}, ["up_b", "up"]),
        ({"a": "https://up.test", "b": "https://up.test"}, {"b": "https://up.test"}, ["a", "b"]),
        ({"up": "https://up.test"}, {}, ["up"]),
        ({"up": "https://up.test"}, {"UP-1; x": "https://up.test"}, ["up"]),
    ],
)
def test_a_server_keeps_the_name_that_it_had(named: dict[str, str], known: dict[str, str], kept: list[str]) -> None:
    api = keep_server_names(api_with_servers(named), known)
    urls = {one.name: one.url for one in api.own_servers}
    assert [one.server for one in api.operations] == kept
    assert [urls[one.server] for one in api.operations] == list(named.values())


@parametrize_subtests(
    "servers, root, told",
    [
        (
            ["http://localhost:8080", "https://api.test"],
            "http://localhost:8080",
            "",
        ),  # somebody's own: its key stays at home
        (["https://mock.test", "https://api.test"], "https://api.test", "is a mock"),
        (["https://api-example-shop.test", "https://api.test"], "https://api-example-shop.test", ""),
        (
            ["https://stoplight.test/mocks/a", "https://x.mock.test", "https://api.test"],
            "https://api.test",
            "is a mock",
        ),
        (["https://api.example.com", "https://api.test"], "https://api.test", "is a mock"),
        (["http://127.0.0.1:1", "https://sandbox.api.test"], "http://127.0.0.1:1", ""),
        (["https://api-m.sandbox.pay.test", "https://api.pay.test"], "https://api-m.sandbox.pay.test", "is a sandbox"),
        (["http://localhost", "https://b.example.org"], "http://localhost", ""),
        (["https://api.test", "http://localhost"], "https://api.test", ""),
        (["https://mockingbird.test", "https://api.test"], "https://mockingbird.test", ""),
    ],
)
def test_a_real_address_comes_before_a_mock_and_a_sandbox_stays_first(
    reader: Reader, servers: list[str], root: str, told: str
) -> None:
    api = reader.text(document(None, root=servers))
    assert api.base_url == root
    assert set(api.servers) == set(servers)
    assert [told in one.message for one in api.problems if one.code == "server-mock"] == ([True] if told else [])


@pytest.mark.parametrize(
    ("had", "root"),
    [
        ("", "https://api.test"),
        ("https://mock.test:1", "https://mock.test:1"),
        ("https://mock.test:2", "https://api.test"),
    ],
)
def test_a_server_that_was_made_with_a_mock_keeps_it_while_the_document_names_it(
    reader: Reader, had: str, root: str
) -> None:
    api = reader.text(document(None, root=("https://mock.test:1", "https://api.test")))
    assert keep_server_names(api, {"": had}).base_url == root
