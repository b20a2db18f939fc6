"""Locks that somebody wrote into: what no hash pins, and what leads elsewhere, is refused before anything of it is fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpfactory_pipeline.adoption.npm import npm_integrity
from mcpfactory_pipeline.adoption.sources import check_node_lock, check_python_lock
from mcpfactory_pipeline.base.errors import ConfigError
from tests.adoption.conftest import done, put, state
from tests.adoption.registries import node_files
from tests.adoption.test_packages import with_node, with_python
from tests.adoption.test_projects import BACKEND, PYPROJECT, PYTHON, node_project
from tests.subtest_table import parametrize_subtests

pytestmark = pytest.mark.xdist_group("adopted_pinned")

WORDS, SHA1 = "node_modules/@acme/words", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
EVIL = "http://127.0.0.1:9/evil.tgz"


def refused(space, registry, name: str, *says: str) -> None:
    """`build` and `call` refuse, with a hint, and ask nobody for anything."""
    registry[0].asked.clear()
    assert space("pipeline", "run", name, "--until", "build").code == 1
    message = state(space, name)["stages"]["build"]["message"]
    called = space("call", name, "greet", "--arg", "name=Ada")
    assert called.code == 4, (called.out, called.err)
    for text in (message, called.err):
        assert all(one in text for one in says), text
        assert "hint:" in text
    assert registry[0].asked == []


def changed(lock: Path, path: str, row: dict[str, Any], *, without: str = "") -> None:
    data = json.loads(lock.read_bytes())
    data["packages"][path] = {
        key: value for key, value in {**data["packages"].get(path, {}), **row}.items() if key != without
    }
    lock.write_text(json.dumps(data))


# What is changed in the entry, which of its fields is taken away, and what is said of it.
LOOSE = (
    ({}, "integrity", "has no valid integrity"),
    ({"resolved": EVIL}, "integrity", "points to another place"),
    ({"resolved": EVIL}, "", "points to another place"),
    ({"resolved": "git+ssh://git@127.0.0.1/evil.git#0123"}, "", "points to another place"),
    ({"resolved": "file:package.tgz"}, "", "points to another place"),
    ({"integrity": SHA1}, "", "is pinned by SHA-1 alone"),
    ({"integrity": "sha512-short"}, "", "has no valid integrity"),
    ({"integrity": f"sha512-short {SHA1}"}, "", "has no valid integrity"),
    ({"link": True, "resolved": "../evil"}, "", "is a link to a folder"),
    ({"version": EVIL}, "", "which is not a version of a package"),
    ({"version": "npm:evil@1.0.0"}, "", "which is not a version of a package"),
    ({"inBundle": True}, "integrity", "has no valid integrity"),
    ({"hasShrinkwrap": True}, "", "brings its own lock"),
)
OLD = ('{"lockfileVersion": 1, "dependencies": {"@acme/words": {"version": "2.0.0"}}}', '{"lockfileVersion": 3}', "[]", "{",
       '{"lockfileVersion": 1, "packages": {}}')  # fmt: skip


def test_an_entry_of_a_package_lock_that_is_not_pinned_is_refused_before_it_is_fetched(space, registry):
    with_node(registry, "1.0.0")
    space.environ.update(registry[1])
    done(space, "adopt", "npm:@acme/greeter@1.0.0", "--name", "greeter", "--yes")
    lock = space.folder / "servers/greeter/package-lock.json"
    written = lock.read_text()
    for row, without, says in LOOSE[:2]:
        changed(lock, WORDS, row, without=without)
        refused(space, registry, "greeter", f"servers/greeter/package-lock.json: the entry '{WORDS}'", says)
        lock.write_text(written)


@pytest.fixture
def lock(tmp_path) -> Path:
    """The lock of a package with one dependency, as npm writes it."""
    pinned = {"version": "2.0.0", "integrity": npm_integrity(b"")}
    rows = {"": {}, "node_modules/@acme/greeter": {**pinned, "resolved": "file:package.tgz"}, WORDS: pinned}
    place = tmp_path / "package-lock.json"
    place.write_text(json.dumps({"lockfileVersion": 3, "packages": rows}))
    check_node_lock(place.read_bytes(), own="@acme/greeter")
    return place


@pytest.mark.parametrize(("row", "without", "says"), LOOSE)
def test_every_entry_is_pinned_by_a_strong_hash_and_leads_nowhere_else(lock, row, without, says):
    changed(lock, WORDS, row, without=without)
    with pytest.raises(ConfigError) as told:
        check_node_lock(lock.read_bytes(), own="@acme/greeter")
    assert f"the entry '{WORDS}' " in str(told.value)
    assert says in str(told.value)


def test_a_folder_beside_the_packages_is_no_package(lock):
    changed(lock, "apps/evil", {"version": "1.0.0", "integrity": npm_integrity(b"")})
    with pytest.raises(ConfigError, match="the entry 'apps/evil' is a folder outside node_modules"):
        check_node_lock(lock.read_bytes(), own="@acme/greeter")


@parametrize_subtests("text", OLD)
def test_a_package_lock_of_an_old_form_is_refused(text):
    with pytest.raises(ConfigError, match=r"package-lock.json must be a lock file of version 2 or 3"):
        check_node_lock(text.encode(), own="@acme/greeter")


def test_an_alias_and_what_a_package_bundles_are_taken(space, registry):
    with_node(registry, "1.0.0")
    space.environ.update(registry[1])
    found = registry[0]
    inner = {"name": "inner", "version": "1.0.0", "dependencies": {"deeper": "1.0.0"}}
    deeper = {"name": "deeper", "version": "1.0.0"}
    needs = {"inner": "1.0.0", "renamed": "npm:@acme/words@2.0.0"}
    outer = {"name": "outer", "version": "1.0.0", "bundleDependencies": ["inner"], "dependencies": needs}
    files = {
        f"node_modules/{one['name']}/{file}": text
        for one in (inner, deeper)
        for file, text in {"package.json": json.dumps(one), "index.js": ""}.items()
    }
    found.add_tarball(outer, files)
    greeter = {"name": "greeter", "version": "1.0.0", "bin": "greeter.js", "dependencies": {"outer": "1.0.0"}}
    found.add_tarball(greeter, node_files())
    done(space, "adopt", "npm:greeter", "--yes")
    rows = json.loads((space.folder / "servers/greeter/package-lock.json").read_bytes())["packages"]
    assert rows["node_modules/renamed"]["name"] == "@acme/words"
    assert "integrity" not in rows["node_modules/outer/node_modules/deeper"]
    assert done(space, "call", "greeter", "greet", "--arg", "name=Ada").strip() == "Hello, Ada (3)"
    # a package that the other does not bundle would be fetched, and nothing pins it
    rows["node_modules/outer"]["bundleDependencies"] = ["other"]
    with pytest.raises(ConfigError, match="'node_modules/outer/node_modules/deeper' has no valid integrity"):
        check_node_lock(json.dumps({"lockfileVersion": 3, "packages": rows}).encode(), own="greeter")


def test_the_lock_of_a_project_may_say_where_its_packages_are_and_pins_each(space, registry):
    with_node(registry, "1.0.0")
    found, environ = registry
    space.environ.update(environ)
    files = node_project()
    package = {**json.loads(files["package.json"]), "dependencies": {"@acme/words": "2.0.0"}}
    words = {
        "version": "2.0.0", "resolved": f"{found.url}/tarballs/@acme/words/2.0.0",
        "integrity": npm_integrity(found.tarballs["@acme/words"]["2.0.0"]),
    }  # fmt: skip
    root = {key: package[key] for key in ("name", "version", "dependencies")}
    lock = {"name": "greeter", "version": "2.0.0", "lockfileVersion": 3, "packages": {"": root, WORDS: words}}
    place = put(
        space.folder / "apps/ts", {**files, "package.json": json.dumps(package), "package-lock.json": json.dumps(lock)}
    )
    done(space, "adopt", "apps/ts", "--name", "greeter", "--yes")
    done(space, "pipeline", "run", "greeter", "--until", "build")
    assert done(space, "call", "greeter", "greet", "--arg", "name=Ada").strip() == "Hello, Ada (3)"
    for row, without, says in (
        ({}, "integrity", "has no valid integrity"),
        ({"resolved": "git+ssh://git@127.0.0.1/evil.git"}, "", "points to another place"),
        ({"resolved": "apps/evil", "link": True}, "", "is a link"),
    ):
        (place / "package-lock.json").write_text(json.dumps(lock))
        changed(place / "package-lock.json", WORDS, row, without=without)
        refused(space, registry, "greeter", f"apps/ts/package-lock.json: the entry '{WORDS}'", says)
    (place / "package-lock.json").rename(place / "npm-shrinkwrap.json")
    (place / "package-lock.json").write_text(json.dumps(lock))
    refused(space, registry, "greeter", "npm would use npm-shrinkwrap.json of apps/ts instead of")


LINES = (
    ("--index-url http://127.0.0.1:9/simple", "is an option"),
    ("-i http://127.0.0.1:9/simple", "is an option"),
    ("--extra-index-url=http://127.0.0.1:9/simple", "is an option"),
    ("--find-links ../evil", "is an option"),
    ("--no-require-hashes", "is an option"),
    ("-e ../evil", "is an option"),
    ("-r other.txt", "is an option"),
    ("  \t-r other.txt", "is an option"),
    ("# a remark \\\n--index-url http://127.0.0.1:9/simple", "is an option"),
    ("# a remark\r--index-url http://127.0.0.1:9/simple", "is an option"),
    ("evil @ http://127.0.0.1:9/evil-1.0-py3-none-any.whl", "points to another place"),
    ("evil @ http://127.0.0.1:9/evil-1.0-py3-none-any.whl --hash=sha256:" + 64 * "0", "points to another place"),
    ("./evil", "does not pin one version of a package"),
    ("evil>=1 --hash=sha256:" + 64 * "0", "does not pin one version of a package"),
    ("evil==1.* --hash=sha256:" + 64 * "0", "does not pin one version of a package"),
    ("evil==1.0", "has no valid hash"),
    ("evil==1.0 --hash=md5:" + 32 * "0", "has no valid hash"),
    ("evil==1.0 \\\n    --hash=sha256:" + 64 * "0" + " --index-url http://127.0.0.1:9", "has no valid hash"),
    ("evil==${VERSION} --hash=sha256:" + 64 * "0", "a variable"),
)


def test_a_line_of_a_requirements_lock_that_is_no_package_by_its_hash_is_refused_before_it_is_obeyed(space, registry):
    with_python(registry, "1.0")
    space.environ.update(registry[1])
    done(space, "adopt", "pypi:acme-greeter==1.0", "--name", "greeter", "--yes")
    lock = space.folder / "servers/greeter/requirements.lock"
    written = lock.read_text()
    for more, says in LINES[:1]:
        lock.write_text(f"# a remark\n\n{written}{more}\n", newline="")
        refused(space, registry, "greeter", "servers/greeter/requirements.lock: line", says)


@parametrize_subtests("more, says", LINES)
def test_every_line_is_a_package_by_its_hash(more, says):
    pinned = f"# a remark\n\nacme-words==1.0 ; python_version >= '3.11' \\\n    --hash=sha256:{64 * '0'}\n"
    check_python_lock(pinned.encode())
    with pytest.raises(ConfigError) as told:
        check_python_lock(f"{pinned}{more}\n".encode())
    assert says in str(told.value)


def test_the_lock_of_a_python_project_takes_a_wheel_at_an_address_by_its_hash_alone(space, registry):
    with_python(registry)
    space.environ.update(registry[1])
    address = f"{registry[0].url}/wheels/acme-words/acme_words-1.0-py3-none-any.whl"
    text = PYPROJECT.replace('["acme-words"]', json.dumps([f"acme-words @ {address}"]))
    put(space.folder / "apps/py", {"pyproject.toml": text, "backend.py": BACKEND, "acme_greeter.py": PYTHON})
    done(space, "adopt", "apps/py", "--name", "greeter", "--yes")
    lock = space.folder / "servers/greeter/requirements.lock"
    assert address in lock.read_text()
    done(space, "pipeline", "run", "greeter", "--until", "build")
    lock.write_text(f"acme-words @ {address}\n")
    refused(space, registry, "greeter", "requirements.lock: line 1 has no valid hash")
