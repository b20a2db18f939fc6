"""What the code of a server does while it is built, tested and validated."""

from __future__ import annotations

import base64
import json
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.trials.gate.attempt import Attempt
from benchmarks.trials.gate.workspace import AttackedWorkspace, Done

_SECRET: Final = "s3cr3t-of-the-caller"
_SECRETS: Final = {
    "GITHUB_TOKEN": _SECRET,
    "UV_PUBLISH_TOKEN": _SECRET,
    "PYPI_TOKEN": _SECRET,
    "UV_PUBLISH_PASSWORD": _SECRET,
}
_COVERED: Final = base64.b64encode(_SECRET.encode()).decode()  # printed so, lest a filter of logs hides what was read
_TELL: Final = f"""
import base64, glob, os
def _found():
    texts = ["\\0".join(f"{{k}}={{v}}" for k, v in os.environ.items()).encode()] if %r else []
    for name in glob.glob("/proc/[0-9]*/environ") if %r else []:
        try:
            texts.append(open(name, "rb").read())
        except OSError:
            pass
    mark = {_SECRET[::-1]!r}[::-1].encode()
    return [base64.b64encode(mark).decode() for text in texts if mark in text]
"""
_BACKEND: Final = """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "backend"
backend-path = ["."]
"""


def _staged(space: AttackedWorkspace) -> tuple[Done, bool]:
    """Runs alpha; whether another candidate is in staging afterwards."""
    before = space.offered("staging")
    done = space.run("pipeline", "run", "alpha")
    return done, space.offered("staging") != before


def _refused(space: AttackedWorkspace) -> Iterator[str]:
    done, staged = _staged(space)
    if staged:
        yield "it is staged"
    if done.code == 70 or "Traceback" in done.err:
        yield "the run broke"


def undeclared_import(space: AttackedWorkspace) -> Iterator[str]:
    """Imports a package that is there only because pytest needs it."""
    space.edit(
        space.code(), "from mcpfactory_runtime import", "import iniconfig  # noqa\nfrom mcpfactory_runtime import"
    )
    yield from _refused(space)


def undeclared_later(space: AttackedWorkspace) -> Iterator[str]:
    """Imports a package of pytest's in the tool, when it is called."""
    space.edit(space.code(), "    return measure(text)", "    import pluggy  # noqa\n\n    return measure(text)")
    yield from _refused(space)


def test_group(space: AttackedWorkspace) -> Iterator[str]:
    """Imports a package that only the group of the tests declares."""
    file = space.server() / "pyproject.toml"
    file.write_text(file.read_text() + '\n[dependency-groups]\ntest = ["tomli-w"]\ndev = ["tomli-w"]\n')
    space.edit(space.code(), "from mcpfactory_runtime import", "import tomli_w  # noqa\nfrom mcpfactory_runtime import")
    yield from _refused(space)


def _broken_server(space: AttackedWorkspace) -> str:
    """Makes the tool of the server answer with nothing that it promises; gives the text of the good module."""
    good = space.code().read_text()
    space.edit(space.code(), "def main() -> None:", 'def main() -> None:\n    raise SystemExit("broken")')
    return good


def conftest_rewrites(space: AttackedWorkspace) -> Iterator[str]:
    """A conftest puts good code in the place of the installed module of a server that cannot start."""
    good = _broken_server(space)
    text = f"import alpha_mcp.server as it\nimport pathlib\npathlib.Path(it.__file__).write_text({good!r})\n"
    (space.server() / "tests/conftest.py").write_text(text)
    yield from _refused(space)


def conftest_plants(space: AttackedWorkspace) -> Iterator[str]:
    """A conftest plants a .pth file beside the installed module that mends a server that cannot start."""
    _broken_server(space)
    line = "import alpha_mcp.server as s; s.main = s.server.run"
    text = f"import alpha_mcp\nimport pathlib\n(pathlib.Path(alpha_mcp.__file__).parents[1] / 'm.pth').write_text({line!r} + chr(10))\n"
    (space.server() / "tests/conftest.py").write_text(text)
    yield from _refused(space)


def _writes(space: AttackedWorkspace, text: str) -> str:
    """Code that appends an approval of the newer candidate to the history, wherever it runs."""
    event = space.event(event="approved", channel="production", candidate=space.new, version="0.1.1", reason="x")
    line = json.dumps(event, sort_keys=True) + "\n"
    path = str(space.history())
    return f"{text}try:\n    open({path!r}, 'a').write({line!r})\nexcept OSError:\n    pass\n"


def _believed(space: AttackedWorkspace) -> Iterator[str]:
    """Runs, then promotes: the approval that code wrote must not count."""
    _staged(space)
    new = space.new
    space.run("pipeline", "verify", "alpha", "--repair")
    space.run("pipeline", "promote", "alpha", "--channel", "production", "--candidate", new)
    if space.offered() == new:
        yield "promoted on an approval that the server's code wrote"


def test_approves(space: AttackedWorkspace) -> Iterator[str]:
    """A test writes an approval into the workspace's history."""
    (space.server() / "tests/test_more.py").write_text(_writes(space, "def test_more() -> None:\n    pass\n\n"))
    yield from _believed(space)


def server_approves(space: AttackedWorkspace) -> Iterator[str]:
    """The server writes an approval into the workspace's history when it is imported."""
    space.code().write_text(_writes(space, space.code().read_text() + "\n"))
    yield from _believed(space)


def backend_approves(space: AttackedWorkspace) -> Iterator[str]:
    """The build backend writes an approval into the workspace's history."""
    _backend(space, _writes(space, ""))
    yield from _believed(space)


def _backend(space: AttackedWorkspace, text: str) -> None:
    file = space.server() / "pyproject.toml"
    start, rest = file.read_text().split("[project]", 1)
    del start
    file.write_text(f"{_BACKEND}\n[project]{rest}")
    (space.server() / "backend.py").write_text(f"from hatchling.build import *  # noqa\n{text}")


def test_writes_elsewhere(space: AttackedWorkspace) -> Iterator[str]:
    """A test rewrites another server, the workspace's policy and a wheel that production serves."""
    paths = [
        space.code("beta"),
        space.root / "mcpfactory.toml",
        space.wheel(name="beta"),
        space.state("beta"),
    ]
    before = [path.read_bytes() for path in paths]
    names = [str(path) for path in paths]
    text = (
        f"for name in {names!r}:\n    try:\n        open(name, 'ab').write(b'#')\n    except OSError:\n        pass\n"
    )
    (space.server() / "tests/test_more.py").write_text(f"{text}\ndef test_more() -> None:\n    pass\n")
    done, staged = _staged(space)
    for path, data in zip(paths, before, strict=True):
        if path.read_bytes() != data and (staged or done.code == 0):
            yield f"{path.relative_to(space.root)} is another, and the run passed"


def _leaks(space: AttackedWorkspace) -> Iterator[str]:
    """Runs with secrets in the caller's environment; what the server's code said stands in logs and reports."""
    done = space.run("pipeline", "run", "alpha", env=_SECRETS)
    places = [
        path for path in (space.root / "pipeline").rglob("*") if path.is_file() and "environments" not in path.parts
    ]
    if _COVERED in done.text or any(_COVERED.encode() in path.read_bytes() for path in places):
        yield "the server's code has the caller's secret"


def _tell(own: bool, parents: bool) -> str:
    return _TELL % (own, parents)


def test_reads_environment(space: AttackedWorkspace) -> Iterator[str]:
    """A test looks for tokens in its own environment."""
    (space.server() / "tests/test_more.py").write_text(
        _tell(True, False) + "\ndef test_more():\n    assert not _found(), _found()\n"
    )
    yield from _leaks(space)


def test_reads_parents(space: AttackedWorkspace) -> Iterator[str]:
    """A test looks for tokens in the environment of every process that it may read."""
    (space.server() / "tests/test_more.py").write_text(
        _tell(False, True) + "\ndef test_more():\n    assert not _found(), _found()\n"
    )
    yield from _leaks(space)


def server_reads_parents(space: AttackedWorkspace) -> Iterator[str]:
    """The server looks for tokens in the environment of every process when it starts, and says them."""
    tell = _tell(True, True) + "\nimport sys\nprint(_found(), file=sys.stderr)\n"
    space.edit(space.code(), "def main() -> None:", f"{tell}\ndef main() -> None:\n    raise SystemExit(str(_found()))")
    yield from _leaks(space)


def backend_reads_environment(space: AttackedWorkspace) -> Iterator[str]:
    """The build backend looks for tokens in its own environment."""
    _backend(space, _tell(True, False) + "\nraise SystemExit(str(_found()))\n")
    yield from _leaks(space)


def backend_reads_parents(space: AttackedWorkspace) -> Iterator[str]:
    """The build backend looks for tokens in the environment of every process that it may read."""
    _backend(space, _tell(False, True) + "\nraise SystemExit(str(_found()))\n")
    yield from _leaks(space)


def tool_reads_parents(space: AttackedWorkspace) -> Iterator[str]:
    """A tool answers with the tokens that it finds in the environment of every process."""
    space.edit(space.code(), "@server.tool(", f"{_tell(True, True)}\n@server.tool(")
    space.edit(space.code(), "    return measure(text)", "    raise ToolError(str(_found()))")
    yield from _leaks(space)


def link_packed(space: AttackedWorkspace) -> Iterator[str]:
    """A link in the package leads to a file of the machine, which would be packed."""
    secret = space.root.parent / f"key-{space.root.name}"
    secret.write_text(_SECRET)
    (space.server() / "src/alpha_mcp/data.txt").symlink_to(secret)
    _staged(space)
    yield from _packed(space)


def _packed(space: AttackedWorkspace) -> Iterator[str]:
    if any(_has(file) for file in (space.root / "pipeline/channels").rglob("*") if file.is_file()):
        yield "what is not of the server is in the files that staging serves"


def link_folder(space: AttackedWorkspace) -> Iterator[str]:
    """A link in the package leads to a folder of the machine, which would be packed."""
    secret = space.root.parent / f"keys-{space.root.name}"
    secret.mkdir()
    (secret / "id.txt").write_text(_SECRET)
    (space.server() / "src/alpha_mcp/keys").symlink_to(secret)
    _staged(space)
    yield from _packed(space)


def _has(file: Path) -> bool:
    """Whether a wheel or a source distribution has the secret in it."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            return any(_SECRET.encode() in archive.read(name) for name in archive.namelist())
    if file.name.endswith(".tar.gz"):
        with tarfile.open(file) as archive:
            parts = [archive.extractfile(member) for member in archive.getmembers() if member.isfile()]
            return any(part is not None and _SECRET.encode() in part.read() for part in parts)
    return False


def honest_change(space: AttackedWorkspace) -> Iterator[str]:
    """Changes a text of the server, and runs."""
    space.edit(space.code(), "Count words and sentences of a text", "Count the words and the sentences of a text")
    done, staged = _staged(space)
    if done.code or not staged:
        yield done.text


ATTEMPTS: Final = (
    Attempt("undeclared import", "not staged", undeclared_import, slow=True),
    Attempt("undeclared import in a tool", "not staged", undeclared_later, slow=True),
    Attempt("import from the group of the tests", "not staged", test_group, slow=True),
    Attempt("conftest rewrites the installed module", "not staged", conftest_rewrites, slow=True),
    Attempt("conftest plants a .pth file", "not staged", conftest_plants, slow=True),
    Attempt("a test writes an approval", "not believed", test_approves, slow=True),
    Attempt("the server writes an approval", "not believed", server_approves, slow=True),
    Attempt("the build backend writes an approval", "not believed", backend_approves, slow=True),
    Attempt("a test writes into the workspace", "not possible, or the run fails", test_writes_elsewhere, slow=True),
    Attempt("secrets in a test's environment", "not there", test_reads_environment, slow=True),
    Attempt("secrets from the environ of a test's parents", "not readable", test_reads_parents, slow=True),
    Attempt("secrets from the environ of a server's parents", "not readable", server_reads_parents, slow=True),
    Attempt("secrets from the environ in a tool", "not readable", tool_reads_parents, slow=True),
    Attempt("UV_PUBLISH_TOKEN in a build backend", "not there", backend_reads_environment, slow=True),
    Attempt("secrets from the environ of a backend's parents", "not readable", backend_reads_parents, slow=True),
    Attempt("link to a file in the package", "not packed", link_packed, slow=True),
    Attempt("link to a folder in the package", "not packed", link_folder, slow=True),
    Attempt("an honest change", "staged", honest_change, slow=True, honest=True),
)
