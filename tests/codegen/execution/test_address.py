"""Where an API lives: the same whichever way a server is made anew, and which addresses of it the person permitted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_codegen.servers.config import read_config
from mcpfactory_codegen.servers.create import create_server, regenerate
from mcpfactory_codegen.servers.generation import CreateError
from mcpfactory_codegen.servers.update import update_server
from tests.loopback_server import LoopbackHandler, serving
from tests.system import contents

PING = {"get": {"operationId": "ping", "responses": {"200": {"description": "pong"}}}}
MODERN = {"openapi": "3.1.0", "info": {"title": "Ping", "version": "1"}, "paths": {"/ping": PING}}
OLD = {"swagger": "2.0", "info": {"title": "Ping", "version": "1"}, "basePath": "/v2", "paths": {"/ping": PING}}
SPREAD = {
    **MODERN,
    "info": {"version": "1"},
    "paths": {"/ping": {"$ref": "parts/ping.json"}, "/lost": {"$ref": "parts/no.json"}},
}

Serve = Callable[..., str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves documents by path on loopback and gives the address of the first; `served(files)` again replaces them."""
    files: dict[str, Any] = {}

    class Handler(LoopbackHandler):
        def get(self) -> None:
            found = files.get(self.path.partition("?")[0])
            self.answer(404 if found is None else 200, found)

    with serving(Handler) as url:

        def served(**documents: Any) -> str:
            files.update({f"/{path}": document for path, document in documents.items()})
            return url

        yield served


def base_url(folder: Path) -> str:
    """What the generated code calls."""
    (line,) = [
        one for one in (folder / "src/ping_mcp/_generated/api.py").read_text().splitlines() if "BASE_URL =" in one
    ]
    return str(json.loads(line.removeprefix("BASE_URL = ")))


@pytest.mark.parametrize(
    ("document", "path"),
    [
        pytest.param(MODERN, "", id="no servers"),
        pytest.param({**MODERN, "servers": [{"url": "/api/v3"}]}, "/api/v3", id="a path"),
        pytest.param({**MODERN, "servers": [{"url": "v3/"}]}, "/docs/v3", id="relative to the document"),
        pytest.param(OLD, "/v2", id="2.0 without a host"),
        pytest.param(SPREAD, "", id="several files, one of them lost, no title"),
    ],
)
def test_an_address_that_is_the_documents_own_survives_every_way_of_making(
    document, path, serve: Serve, tmp_path
) -> None:
    host = serve(**{"docs/openapi.json": document, "docs/parts/ping.json": PING})
    made = create_server(tmp_path, name="ping", source=f"{host}/docs/openapi.json")
    before = contents(made.path)
    assert base_url(made.path) == host + path
    for again in (regenerate, update_server, regenerate):
        again(made.path)
        assert contents(made.path) == before


def test_a_file_of_a_document_whose_address_leads_out_of_the_folder_is_refused(serve: Serve, tmp_path) -> None:
    lost = {**MODERN, "paths": {"/ping": {"$ref": "%2e%2e/%2e%2e/%2e%2e/stray.json"}}}
    host = serve(**{"docs/openapi.json": lost, "docs/%2e%2e/%2e%2e/%2e%2e/stray.json": PING})
    with pytest.raises(CreateError, match="not a path below"):
        create_server(tmp_path / "servers", name="ping", source=f"{host}/docs/openapi.json")
    assert not list(tmp_path.rglob("stray.json"))
    assert not (tmp_path / "servers/ping").exists()


@pytest.mark.parametrize(
    ("servers", "permitted"),
    [
        pytest.param(None, "127.0.0.1:{port}", id="where it came from"),
        pytest.param("http://localhost:{port}/v1", "localhost:{port}", id="this machine by another name"),
        pytest.param("http://127.0.0.1:9/v1", "", id="another port"),
        pytest.param("http://169.254.169.254:{port}/latest", "", id="another host"),
        pytest.param("https://api.example.com", "", id="a public one"),
    ],
)
def test_the_private_address_that_a_person_typed_is_permitted_and_no_other(
    servers, permitted, serve: Serve, tmp_path
) -> None:
    host = serve(**{"openapi.json": MODERN})
    port = host.rpartition(":")[2]
    if servers:
        serve(**{"openapi.json": {**MODERN, "servers": [{"url": servers.format(port=port)}]}})
    expected = [permitted.format(port=port)] if permitted else []
    for permit in (True, False):
        made = create_server(tmp_path / str(permit), name="ping", source=f"{host}/openapi.json", permit=permit)
        config = read_config(made.path)
        assert list(config.allow_private) == made.address["allow_private"] == (expected if permit else [])
        code = (made.path / "src/ping_mcp/_generated/api.py").read_text()
        assert (f'private=("{permitted.format(port=port)}",)' in code) is bool(permit and permitted)
    update_server(made.path)
    assert read_config(made.path).allow_private == (), "nobody typed it anew"
    update_server(made.path, source=f"{host}/openapi.json", permit=True)
    assert list(read_config(made.path).allow_private) == expected


def test_what_the_url_of_a_document_says_of_the_person_goes_into_no_file(serve: Serve, tmp_path) -> None:
    host = serve(**{"openapi.json": MODERN})
    source = f"{host.replace('//', '//ada:secret-word@')}/openapi.json?token=secret-word"
    made = create_server(tmp_path, name="ping", source=source)
    assert base_url(made.path) == host
    assert not [path for path, content in contents(made.path).items() if b"secret-word" in content]
