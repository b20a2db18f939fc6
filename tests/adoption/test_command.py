"""A server of Node.js that depends on nothing, adopted by its command: all the way to a client, to a new version, and back."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from mcpfactory_pipeline.plan import fingerprint
from tests.adoption.conftest import done, put, state
from tests.adoption.registries import node_files
from tests.adoption.test_packages import PYTHON

pytestmark = pytest.mark.xdist_group("adopted_command")
COMMAND = ("adopt", "--command", "node greeter.js", "--name", "greeter")


def adopted(space, *more: str) -> str:
    place = space.folder / "tools/greeter"
    said = space.at(place)
    said.environ.update(space.environ)
    return done(said, *COMMAND, *more)


def call(space, *words: str) -> str:
    return done(space, "call", "greeter", "greet", "--arg", "name=Ada", *words)


def test_what_would_be_written_is_shown_and_nothing_is_without_a_yes(space):
    put(space.folder / "tools/greeter", node_files())
    before = {path for path in space.folder.rglob("*") if path.is_file()}
    shown = adopted(space, "--dry-run")
    assert 'kind = "command"' in shown
    assert 'path = "tools/greeter"' in shown
    assert 'start = ["node", "greeter.js"]' in shown
    refused = space.at(space.folder / "tools/greeter")(*COMMAND)
    assert (refused.code, "confirmation is required" in refused.err) == (2, True)
    assert {path for path in space.folder.rglob("*") if path.is_file()} == before
    adopted(space, "--yes")
    added = {path for path in space.folder.rglob("*") if path.is_file()} - before
    assert {path.relative_to(space.folder).as_posix() for path in added} == {"servers/greeter/mcpfactory.toml"}


def test_the_road_of_a_command_from_its_files_to_a_client_and_back(space):
    place = put(space.folder / "tools/greeter", node_files())
    adopted(space, "--yes")
    config = space.folder / "servers/greeter/mcpfactory.toml"
    config.write_text(config.read_text() + 'files = ["words.json"]\n')
    put(space.folder / "servers/greeter/tests", {"calls.json": '[{"tool": "greet", "arguments": {"name": "Ada"}}]'})
    judged = space("validate", "greeter", "--json").data
    assert not any(one["rule"].startswith("packaging.") for one in [*judged["findings"], *judged["not_checked"]])
    assert "packaging.metadata" in judged["not_applicable"]
    done(space, "pipeline", "run", "greeter")
    assert state(space, "greeter")["stages"]["validate"]["summary"]["score"] == judged["score"]
    first = state(space, "greeter")["candidate"]
    record = json.loads(next((space.folder / f"pipeline/artifacts/greeter/{first}").glob("*.mcp.json")).read_bytes())
    assert record["kind"] == "command"
    assert set(record["files"]) == {"files.tar"}
    assert state(space, "greeter")["channels"]["staging"]["candidate"] == first
    assert "no tests" in state(space, "greeter")["stages"]["test"]["message"]
    done(space, "pipeline", "approve", "greeter", "--channel", "production")
    done(space, "pipeline", "promote", "greeter", "--channel", "production")
    done(space, "install", "greeter", "--client", "cursor")
    entry = json.loads((space.folder.parent / "home/.cursor/mcp.json").read_bytes())["mcpServers"]["greeter"]
    assert entry["args"][:4] == ["run", "greeter", "--channel", "production"]
    assert "current" in done(space, "install")
    assert started(space, entry) == "Hello, Ada (3)"
    # another version: another candidate, and the client still starts the one that production offers
    put(place, node_files("1.1.0", "Good day"))
    assert call(space).strip() == "Good day, Ada (3)"
    done(space, "pipeline", "run", "greeter")
    second = state(space, "greeter")["candidate"]
    assert second != first
    assert started(space, entry) == "Hello, Ada (3)"
    done(space, "pipeline", "approve", "greeter", "--channel", "production")
    done(space, "pipeline", "promote", "greeter", "--channel", "production")
    assert started(space, entry) == "Good day, Ada (3)"
    done(space, "pipeline", "rollback", "greeter", "--channel", "production", "--reason", "too formal")
    assert started(space, entry) == "Hello, Ada (3)"
    assert done(space, "pipeline", "verify", "--json").strip() == "[]"
    archive = space.folder / f"pipeline/artifacts/greeter/{first}/files.tar"
    archive.write_bytes(archive.read_bytes() + b" ")
    refused = space("run", "greeter", "--channel", "production")
    assert (refused.code != 0, "files.tar of the candidate is not the checked file" in refused.err) == (True, True)


def started(space, entry) -> str:
    """What the server answers that the entry of a client starts."""
    import asyncio

    from mcpfactory_runtime.client import connect_stdio

    async def ask() -> str:
        async with connect_stdio([entry["command"], *entry["args"]], dict(space.environ)) as client:
            return (await client.call_tool("greet", {"name": "Ada"}))["content"][0]["text"]

    return asyncio.run(ask())


def test_a_newer_runtime_makes_no_adopted_server_stale(space, monkeypatch):
    put(space.folder / "tools/greeter", node_files())
    adopted(space, "--yes")
    done(space, "pipeline", "run", "greeter", "--until", "test")
    known = fingerprint.distribution_version
    monkeypatch.setattr(
        fingerprint,
        "distribution_version",
        lambda name, *parts: "9" if name == "mcpfactory-runtime" else known(name, *parts),
    )
    assert "nothing to do" in done(space, "pipeline", "run", "greeter", "--until", "test")


def test_update_says_how_what_is_newest_is_adopted(space):
    put(space.folder / "tools/greeter", node_files())
    adopted(space, "--yes")
    found = space("update", "greeter")
    assert (found.code, "mcpfactory adopt --command 'node greeter.js' --name greeter" in found.err) == (4, True)


def test_a_server_that_does_not_start_says_why_and_goes_nowhere(space):
    put(space.folder / "tools/greeter", node_files())
    adopted(space, "--yes")  # the words are not among its files
    ended = space("pipeline", "run", "greeter")
    assert ended.code == 1
    found = state(space, "greeter")["stages"]["validate"]
    assert found["outcome"] == "failed"
    assert "it does not start" in found["message"]
    assert "words.json" in found["message"]
    assert "staging" not in state(space, "greeter")["channels"]


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (("--command", "npx some-server"), "npx downloads the program at each start", "npm:NAME@VERSION"),
        (("--command", "docker run x"), "docker downloads", "its package"),
        (("--command", "node --version"), "the command does not name a file", "package"),
        (("--command", "no-such-program-here"), "program no-such-program-here not found", "path"),
        (("--command", "node 'x"), "is not a valid command line", "close every quote"),
        (("oci:acme/server@sha256:00",), "a container image cannot be adopted", "package"),
        (("nowhere",), "nowhere is neither an existing folder", "pypi:NAME==VERSION"),
        ((), "give either a server or --command", "adopt FOLDER"),
        (("pypi:a b",), "does not select exactly one version", "pypi:NAME==VERSION"),
        (("npm:A B",), "does not select exactly one version", "npm:@scope/NAME@VERSION"),
        (("https://u:p@example.test/mcp",), "must not contain a user name or a password", "https://host/mcp"),
        (("http://127.0.0.1:9/mcp\nx",), "is not a valid URL", "https://host/mcp"),
        (("http://127.0.0.1:99999/mcp",), "is not a valid URL", "https://host/mcp"),
        (("http://127.0.0.1:9/mcp?token=sk-9Qm2Zx7LkP4vT8sWnB3c",), "the URL contains a secret", "as a header"),
        (
            ("--command", "node greeter.js --token sk-live-9Qm2Zx7LkP4vT8sWnB3c"),
            "the command contains a secret",
            "`environment` in its mcpfactory.toml",
        ),
        (
            ("nowhere", "--started-by", "x --password=hunter2hunter2"),
            "the command contains a secret",
            "`environment` in its mcpfactory.toml",
        ),
        (
            ("--command", "/usr/bin/env npx -y foo", "--copy"),
            "npx downloads the program at each start",
            "npm:NAME@VERSION",
        ),
        (("--command", "timeout 5 pipx run foo", "--copy"), "pipx downloads", "pypi:NAME==VERSION"),
        (("--command", "npm exec foo", "--copy"), "npm downloads", "npm:NAME@VERSION"),
        (("--command", "deno run -A npm:foo", "--copy"), "deno downloads", "npm:NAME@VERSION"),
        (("--command", "uv run server.py", "--copy"), "uv downloads", "pypi:NAME==VERSION"),
        (("--command", "npm run start", "--copy"), "npm starts a program of a project", "adopt FOLDER"),
        (("--command", "env node greeter.js"), "env only starts another program", "--command 'PROGRAM …'"),
    ],
)
def test_what_cannot_be_adopted_is_said_with_what_to_do(space, words, says, hint):
    found = space("adopt", *words)
    assert found.code in {1, 2, 3, 4}, found
    assert says in found.err
    assert hint in found.err.partition("hint:")[2]


def test_arguments_that_hold_no_secret_are_adopted(space):
    put(space.folder, {"tool.js": "console.log(1)"})
    arguments = "--max-tokens 500 --token ${TOKEN} --auth oauth --key-file ./key.pem --address http://ada@host.test"
    assert arguments in done(space, "adopt", "--command", f"node tool.js {arguments}", "--dry-run").replace("'", "")


def test_a_file_outside_of_the_workspace_is_copied_only_when_asked(space, tmp_path):
    place = put(tmp_path / "elsewhere", {"tool.js": "console.log(1)"}) / "tool.js"
    refused = space("adopt", "--command", f"node {place}")
    assert (refused.code, "is outside the workspace" in refused.err) == (1, True)
    done(space, "adopt", "--command", f"node {place}", "--copy", "--yes")
    assert (space.folder / "servers/tool/files/tool.js").read_text() == "console.log(1)"
    assert (
        'path = "servers/tool/files"\nstart = ["node", "tool.js"]'
        in (space.folder / "servers/tool/mcpfactory.toml").read_text()
    )


def test_python_of_a_command_is_that_of_the_machine_and_not_ours(space):
    """Wherever it is started: by `call`, by the stages, and by its own tests."""
    own = Path(sys.prefix)
    assert sys.prefix != sys.base_prefix, "the tests run in an environment"
    space.environ["PATH"] = os.pathsep.join([str(own / "bin"), "/usr/bin", "/bin"])
    apart = f"import os, sys\nassert {sys.prefix!r} not in (sys.prefix, *os.environ['PATH'].split('/bin')), 'ours'\n"
    put(
        space.folder / "tools/greeter",
        {"server.py": f"{apart}{PYTHON}\nmain()\n", "try.py": f"{apart}print('1..1\\nok 1 - a')\n"},
    )
    said = space.at(space.folder / "tools/greeter")
    said.environ.update(space.environ)
    done(said, "adopt", "--command", "python3 server.py", "--name", "greeter", "--yes")
    config = space.folder / "servers/greeter/mcpfactory.toml"
    config.write_text(config.read_text() + 'files = ["try.py"]\ntest = ["python3", "try.py"]\n')
    assert done(space, "call", "greeter", "greet", "--arg", "name=Ada").strip() == "Hello, Ada"
    space("pipeline", "run", "greeter")
    stages = state(space, "greeter")["stages"]
    assert stages["test"]["outcome"] == "passed", stages["test"]["message"]
    assert "does not start" not in stages["validate"]["message"]
