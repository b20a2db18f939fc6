"""Loading: formats, the types of YAML, several files, addresses, and everything that ends with a clear refusal."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.openapi import read_api
from mcpfactory_codegen.read import document as fetching
from mcpfactory_codegen.read.document import DocumentError, FetchError, load, redirect_target, restrict_to_public_hosts
from mcpfactory_runtime.urls import is_public, redirect_of
from tests.codegen.reading.support import FRONT, Reader, checked, codes, problem
from tests.loopback_server import LoopbackHandler, serving
from tests.subtest_table import parametrize_subtests
from tests.system import free_port

FRONT_TEXT = "openapi: 3.1.0\ninfo: {title: a, version: '1'}\npaths: {}\n"


def extra(reader: Reader, yaml: str) -> Any:
    """The field `x-data` of a YAML document."""
    return reader.load(FRONT_TEXT + yaml).data["x-data"]


@parametrize_subtests("yaml, meant", [
        ("[yes, no, on, off, y, n, Yes, NO]", ["yes", "no", "on", "off", "y", "n", "Yes", "NO"]),
        ("[true, False, TRUE]", [True, False, True]),
        ("[null, ~, Null, '']", [None, None, None, ""]),
        ("[2024-01-01, 2024-01-01T10:00:00Z, 12:30:45, 1_000]", ["2024-01-01", "2024-01-01T10:00:00Z", "12:30:45", "1_000"]),
        ("[1, -2, +3, 0o17, 0x1F, 007]", [1, -2, 3, 15, 31, 7]),
        ("[1.5, 1e3, .5, 1., -1.5e-3]", [1.5, 1000.0, 0.5, 1.0, -0.0015]),
        ("[.inf, .nan, 1e999, '1', \"2\", !!str 3, !!int '4']", [".inf", ".nan", "1e999", "1", "2", "3", 4]),
        ("{200: a, 2024-01-01: b, true: c, null: d, 1.0: e}", {"200": "a", "2024-01-01": "b", "true": "c", "null": "d", "1.0": "e"}),
        ("{a: &x {b: 1}, c: *x}", {"a": {"b": 1}, "c": {"b": 1}}),
        ("{base: &x {b: 1, c: 2}, <<: [*x, {c: 3, d: 4}], b: 5}", {"base": {"b": 1, "c": 2}, "b": 5, "c": 2, "d": 4}),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ])  # fmt: skip
def test_yaml_has_the_types_of_json(reader: Reader, yaml: str, meant: Any) -> None:
    assert extra(reader, f"x-data: {yaml}") == meant


@parametrize_subtests(
    "encoding, form", product(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"], ["json", "yaml"])
)
def test_every_unicode_encoding_is_recognised(reader: Reader, encoding: str, form: str) -> None:
    text = (
        json.dumps(FRONT["3.1"] | {"x-data": "☕"}, ensure_ascii=False) if form == "json" else FRONT_TEXT + "x-data: ☕"
    )
    document = reader.load(text.encode(encoding))
    assert (document.data["x-data"], document.format) == ("☕", form)


def test_json_with_comments_and_trailing_commas_is_read_as_yaml(reader: Reader) -> None:
    document = reader.load('{"openapi": "3.1.0", # here\n\t"info": {},\n\t"paths": {},\n}')
    assert (document.format, document.data["paths"]) == ("yaml", {})


@pytest.mark.parametrize(
    "text",
    [
        "openapi: 3.1.0\npaths: {/a: {get: {}}, /a: {put: {}}}",
        '{"openapi": "3.1.0", "paths": {"/a": {"get": {}}, "/a": {"put": {}}}}',
    ],
)
def test_a_key_that_stands_twice_is_named_and_the_last_counts(reader: Reader, text: str) -> None:
    document = reader.load(text)
    assert document.data["paths"] == {"/a": {"put": {}}}
    assert [(one.code, one.pointer) for one in document.problems] == [("document-duplicate-key", "/paths/~1a")]


def test_half_characters_are_replaced(reader: Reader) -> None:
    api = reader.text('{"openapi": "3.1.0", "info": {"title": "a\\ud800b", "version": "\\ud83d\\ude00"}, "paths": {}}')
    assert (api.title, api.version) == ("a\ufffdb", "😀")
    assert problem(api, "document-text").pointer == "/info/title"


def test_tags_that_other_readers_would_run_are_text(reader: Reader) -> None:
    document = reader.load(FRONT_TEXT + "x-data: !!python/object/apply:os.system ['false']\nx-n: 1" + "0" * 5000)
    assert document.data["x-data"] == ["false"]
    assert document.data["x-n"] == "1" + "0" * 5000
    assert [one.code for one in document.problems] == ["document-tag"]


def test_unknown_tags_and_further_documents_are_said(reader: Reader) -> None:
    document = reader.load(FRONT_TEXT + "x-data: !include other.yaml\n---\nmore: 1\n")
    assert document.data["x-data"] == "other.yaml"
    assert {one.code for one in document.problems} == {"document-tag", "document-multiple"}


@parametrize_subtests(
    "content, words",
    [
        ("", "empty"),
        ("[]", "neither `openapi` nor `swagger`"),
        ("just text", "neither `openapi` nor `swagger`"),
        ("Notes\n\nSee: this: here", "neither `openapi` nor `swagger`"),
        ("[project]\nname = 'shop'", "neither `openapi` nor `swagger`"),
        ('{"a": 1}', "neither `openapi` nor `swagger`"),
        ('{"openapi": "3.1.0", "a": [1, 2}', "not JSON"),
        ("openapi: [1, 2", "not YAML"),
        ("openapi: 3.1.0\n\ta: 1", "not YAML"),
        (b"openapi: \xff\xfe\x81", "not text"),
        ("openapi: 3.1.0\nx: &a [*a]", "contains itself"),
        ("openapi: 3.1.0\nx: *a", "alias"),
        ("openapi: 3.1.0\n? [a, b]\n: 1", "key"),
        ('{"openapi": ' + "[" * 300 + "]" * 300 + "}", "deeper"),
        ('{"openapi": ' + "[" * 100_000 + "]" * 100_000 + "}", "deeper"),
        ("openapi: " + "[" * 300 + "]" * 300, "deeper"),
    ],
)
def test_what_is_no_document_is_refused_with_the_reason(reader: Reader, content: str | bytes, words: str) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        read_api(reader.load(content))
    assert "\n" not in str(caught.value)


def test_a_yaml_bomb_ends_at_once(reader: Reader) -> None:
    lines = ["openapi: 3.1.0", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    with pytest.raises(DocumentError, match="more than"):
        reader.load("\n".join(lines))


def test_a_document_that_is_too_big_or_not_there_is_refused(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="larger than"):
        reader.load(FRONT_TEXT + "#" * 1000, max_bytes=500)
    with pytest.raises(DocumentError, match="does not exist"):
        load(tmp_path / "nowhere.yaml")
    with pytest.raises(DocumentError, match="is a folder"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DocumentError, match="not a regular file"):
        load(tmp_path / "pipe")


def referring(reference: str) -> dict[str, Any]:
    parameter = {"name": "p", "in": "query", "schema": {"$ref": reference}}
    return FRONT["3.1"] | {"paths": {"/a": {"get": {"parameters": [parameter]}}}}


def test_files_are_read_below_the_folder_of_the_document_only(reader: Reader, tmp_path: Path) -> None:
    reader.write("outside.yaml", "type: string")
    inside = Reader(tmp_path / "inside")
    inside.write("below/one.yaml", "{$ref: two.yaml}")
    inside.write("below/two.yaml", "type: integer")
    (tmp_path / "inside" / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    good = inside.text(referring("below/one.yaml"))
    assert list(good.schemas.values()) == [{"type": "integer"}]
    for escaping in (
        "../outside.yaml",
        "link.yaml",
        str(tmp_path / "outside.yaml"),
        "below/../../outside.yaml",
        "file:///etc/passwd",
    ):
        refused = inside.text(referring(escaping))
        assert refused.operations[0].parameters[0].schema == {}
        assert codes(refused)[0] in {"reference-refused", "reference-dangling"}
        assert list(refused.schemas) == []


def test_a_problem_in_another_file_names_the_file(reader: Reader) -> None:
    reader.write("a.yaml", "{A: {type: nothing}}")
    assert problem(reader.text(referring("a.yaml#/A")), "schema-type").pointer == "a.yaml#/A/type"


@dataclass
class Site:
    """A web server on loopback with a few answers, and what was asked for: paths, and the hosts that were named."""

    answers: dict[str, tuple[int, bytes, dict[str, str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    port: str = ""

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


class Answering(LoopbackHandler):
    site: Site

    def get(self) -> None:
        self.site.asked.append(self.path)
        self.site.hosts.append(self.headers["Host"])
        status, content, headers = self.site.answers.get(self.path, (404, b"", {}))
        self.answer(status, content, **headers)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with serving(Answering, site=site) as url:
        site.port = url.rpartition(":")[2]
        yield site


def serve(site: Site, path: str, content: Any, status: int = 200, **headers: str) -> None:
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    site.answers[path] = (status, raw, headers)


def test_a_document_can_be_read_from_an_address(site: Site) -> None:
    front = {key: value for key, value in FRONT["3.1"].items() if key != "servers"}
    serve(site, "/v1/api.json", referring("schemas/a.json") | front | {"servers": [{"url": "/base"}]})
    serve(site, "/v1/schemas/a.json", {"type": "string"})
    api = checked(read_api(load(site.url("/v1/api.json"))))
    assert (codes(api), list(api.schemas)) == ([], ["a"])
    assert api.servers == (site.url("/base"),)


def test_nothing_is_fetched_that_was_not_allowed(reader: Reader, site: Site) -> None:
    serve(site, "/a.json", {"type": "string"})
    api = reader.text(referring(site.url("/a.json")))
    assert (codes(api), site.asked) == (["reference-refused"], [])
    allowed = reader.text(referring(site.url("/a.json")), allowed_hosts=[f"127.0.0.1:{site.port}"])
    assert (codes(allowed), site.asked) == ([], ["/a.json"])


NO_HOSTS = (
    "http://[",
    "//[x",
    "http://127.0.0.1:99999/s.json",
    "http://[::1",
    "http://h:p/s.json",
    "https://\u2100.test/s.json",
)


@pytest.mark.parametrize("reference", NO_HOSTS)
def test_a_reference_to_a_host_that_cannot_be_is_told_and_the_rest_is_read(
    reader: Reader, site: Site, reference: str
) -> None:
    assert codes(reader.text(referring(reference))) == ["reference-refused"]
    serve(site, "/api.json", referring(reference))
    assert codes(read_api(load(site.url("/api.json")))) == ["reference-refused"]


def test_a_redirect_is_followed_to_allowed_hosts_only(site: Site) -> None:
    serve(site, "/api.json", FRONT["3.1"] | {"paths": {}})
    serve(site, "/here", b"", 302, Location="/api.json")
    serve(site, "/elsewhere", b"", 302, Location=site.url("/api.json", "localhost"))
    serve(site, "/file", b"", 302, Location="file:///etc/passwd")
    serve(site, "/circle", b"", 302, Location="/circle")
    assert load(site.url("/here")).source == site.url("/api.json")
    for path, words in [
        ("/elsewhere", "not allowed"),
        ("/file", "neither http nor https"),
        ("/circle", "more than 5"),
        ("/none", "404"),
    ]:
        with pytest.raises(DocumentError, match=words):
            load(site.url(path))
    other = f"localhost:{site.port}"
    assert load(site.url("/elsewhere"), allowed_hosts=[other]).source == site.url("/api.json", "localhost")


def test_a_redirect_never_gives_up_encryption() -> None:
    def led(url: str, location: str) -> str:
        redirect = redirect_of("GET", url, 302, location)
        assert redirect is not None
        return redirect_target(redirect, url)

    assert led("https://a.test/x", "/y") == "https://a.test/y"
    assert led("http://a.test/x", "https://a.test/x") == "https://a.test/x"
    for target in ("http://a.test/x", "http://b.test/x"):
        with pytest.raises(FetchError, match="unencrypted"):
            led("https://a.test/x", target)


def test_an_address_where_nobody_answers_is_said() -> None:
    with pytest.raises(DocumentError, match="cannot be read"):
        load(f"http://127.0.0.1:{free_port()}/api.json")


@pytest.fixture
def listener(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Listens where `name.example` leads to from the second time on that it is asked for; the first answer is public."""
    serve(site, "/openapi.json", {"openapi": "3.1.0", "info": {"title": "Inside", "version": "1"}, "paths": {}})
    answers = iter(["93.184.216.34"])
    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *arguments: Any, **options: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        place = next(answers, "127.0.0.1") if name == "name.example" else host
        return resolve(place, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return site


def test_a_name_that_leads_elsewhere_once_it_was_looked_at_gives_no_document(listener: Site) -> None:
    url = listener.url("/openapi.json", "name.example")
    assert is_public(str(socket.getaddrinfo("name.example", 80)[0][4][0]))
    with (
        restrict_to_public_hosts(),
        pytest.raises(DocumentError, match=r"name\.example:\d+/openapi\.json resolves to a private address"),
    ):
        load(url)
    assert listener.hosts == []
    with restrict_to_public_hosts([f"name.example:{listener.port}"]):
        assert load(url).data["info"]["title"] == "Inside"
    assert load(url).data["info"]["title"] == "Inside"
    assert listener.hosts == [f"name.example:{listener.port}"] * 2


def test_a_document_is_read_from_the_address_that_was_looked_at(
    listener: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "is_public", lambda address: address != "93.184.216.34")
    socket.getaddrinfo("name.example", 80)  # what is said first
    with restrict_to_public_hosts():
        assert load(listener.url("/openapi.json", "name.example")).data["info"]["title"] == "Inside"
    assert listener.hosts == [f"name.example:{listener.port}"], "the name stays in the request"


def test_an_answer_that_is_too_big_is_cut_off(site: Site) -> None:
    serve(site, "/api.json", b"#" * 1_000_000)
    with pytest.raises(DocumentError, match="larger than"):
        load(site.url("/api.json"), max_bytes=100_000)
