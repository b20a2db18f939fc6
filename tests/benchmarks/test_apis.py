"""The list of API documents, and how they come out of packages: by pip itself, from a folder of wheels."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.apis import DOCUMENTS, Document, DocumentError, path
from benchmarks.apis.parts import digest
from tests.written_packages import wheel, wheel_name

API = json.dumps({"openapi": "3.1.0", "paths": {"/a": {"get": {}, "post": {}, "parameters": []}, "/b": {"put": {}}}})
OTHER = "swagger: '2.0'\npaths: {/c: {get: {}}}\n"
PARTS = {
    "many/spec/api.yaml": "openapi: 3.0.3\npaths:\n  /a: {$ref: ../paths/a.yaml}\n  /b: {$ref: '../paths/all.json#/~1b'}\n",
    "many/paths/a.yaml": "get: {}\nput: {}\n",
    "many/paths/all.json": '{"/b": {"delete": {}}}',
    "many/paths/notes.txt": "no part of it",
    "manyother.yaml": "no part of it either",
}


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """A package with two documents, all that pip can reach; the first of them, as a row of the list."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    files = {"tinyapi/api.json": API, "tinyapi/other.yaml": OTHER}
    files |= {f"tinyapi/{name}": text for name, text in PARTS.items()}
    (wheels / wheel_name("tinyapi", "1.0")).write_bytes(wheel("tinyapi", "1.0", files))
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("MCPFACTORY_BENCH_HOME", str(tmp_path / "home"))
    return Document(
        "tiny", "pypi", "tinyapi", "1.0", "tinyapi/api.json", hashlib.sha256(API.encode()).hexdigest(), "", 0
    )


def test_every_row_names_one_file_of_one_version() -> None:
    assert len(DOCUMENTS) >= 20
    assert {one.openapi.rpartition(".")[0] or "2.0" for one in DOCUMENTS.values()} >= {"2", "3.0", "3.1"}
    for one in DOCUMENTS.values():
        assert one.registry in {"npm", "pypi"}
        assert re.fullmatch(r"\d+(\.\d+)+(a\d+)?", one.version), one
        assert re.fullmatch(r"[0-9a-f]{64}", one.sha256), one
        assert one.operations > 0 or one.name in {"webhooks", "cactus-core"}  # events only, schemas only
    assert len({one.file for one in DOCUMENTS.values()}) == len(DOCUMENTS)


def test_a_document_is_fetched_once_and_kept(
    offered: Document, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert path(offered).read_text() == API
    assert capsys.readouterr().err == "fetching tinyapi 1.0 from pypi …\n"
    monkeypatch.setenv("PIP_FIND_LINKS", "/nowhere")
    assert path(offered).read_text() == API
    assert capsys.readouterr().err == ""


def test_a_document_in_several_files_is_one_row_with_one_hash(offered: Document) -> None:
    files = {
        name.removeprefix("many/"): text.encode() for name, text in PARTS.items() if name.endswith((".yaml", ".json"))
    }
    del files["manyother.yaml"]
    made = replace(offered, name="many", path="tinyapi/many/spec/api.yaml", folder="tinyapi/many", sha256=digest(files))
    main = path(made)
    assert main.read_text() == PARTS["many/spec/api.yaml"]
    kept = {str(file.relative_to(main.parents[1])) for file in main.parents[1].rglob("*") if file.is_file()}
    assert kept == {"spec/api.yaml", "paths/a.yaml", "paths/all.json"}
    with pytest.raises(DocumentError, match=r"tinyapi 1\.0 has no tinyapi/none/"):
        path(replace(made, sha256="1" * 64, path="tinyapi/none/api.yaml", folder="tinyapi/none"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"sha256": "0" * 64}, r"has the SHA-256 [0-9a-f]{64}, and the list says 0{64}\nhint: "),
        ({"path": "tinyapi/none.json"}, r"tinyapi 1.0 has no tinyapi/none.json\nhint: "),
        (
            {"version": "2.0"},
            r"tinyapi 2.0 cannot be fetched:\n(.*\n)*.*tinyapi==2.0(.*\n)*hint: is the registry in reach",
        ),
        ({"registry": "cargo"}, r"there is no client for cargo\nhint: "),
    ],
)
def test_what_cannot_be_had_is_told_and_nothing_is_kept(offered: Document, wrong: dict[str, str], told: str) -> None:
    with pytest.raises(DocumentError, match=f"document tiny: .*{told}"):
        path(replace(offered, **wrong))  # type: ignore[arg-type]
    home = Path(path(offered)).parent
    assert [file.name for file in home.iterdir()] == [offered.file]
