"""Packages of an index and of a registry, pinned by version and hash: what is taken, what is refused, and what is newer."""

from __future__ import annotations

import json

import pytest

from mcpfactory_pipeline.adoption.npm import npm_integrity
from mcpfactory_pipeline.base.hashing import hash_bytes
from tests.adoption.conftest import done, state
from tests.adoption.registries import node_files
from tests.written_packages import wheel

pytestmark = pytest.mark.xdist_group("adopted_packages")

# A server of the standard library alone, which is as good as any to be fetched, installed and started.
PYTHON = """
import json, os, sys

TOOL = {"name": "greet", "description": "Greets a person by name and says how long the name is.", "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string", "description": "Whom to greet"}}, "required": ["name"]}}

def main():
    os.environ.get("GREETER_TOKEN")
    for line in sys.stdin:
        message = json.loads(line)
        method, answer = message.get("method"), {}
        if method == "initialize":
            answer = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "greeter", "version": "1"}}}
        elif method == "tools/list":
            answer = {"result": {"tools": [TOOL]}}
        elif method == "tools/call":
            answer = {"result": {"content": [{"type": "text", "text": "Hello, " + str(message["params"]["arguments"].get("name"))}]}}
        else:
            answer = {"error": {"code": -32601, "message": "no"}}
        if "id" in message:
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def python_wheel(version: str, text: str = PYTHON) -> bytes:
    return wheel(
        "acme-greeter", version, {"acme_greeter.py": text}, "acme-greeter = acme_greeter:main", ("acme-words",)
    )


def with_python(registry, *versions: str) -> None:
    found, _ = registry
    found.add_wheel("acme-words", "1.0", wheel("acme-words", "1.0", {"acme_words.py": ""}))
    for version in versions:
        found.add_wheel("acme-greeter", version, python_wheel(version))


def with_node(registry, *versions: str) -> None:
    found, _ = registry
    words = {"name": "@acme/words", "version": "2.0.0", "main": "words.json", "scripts": {"install": "touch ran"}}
    found.add_tarball(words, {"words.json": "{}"})
    for version in versions:
        package = {
            "name": "@acme/greeter", "version": version, "bin": "greeter.js",
            "dependencies": {"@acme/words": "^2.0.0"}, "scripts": {"postinstall": "touch ran"},
        }  # fmt: skip
        found.add_tarball(package, node_files(version))


def test_a_package_of_an_index_is_pinned_and_only_what_was_pinned_is_built(space, registry):
    with_python(registry, "1.0", "1.1")
    space.environ.update(registry[1])
    shown = done(space, "adopt", "pypi:acme-greeter==1.0", "--name", "greeter", "--yes")
    assert "2 packages in requirements.lock, each by its hash" in shown
    assert 'environment = ["GREETER_TOKEN"]' in shown
    text = (space.folder / "servers/greeter/mcpfactory.toml").read_text()
    assert f'hash = "{hash_bytes(python_wheel("1.0"))}"' in text
    lock = (space.folder / "servers/greeter/requirements.lock").read_text()
    assert "127.0.0.1" not in lock
    done(space, "pipeline", "run", "greeter", "--until", "build")
    files = state(space, "greeter")["candidates"][state(space, "greeter")["candidate"]]["files"]
    assert files["acme_greeter-1.0-py3-none-any.whl"] == hash_bytes(python_wheel("1.0"))
    assert done(space, "call", "greeter", "greet", "--arg", "name=Ada").strip() == "Hello, Ada"
    told = [item["message"] for item in json.loads(done(space, "inbox", "--refresh", "--json"))]
    assert any("acme-greeter has 1.1, and 1.0 was adopted" in message for message in told), told
    # the index replaces the version: another hash is not what was adopted
    registry[0].add_wheel("acme-greeter", "1.0", python_wheel("1.0", PYTHON + "# evil\n"))
    space.environ["UV_CACHE_DIR"] += "2"
    again = space("pipeline", "run", "greeter", "--until", "build", "--force")
    assert again.code == 1
    assert "the adopted file was removed or replaced" in state(space, "greeter")["stages"]["build"]["message"]
    # the same command with another version moves the pin and the lock, and nothing else
    (space.folder / "servers/greeter/mcpfactory.toml").write_text(
        text.replace('["acme-greeter"]', '["acme-greeter", "-v"]')
    )
    changed = done(space, "adopt", "pypi:acme-greeter==1.1", "--yes")
    assert '-version = "1.0"' in changed
    now = (space.folder / "servers/greeter/mcpfactory.toml").read_text()
    assert 'start = ["acme-greeter", "-v"]' in now
    assert 'version = "1.1"' in now
    assert done(space, "adopt", "pypi:acme-greeter==1.1", "--yes").strip().endswith("nothing was written")


def test_a_package_that_does_not_know_what_it_depends_on_says_how_to_take_an_older_one(space, registry):
    found, environ = registry
    space.environ.update(environ)
    with_python(registry)
    broken = python_wheel(
        "1.0.0", PYTHON + "\nsys.exit(\"AttributeError: 'Server' object has no attribute 'list_tools'\")\n"
    )
    found.add_wheel("acme-greeter", "1.0.0", broken)
    done(space, "adopt", "pypi:acme-greeter", "--yes")
    assert space("pipeline", "run", "acme-greeter").code == 1
    said = state(space, "acme-greeter")["stages"]["validate"]["message"]
    assert "mcpfactory adopt pypi:acme-greeter==1.0.0 --constraint" in said


def test_a_package_of_a_registry_is_pinned_and_no_script_of_it_runs(space, registry):
    with_node(registry, "1.0.0", "1.1.0")
    space.environ.update(registry[1])
    shown = space("adopt", "npm:@acme/greeter@1.0.0", "--name", "greeter", "--yes")
    assert shown.code == 0, shown.err
    assert "2 packages in package-lock.json, each by its integrity" in shown.out
    assert "installation scripts are not run: @acme/greeter, @acme/words" in shown.err
    data = registry[0].tarballs["@acme/greeter"]["1.0.0"]
    assert f'hash = "{npm_integrity(data)}"' in (space.folder / "servers/greeter/mcpfactory.toml").read_text()
    assert "127.0.0.1" not in (space.folder / "servers/greeter/package-lock.json").read_text()
    done(space, "pipeline", "run", "greeter")
    candidate = state(space, "greeter")["candidate"]
    folder = space.folder / "pipeline/artifacts/greeter" / candidate
    assert (folder / "ready/node_modules/@acme/greeter/greeter.js").is_file()
    assert not list(folder.rglob("ran"))
    assert state(space, "greeter")["channels"]["staging"]["version"] == "1.0.0"
    registry[0].tarballs["@acme/greeter"]["1.0.0"] = registry[0].tarballs["@acme/greeter"]["1.1.0"]
    space.environ["npm_config_cache"] += "2"
    again = space("pipeline", "run", "greeter", "--until", "build", "--force")
    assert again.code == 1
    assert "the registry has replaced" in state(space, "greeter")["stages"]["build"]["message"]


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("pypi:acme-greeter==9.9", "cannot be adopted"),
        ("pypi:acme-words", "acme-words does not define a start program: it has no program"),
        ("npm:@acme/greeter@9.9.9", "cannot be adopted"),
        ("npm:@acme/words@2.0.0", "words does not define a start program: it has no program"),
        ("npm:@acme/none", "cannot be adopted"),
    ],
)
def test_a_package_that_is_not_there_or_starts_nothing_is_said(space, registry, what, says):
    with_python(registry, "1.0")
    with_node(registry, "1.0.0")
    space.environ.update(registry[1])
    found = space("adopt", what, "--yes")
    assert found.code != 0
    assert says in found.err
    assert "hint:" in found.err
    assert not (space.folder / "servers/acme-words").exists()


def test_a_lock_of_another_version_is_refused(space, registry):
    with_python(registry, "1.0", "1.1")
    space.environ.update(registry[1])
    done(space, "adopt", "pypi:acme-greeter==1.0", "--name", "greeter", "--yes")
    config = space.folder / "servers/greeter/mcpfactory.toml"
    config.write_text(config.read_text().replace('version = "1.0"', 'version = "1.1"'))
    assert space("pipeline", "run", "greeter", "--until", "build").code == 1
    message = state(space, "greeter")["stages"]["build"]["message"]
    assert "requirements.lock does not contain acme-greeter==1.1" in message


def test_a_table_that_cannot_be_used_is_named(space):
    place = space.folder / "servers/odd"
    place.mkdir(parents=True)
    for table, says in (
        ('kind = "cobol"', 'adopted.kind: "cobol" is not valid'),
        ('kind = "url"', "adopted: 'url' is missing: kind 'url' requires this field"),
        ('kind = "url"\nurl = "https://x"\nstart = ["a"]', "start"),
        ('kind = "command"\nstart = "node x"', "adopted.start: must be a list of strings"),
        ('kind = "command"\nstart = ["node"]\npath = "../out"', "'../out' is outside the workspace"),
    ):
        (place / "mcpfactory.toml").write_text(f'[server]\nname = "odd"\n\n[adopted]\n{table}\n')
        found = space("pipeline", "plan", "odd")
        assert says in found.err + found.out, (table, found)
        assert json.dumps(table)


def test_a_package_that_does_not_start_without_its_scripts_says_that_they_are_not_run(space, registry):
    with_node(registry, "1.0.0")
    found, environ = registry
    package = {"name": "@acme/native", "version": "1.0.0", "bin": "greeter.js", "scripts": {"install": "node make.js"}}
    found.add_tarball(package, {"greeter.js": '#!/usr/bin/env node\nrequire("./made.node");\n'})
    space.environ.update(environ)
    done(space, "adopt", "npm:@acme/native@1.0.0", "--name", "native", "--yes")
    assert space("pipeline", "run", "native").code == 1
    message = state(space, "native")["stages"]["validate"]["message"]
    assert "the installation scripts of @acme/native are not run, but may make files that it needs" in message
    assert "mcpfactory adopt --command" in message
