"""No target is sent key material or tokens, whatever came between the gate and the bytes that are published."""

from __future__ import annotations

import io
import zipfile

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
