"""No target is sent key material or tokens, whatever came between the gate and the bytes that are published."""

from __future__ import annotations

import io
import json
import zipfile

from mcpfactory_pipeline.base.hashing import ArchiveEntry, gzip_bytes, tar_bytes
from mcpfactory_pipeline.delivery.publish.images import LAYER, Layout
from mcpfactory_pipeline.delivery.publish.publish import find_published_leaks, find_release, publish

TOKEN = f"ghp_{'aB3d' * 9}".encode()
CODE = b"TOKEN = '" + TOKEN + b"'\n"


def test_a_release_with_a_token_in_it_is_refused_by_name_and_nothing_is_made(shelf):
    shelf.put(code=CODE)
    (outcome,) = publish(shelf.workspace, "books", ["mcpb"])
    assert outcome.outcome == "refused"
    (problem,) = outcome.problems
    assert problem["rule"] == "mcpb/secret"
    assert "books_mcp/__init__.py in" in problem["message"]
    assert "a token of GitHub" in problem["message"]
    assert TOKEN.decode() not in str(outcome)
    assert not (shelf.workspace.artifacts / "books" / outcome.candidate / "publish" / "mcpb").exists()


def image(folder, *layers: dict[str, bytes], env: bytes = b"") -> bytes:
    layout = Layout(folder)
    blobs = [
        layout.add(gzip_bytes(tar_bytes([ArchiveEntry(name, data) for name, data in files.items()])), LAYER)
        for files in layers
    ]
    config = {"architecture": "amd64", "os": "linux", "config": {"Env": [env.decode()]}}
    rows = [{"digest": one.digest, "size": one.size, "mediaType": LAYER} for one in blobs]
    manifest = {"config": {"digest": layout.add(json.dumps(config).encode(), "c").digest}, "layers": rows}
    row = {"digest": layout.add(json.dumps(manifest).encode(), "m").digest}
    (layout.folder / "index.json").write_text(json.dumps({"manifests": [row]}))
    return layout.to_tar()


def test_in_an_image_the_layer_of_the_server_and_its_description_are_looked_at(shelf, tmp_path):
    shelf.put()
    release = find_release(shelf.workspace, "books", "production")
    others = {"usr/lib/python/site-packages/them.py": CODE}
    clean = {"books.oci.tar": image(tmp_path / "a", others, {"app/main.py": b"x"})}
    assert list(find_published_leaks(release, clean)) == []
    layered = {"books.oci.tar": image(tmp_path / "b", others, {"app/lib/books_mcp/a.py": CODE, "app/.env": b"A=b"})}
    assert [words.partition(" in ")[0] for words in find_published_leaks(release, layered)] == [
        "app/.env",
        "app/lib/books_mcp/a.py",
    ]
    described = {"books.oci.tar": image(tmp_path / "c", {"app/main.py": b"x"}, env=b"TOKEN=" + TOKEN)}
    assert [words.partition(" in ")[0] for words in find_published_leaks(release, described)] == ["config.json"]


def test_in_a_bundle_what_others_wrote_is_left_out(shelf):
    shelf.put()
    release = find_release(shelf.workspace, "books", "production")

    def bundle(name: str) -> dict[str, bytes]:
        with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
            archive.writestr(name, CODE)
        return {"books.mcpb": stream.getvalue()}

    assert list(find_published_leaks(release, bundle("server/lib/requests/example.py"))) == []
    for name in ("server/lib/books_mcp/__init__.py", "server/main.py", "manifest.json"):
        assert [words.partition(" in ")[0] for words in find_published_leaks(release, bundle(name))] == [name]
