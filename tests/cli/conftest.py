from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcpfactory.main import main
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BOOKSHOP = ROOT / "docs/examples/bookshop"


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class Shell:
    """Runs `mcpfactory …` as a process in one folder, as a person or a script would."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None) -> None:
        self.folder, self.environ = folder, environ or {}

    def at(self, folder: Path) -> Shell:
        """The same in another folder, with a clean environment."""
        return Shell(folder)

    def __call__(self, *command: str, timeout: float = PATIENCE) -> Done:
        environ = {key: value for key, value in os.environ.items() if not key.startswith("MCPFACTORY_")}
        done = subprocess.run(
            [sys.executable, "-m", "mcpfactory", *command],
            cwd=self.folder,
            env={**environ, "MCPFACTORY_ACTOR": "tester", **self.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return Done(done.returncode, done.stdout, done.stderr)


class Inside(Shell):
    """The same through `main` in this process: for tables of many short commands. Nothing of it is replaced."""

    def at(self, folder: Path) -> Inside:
        """The same in another folder, with a clean environment."""
        return Inside(folder)

    def __call__(self, *command: str, timeout: float = PATIENCE) -> Done:
        del timeout
        before, here, words = dict(os.environ), Path.cwd(), sys.argv
        out, err = io.StringIO(), io.StringIO()
        for name in [name for name in os.environ if name.startswith("MCPFACTORY_")]:
            del os.environ[name]
        os.environ.update({"MCPFACTORY_ACTOR": "tester", **self.environ})
        sys.argv = ["mcpfactory", *command]
        os.chdir(self.folder)
        try:
            with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main()
        finally:
            sys.argv = words
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)
        assert "Traceback" not in out.getvalue() + err.getvalue()
        return Done(int(ended.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="session")
def document() -> str:
    return str(BOOKSHOP / "openapi.yaml")


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """The real bookshop on a free port; gives its base URL."""
    command = [sys.executable, str(BOOKSHOP / "service.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    """An empty folder, and commands that run in this process."""
    return Inside(tmp_path)


@pytest.fixture
def empty(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, document: str, service: str) -> Shell:
    """A workspace with the server `bookshop`, shared by the tests that only read it."""
    folder = tmp_path_factory.mktemp("cli") / "ws"
    outside = Shell(folder.parent)
    assert outside("init", str(folder), "--factory", "index").code == 0
    shell = Shell(folder, {"BOOKSHOP_BASE_URL": service, "BOOKSHOP_API_KEY": "bookworm"})
    made = shell("new", "--from-openapi", document, "--name", "bookshop", "--json")
    assert made.code == 0, made.err
    return shell
