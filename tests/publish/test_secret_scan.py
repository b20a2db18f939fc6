"""No target is sent key material or tokens, whatever came between the gate and the bytes that are published."""

from __future__ import annotations

import io
import zipfile

from mcpfactory_pipeline.delivery.publish.publish import find_published_secrets, find_release, publish

TOKEN = f"ghp_{'aB3d' * 9}".encode()
CODE = b"TOKEN = '" + TOKEN + b"'\n"


def test_a_release_with_a_token_in_it_is_refused_by_name_and_nothing_is_made(promoted):
    promoted.put(code=CODE)
    (outcome,) = publish(promoted.workspace, "books", ["mcpb"])
    assert outcome.outcome == "refused"
    (problem,) = outcome.problems
    assert problem["rule"] == "mcpb/secret"
    assert "books_mcp/__init__.py in" in problem["message"]
    assert "a token of GitHub" in problem["message"]
    assert TOKEN.decode() not in str(outcome)
    assert not (promoted.workspace.artifacts / "books" / outcome.candidate / "publish" / "mcpb").exists()


def test_in_a_bundle_what_others_wrote_is_left_out(promoted):
    promoted.put()
    release = find_release(promoted.workspace, "books", "production")

    def bundle(name: str) -> dict[str, bytes]:
        with zipfile.ZipFile(stream := io.BytesIO(), "w") as archive:
            archive.writestr(name, CODE)
        return {"books.mcpb": stream.getvalue()}

    assert list(find_published_secrets(release, bundle("server/lib/requests/example.py"))) == []
    for name in ("server/lib/books_mcp/__init__.py", "server/main.py", "manifest.json"):
        assert [words.partition(" in ")[0] for words in find_published_secrets(release, bundle(name))] == [name]
