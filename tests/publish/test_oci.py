"""An image without a daemon: the same bytes each time, pushed once, pulled back the same; nothing half, nothing wrong."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcpfactory_pipeline.base.errors import PublishError, StateError, TargetError
from mcpfactory_pipeline.delivery.publish.http import open_client
from mcpfactory_pipeline.delivery.publish.images import ImageRegistry, Layout, OciImage, parse_reference
from mcpfactory_pipeline.delivery.publish.oci import find_interpreter, interpreter_entries
from mcpfactory_pipeline.delivery.publish.publish import publish
from tests.machine import needs
from tests.publish.image_registry import PASSWORD, TOKEN, USER, Images, images_served
from tests.publish.shelf import NAME


@pytest.fixture
def images() -> Iterator[Images]:
    with images_served() as served:
        yield served


@pytest.fixture
def ship(shelf, images, monkeypatch):
    """Publishes as an image on a small base, without an index: the server of the shelf needs nothing."""
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    base = images.base()

    def call(mode: str = "send", **options: str):
        given = {"image": f"{images.host}/acme/{{name}}", "base": base, "user": USER, **options}
        (outcome,) = publish(shelf.workspace, "books", ["oci"], given={"oci": given}, mode=mode)
        return outcome

    return call


def pull(images: Images, folder: Path, reference: str, login: tuple[str, str] | None = None) -> tuple[Layout, OciImage]:
    layout = Layout(folder)
    with open_client() as wire:
        return layout, ImageRegistry(wire, parse_reference(reference), login).pull(layout, {"os": "linux"})


def contents(layout: Layout, image: OciImage) -> dict[str, tarfile.TarInfo]:
    found = {}
    for layer in image.layers:
        with tarfile.open(layout.path(layer.digest)) as archive:
            found |= {member.name: member for member in archive}
    return found


def test_what_is_pulled_back_is_what_was_pushed_with_its_labels(shelf, images, ship, tmp_path):
    candidate = shelf.put()
    sent = ship()
    assert sent.outcome == "published"
    _, image = pull(images, tmp_path / "back", f"{images.host}/acme/books-mcp:1.0.0")
    assert image.descriptor.digest == sent.digest == shelf.state.published["oci"].digest
    assert image.labels["io.modelcontextprotocol.server.name"] == NAME
    assert image.labels["org.opencontainers.image.version"] == "1.0.0"
    assert image.labels["mcpfactory.candidate"] == candidate


def test_the_image_runs_the_server_as_an_unprivileged_user_that_owns_its_home_only(shelf, images, ship, tmp_path):
    shelf.put()
    ship()
    layout, image = pull(images, tmp_path / "back", f"{images.host}/acme/books-mcp:1.0.0")
    files = contents(layout, image)
    assert image.config["config"]["User"] == "65532:65532"
    assert image.config["config"]["Entrypoint"] == ["python3", "/app/main.py"]
    assert {name for name, member in files.items() if member.uid} == {"home/nonroot"}
    assert {"base.txt", "app/main.py", "app/lib/books_mcp/__init__.py", "app/requirements.lock"} <= set(files)
    assert not [name for name in files if name.endswith(("direct_url.json", "uv_cache.json")) or "/bin/" in name]
    assert len(image.config["rootfs"]["diff_ids"]) == len(image.layers)


def test_two_images_of_one_release_are_byte_identical(shelf, ship, monkeypatch):
    candidate = shelf.put()
    first = ship("dry-run")
    folder = shelf.workspace.artifacts / "books" / candidate / "publish"
    (folder / "oci").rename(folder / "other")
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert ship("dry-run").files == first.files


def test_without_a_place_the_image_is_a_file_and_nothing_is_recorded(shelf, images, ship):
    candidate = shelf.put()
    outcome = ship(image="")
    assert outcome.outcome == "made"
    assert sorted(outcome.files) == ["books-mcp-1.0.0.oci.tar", "manifest.json"]
    assert images.uploads == []
    assert "oci" not in shelf.state.published
    assert (shelf.workspace.artifacts / "books" / candidate / "publish/oci/books-mcp-1.0.0.oci.tar").is_file()


def test_pushing_again_sends_nothing(shelf, images, ship):
    shelf.put()
    ship()
    before = len(images.uploads)
    assert ship().outcome == "there"
    assert len(images.uploads) == before


def test_a_push_that_broke_off_is_continued_with_the_blobs_that_are_missing(shelf, images, ship):
    shelf.put()
    images.break_at = 2
    with pytest.raises(TargetError) as raised:
        ship()
    assert "continue where it stopped" in raised.value.hint
    assert "1.0.0" not in images.manifests
    assert ship().outcome == "published"
    assert len(images.uploads) == len(set(images.uploads)) + 1  # the one that broke


def test_a_tag_that_is_another_image_is_refused_and_stays(shelf, images, ship):
    shelf.put()
    ship()
    before = images.manifests["1.0.0"]
    shelf.put(summary="Finds other books")
    outcome = ship()
    assert outcome.outcome == "refused"
    assert images.manifests["1.0.0"] == before


@pytest.mark.parametrize("auth", ["basic", "bearer"])
def test_a_registry_that_asks_gets_user_and_password_and_no_file_of_ours_holds_them(
    shelf, images, ship, monkeypatch, auth
):
    monkeypatch.setenv("OCI_PASSWORD", PASSWORD)
    monkeypatch.setenv("OCI_BASE_PASSWORD", PASSWORD)
    shelf.put()
    images.auth = auth
    assert ship(base_user=USER).outcome == "published"
    texts = [file.read_bytes() for file in shelf.workspace.root.rglob("*") if file.is_file()]
    assert not [text for text in texts if PASSWORD.encode() in text or TOKEN.encode() in text]


def test_without_the_right_to_write_it_says_which_variables_to_set(shelf, images, ship):
    shelf.put()
    ship("dry-run")
    images.auth = "basic"
    with pytest.raises(PublishError, match="401"):
        ship()


def test_a_registry_that_stores_its_blobs_elsewhere_is_followed_without_credentials(images, tmp_path):
    reference = images.base()
    images.auth, images.elsewhere = "basic", []
    _, image = pull(images, tmp_path / "back", reference, (USER, PASSWORD))
    assert image.layers
    assert images.elsewhere == [None, None]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"<html>", "is not a valid image"),
        (b"[]", "is not a valid image"),
        (b'{"mediaType": "application/vnd.oci.image.index.v1+json", "layers": []}', "is not a valid image"),
        (b'{"config": {"mediaType": "x", "digest": "sha256:0", "size": "many"}, "layers": []}', "is not a valid image"),
        (b"", "has 0 layers, but its configuration declares 1"),
    ],
)
def test_what_is_no_image_is_said_to_be_none(images, tmp_path, body, words):
    manifest = json.loads(images.manifests[images.base().partition("@")[2]])
    images.manifests["1.0"] = body or json.dumps({**manifest, "layers": []}).encode()
    with pytest.raises(TargetError, match=words) as refused:
        pull(images, tmp_path / "back", f"{images.host}/base/python:1.0")
    assert refused.value.hint


def test_a_blob_that_is_not_what_its_hash_says_is_not_taken(images, tmp_path):
    reference = images.base()
    images.lies = next(digest for digest in images.blobs)
    with pytest.raises(StateError, match="does not match its hash"):
        pull(images, tmp_path / "back", reference)
    assert not [file for file in (tmp_path / "back").rglob("*") if file.is_file() and file.name in images.lies]


@pytest.mark.parametrize(
    ("options", "rule"),
    [({"base": "docker.io/library/python:3.13-slim"}, "oci/base")],
)
def test_what_would_be_another_image_tomorrow_is_refused(shelf, ship, options, rule):
    shelf.put()
    outcome = ship("check", **options)
    assert [problem["rule"] for problem in outcome.problems] == [rule]


@pytest.mark.parametrize(
    ("text", "host", "name", "wanted"),
    [
        ("python:3.13", "docker.io", "library/python", "3.13"),
        ("ghcr.io/acme/notes:1.0.0", "ghcr.io", "acme/notes", "1.0.0"),
        ("localhost:5000/notes", "localhost:5000", "notes", "latest"),
        (f"a.example/b/c:1@sha256:{'0' * 64}", "a.example", "b/c", f"sha256:{'0' * 64}"),
    ],
)
def test_a_reference_is_read_as_docker_reads_it(text, host, name, wanted):
    found = parse_reference(text)
    assert (found.host, found.name, found.selector) == (host, name, wanted)


def test_a_registry_beyond_this_machine_is_never_spoken_to_in_the_clear():
    assert parse_reference("registry.example:80/a/b").url == "https://registry.example:80/v2/a/b"
    assert parse_reference("127.0.0.1:5000/a").url == "http://127.0.0.1:5000/v2/a"
    assert parse_reference("127.evil.example/a").url.startswith("https://")


@needs("linux")  # only a Python for it can stand in an image
def test_the_base_of_this_machine_has_python_its_library_and_what_it_is_linked_to():
    python = find_interpreter()
    entries = {entry.path: entry for entry in interpreter_entries(python)}
    assert entries["usr/local/bin/python3"].link == f"python{python.minor}"
    assert f"usr/local/lib/python{python.minor}/os.py" in entries
    assert [path for path in entries if path.endswith("/libc.so.6")]
    assert [path for path in entries if "/ld-linux" in path]
    assert not [path for path in entries if "__pycache__" in path or "/test/" in path or path.endswith("/sh")]
    assert b"nonroot:x:65532:65532" in entries["etc/passwd"].data
