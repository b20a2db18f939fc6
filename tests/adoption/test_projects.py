"""Projects in the workspace, in Python and for Node.js: recognised, built, tested by their own command, and started."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.adoption.conftest import done, put, state
from tests.adoption.registries import node_files
from tests.adoption.test_packages import PYTHON
from tests.written_packages import tarball, wheel

pytestmark = pytest.mark.xdist_group("adopted_projects")

PYPROJECT = """[project]
name = "acme-greeter"
version = "0.3.0"
dependencies = ["acme-words"]
scripts = { acme-greeter = "acme_greeter:main" }

[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
# A build backend that needs nothing: the wheel is written by hand, as a project may.
BACKEND = """
import sys
sys.path.insert(0, ".")

def build_wheel(folder, config_settings=None, metadata_directory=None):
    import base64, hashlib, zipfile
    info = "acme_greeter-0.3.0.dist-info"
    files = {"acme_greeter.py": open("acme_greeter.py").read(),
             f"{info}/METADATA": "Metadata-Version: 2.1\\nName: acme-greeter\\nVersion: 0.3.0\\nRequires-Dist: acme-words\\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\\nGenerator: hand 1\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
             f"{info}/entry_points.txt": "[console_scripts]\\nacme-greeter = acme_greeter:main\\n"}
    rows = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(t.encode()).digest()).rstrip(b'=').decode()},{len(t.encode())}\\n" for n, t in files.items())
    name = "acme_greeter-0.3.0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as out:
        for path, text in {**files, f"{info}/RECORD": rows + f"{info}/RECORD,,\\n"}.items():
            out.writestr(zipfile.ZipInfo(path), text)
    return name

def build_sdist(folder, config_settings=None):
    import tarfile, os
    name = "acme_greeter-0.3.0.tar.gz"
    with tarfile.open(f"{folder}/{name}", "w:gz") as out:
        for path in ("pyproject.toml", "backend.py", "acme_greeter.py"):
            out.add(path, f"acme_greeter-0.3.0/{path}")
    return name
"""
SDK = '''"""Greetings."""

import os

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

mcp = MCPServer("greeter")


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
def greet(name: str) -> str:
    """Greet a person by name."""
    return f"Hello, {name}"


def main() -> None:
    os.environ.get("GREETER_TOKEN")
    mcp.run()
'''
# A build backend that needs nothing, and shows that it was run.
EVIL = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "evil"\nbackend-path = ["."]\n',
    "evil.py": 'open("PLACE", "w").close()\n',
}


def evil_files(ran: Path) -> dict[str, str]:
    return {path: text.replace("PLACE", str(ran)) for path, text in EVIL.items()}


CHECK = """const {spawnSync} = require("child_process");
const done = spawnSync(process.execPath, ["dist/greeter.js"], {input: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\\n'});
const ok = done.stdout.toString().includes("greet") && EXPECTED;
console.log("TAP version 13\\n1..1\\n" + (ok ? "ok" : "not ok") + " 1 - lists its tool");
process.exit(ok ? 0 : 1);
"""


def node_project(expected: str = "true") -> dict[str, str]:
    package = {
        "name": "greeter", "version": "2.0.0", "bin": "dist/greeter.js", "files": ["dist"],
        "scripts": {"build": "node build.js", "test": "node check.js", "prepack": "node -e \"process.exit(7)\""},
    }  # fmt: skip
    build = 'const fs = require("fs"); fs.mkdirSync("dist"); for (const f of ["greeter.js", "words.json"]) fs.copyFileSync("src/" + f, "dist/" + f);'
    sources = {f"src/{path}": text for path, text in node_files("2.0.0").items()}
    return {
        "package.json": json.dumps(package),
        "build.js": build,
        "check.js": build + CHECK.replace("EXPECTED", expected),
        **sources,
    }


def test_a_project_of_node_is_built_packed_tested_and_started(space):
    place = put(space.folder / "apps/greeter", node_project())
    shown = done(space, "adopt", "apps/greeter", "--yes")
    assert "built by npm run build" in shown
    assert "tests: npm test" in shown
    before = sorted(path for path in place.rglob("*") if path.is_file())
    done(space, "pipeline", "run", "greeter", "--until", "test")
    found = state(space, "greeter")
    assert found["stages"]["test"]["message"] == "1 passed (TAP)"
    assert found["candidates"][found["candidate"]]["version"] == "2.0.0"
    assert "package.tgz" in found["candidates"][found["candidate"]]["files"]
    assert done(space, "call", "greeter", "greet", "--arg", "name=Ada").strip() == "Hello, Ada (3)"
    assert sorted(path for path in place.rglob("*") if path.is_file()) == before
    put(place, node_project("false"))
    assert space("pipeline", "run", "greeter", "--until", "test").code == 1
    assert state(space, "greeter")["stages"]["test"]["outcome"] == "failed"
    assert "lists its tool" in state(space, "greeter")["stages"]["test"]["message"]


def test_a_project_of_python_is_built_and_started_with_what_its_lock_names(space, registry):
    registry[0].add_wheel("acme-words", "1.0", wheel("acme-words", "1.0", {"acme_words.py": ""}))
    space.environ.update(registry[1])
    place = put(
        space.folder / "apps/py", {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, "acme_greeter.py": PYTHON}
    )
    shown = done(space, "adopt", "apps/py", "--yes")
    assert "1 package in requirements.lock, each by its hash" in shown
    assert 'environment = ["GREETER_TOKEN"]' in shown
    done(space, "pipeline", "run", "acme-greeter", "--until", "build")
    files = state(space, "acme-greeter")["candidates"][state(space, "acme-greeter")["candidate"]]["files"]
    assert {"acme_greeter-0.3.0-py3-none-any.whl", "requirements.lock"} < set(files)
    assert done(space, "call", "acme-greeter", "greet", "--arg", "name=Ada").strip() == "Hello, Ada"
    assert not (place / "dist").exists()


def test_a_project_of_python_is_published_as_what_was_checked(space):
    del space.environ["UV_CACHE_DIR"]  # the SDK comes from the index, so the cache of the machine is used
    files = {
        "pyproject.toml": PYPROJECT,
        "backend.py": BACKEND.replace("acme-words\\n", "acme-words\\nSummary: Greets.\\n\\nGreetings."),
    }
    files = {path: text.replace("acme-words", "mcp>=2,<3") for path, text in files.items()}
    put(space.folder / "apps/py", {**files, "acme_greeter.py": SDK})
    done(space, "adopt", "apps/py", "--yes")
    done(space, "pipeline", "run", "acme-greeter")
    for action in ("approve", "promote"):
        done(space, "pipeline", action, "acme-greeter", "--channel", "production")
    done(space, "publish", "acme-greeter", "--target", "pypi", "--target", "sbom", "--check")
    done(space, "publish", "acme-greeter", "--target", "mcpb")
    candidate = space.folder / "pipeline/artifacts/acme-greeter" / state(space, "acme-greeter")["candidate"]
    with zipfile.ZipFile(next(candidate.glob("publish/mcpb/*.mcpb"))) as bundle:
        (name,) = (name for name in bundle.namelist() if name.startswith("wheels/"))
        assert bundle.read(name) == (candidate / name.removeprefix("wheels/")).read_bytes()
        manifest = json.loads(bundle.read("manifest.json"))
    assert [tool["name"] for tool in manifest["tools"]] == ["greet"]
    assert list(manifest["user_config"]) == ["greeter_token"]


@pytest.mark.parametrize(
    "needs",
    [("evil @ file://PLACE",), ("acme-words\n-e PLACE",), ("evil @ git+file://PLACE",), ("acme-words --find-links PLACE",),
     ("x @ http://127.0.0.1:9/${HOME}/x-1.0-py3-none-any.whl",)],
)  # fmt: skip
def test_what_is_no_wheel_is_named_and_not_built(space, registry, needs, tmp_path):
    space.environ.update(registry[1])
    registry[0].add_wheel("acme-words", "1.0", wheel("acme-words", "1.0", {"acme_words.py": ""}))
    evil = put(tmp_path / "evil", evil_files(tmp_path / "ran"))
    needs = [one.replace("PLACE", str(evil)) for one in needs]
    text = PYPROJECT.replace('["acme-words"]', json.dumps(needs))
    put(space.folder / "apps/py", {"pyproject.toml": text, "backend.py": BACKEND, "acme_greeter.py": PYTHON})
    found = space("adopt", "apps/py", "--dry-run")
    assert found.code != 0
    assert (needs[0] in found.err or repr(needs[0]) in found.err, "hint:" in found.err) == (True, True)
    assert not (tmp_path / "ran").exists()


def test_what_a_dependency_depends_on_is_not_built(space, registry):
    space.environ.update(registry[1])
    registry[0].add_wheel("acme-words", "1.0", wheel("acme-words", "1.0", {"w.py": ""}, needs=("acme-evil",)))
    ran = space.folder / "ran"
    registry[0].wheels["acme-evil"] = {"acme_evil-1.0.tar.gz": tarball(evil_files(ran), "acme_evil-1.0")}
    put(space.folder / "apps/py", {"pyproject.toml": PYPROJECT, "backend.py": BACKEND, "acme_greeter.py": PYTHON})
    found = space("adopt", "apps/py", "--dry-run")
    assert (found.code, "there is no wheel of acme-evil" in found.err) == (1, True), found.err
    assert not ran.exists()


ASKED = {
    "extra": '[project.optional-dependencies]\ntest = ["-e", "PLACE"]\n',
    "editable": '[dependency-groups]\ntest = ["evil"]\n[tool.uv.sources]\nevil = { path = "PLACE", editable = true }\n',
    "workspace": '[dependency-groups]\ntest = ["evil"]\n[tool.uv.sources]\nevil = { workspace = true }\n[tool.uv.workspace]\nmembers = ["evil"]\n',
    "address": '[dependency-groups]\ntest = ["evil @ file://PLACE"]\n',
}


@pytest.mark.parametrize(
    ("how", "stated"),  # with metadata that nothing has to be run for, and without
    [("extra", False), ("editable", True), ("workspace", False), ("address", True)],
)
def test_what_the_tests_of_a_project_ask_for_is_not_built(space, registry, tmp_path, how, stated):
    space.environ.update(registry[1])
    for name in ("acme-words", "pytest"):
        registry[0].add_wheel(name, "1.0", wheel(name, "1.0", {}))
    evil = evil_files(tmp_path / "ran")
    if stated:
        evil["pyproject.toml"] += '[project]\nname = "evil"\nversion = "1.0"\n'
    place = put(tmp_path / "evil", evil)
    text = PYPROJECT + ASKED[how].replace("PLACE", str(place))
    files = {"pyproject.toml": text, "backend.py": BACKEND, "acme_greeter.py": PYTHON, "test_greeter.py": ""}
    put(space.folder / "apps/py", files)
    if how == "workspace":
        put(space.folder / "apps/py/evil", evil)
    done(space, "adopt", "apps/py", "--yes")
    assert space("pipeline", "run", "acme-greeter", "--until", "test").code == 1
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"README.md": ""}, "has neither pyproject.toml nor package.json"),
        ({"pyproject.toml": "[tool.x]\n"}, "does not name the project"),
        ({"pyproject.toml": '[project]\nname = "a"\ndynamic = ["dependencies"]\n'}, "does not run the build backend"),
        ({"pyproject.toml": '[project]\nname = "a"\n'}, "it has neither [project.scripts] nor a __main__.py"),
        ({"package.json": "{"}, "cannot be read"),
        ({"package.json": '{"name": "a"}'}, "package.json has neither bin nor main"),
    ],
)
def test_a_folder_that_does_not_say_how_it_starts_is_refused(space, files, says):
    put(space.folder / "apps/odd", files)
    found = space("adopt", "apps/odd", "--yes")
    assert found.code != 0
    assert says in found.err
    assert not [*space.folder.glob("servers/*/mcpfactory.toml")]


def test_a_project_outside_of_the_workspace_is_copied_only_when_asked(space, tmp_path):
    place = put(tmp_path / "elsewhere", node_project())
    refused = space("adopt", str(place), "--yes")
    assert (refused.code, "is outside the workspace" in refused.err) == (1, True)
    done(space, "adopt", str(place), "--copy", "--name", "far", "--yes")
    assert (space.folder / "servers/far/source/src/greeter.js").is_file()
    assert 'path = "servers/far/source"' in (space.folder / "servers/far/mcpfactory.toml").read_text()
