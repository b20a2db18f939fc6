from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from mcpfactory.main import main
from tests.pipeline.inprocess_executor import run_jobs_in_process
from tests.timeouts import TIMEOUT

ROOT = Path(__file__).resolve().parents[2]
BOOKSHOP = ROOT / "docs/examples/bookshop"


@dataclass(frozen=True)
class CommandResult:
    """Result of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


class CliProcess:
    """Runner of `mcpfactory …` as a process in one folder."""

    def __init__(self, folder: Path, environ: dict[str, str] | None = None) -> None:
        self.folder, self.environ = folder, environ or {}

    def at(self, folder: Path) -> CliProcess:
        """The same in another folder, with a clean environment."""
        return CliProcess(folder)

    def __call__(self, *command: str, timeout: float = TIMEOUT) -> CommandResult:
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
        return CommandResult(done.returncode, done.stdout, done.stderr)


class InProcessCli(CliProcess):
    """Runner of `main` and its jobs in this process, which is several times cheaper."""

    def at(self, folder: Path) -> InProcessCli:
        """The same in another folder, with a clean environment."""
        return InProcessCli(folder)

    def __call__(self, *command: str, timeout: float = TIMEOUT) -> CommandResult:
        if command[:1] in (("run",), ("login",)):  # the server's process takes over the streams
            return CliProcess(self.folder, self.environ)(*command, timeout=timeout)
        before, here, words = dict(os.environ), Path.cwd(), sys.argv
        out, err = io.StringIO(), io.StringIO()
        for name in [name for name in os.environ if name.startswith("MCPFACTORY_")]:
            del os.environ[name]
        os.environ.update({"MCPFACTORY_ACTOR": "tester", **self.environ})
        sys.argv = ["mcpfactory", *command]
        os.chdir(self.folder)
        try:
            with run_jobs_in_process(), redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
                main()
        finally:
            sys.argv = words
            os.chdir(here)
            os.environ.clear()
            os.environ.update(before)
        assert "Traceback" not in out.getvalue() + err.getvalue()
        return CommandResult(int(ended.value.code or 0), out.getvalue(), err.getvalue())


class WorkspaceCache:
    """Workspaces made by commands. The first worker that needs one makes it; the others copy it."""

    def __init__(self, kept: Path) -> None:
        self._kept = kept

    def copy(self, folder: Path, init: tuple[str, ...], *commands: tuple[str, ...]) -> Path:
        """Fill `folder` with the result of `mcpfactory init …` and the further commands."""
        words = repr((folder.name, init, commands))
        place = self._kept / hashlib.sha256(words.encode()).hexdigest()[:16]
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(place / "lock"):
            if not (place / "made").exists():
                shutil.rmtree(place / folder.name, ignore_errors=True)
                for words, at in (
                    (("init", folder.name, *init), place),
                    *((one, place / folder.name) for one in commands),
                ):
                    done = InProcessCli(at)(*words)
                    assert done.code == 0, done.err
                (place / "made").touch()
        shutil.copytree(place / folder.name, folder, symlinks=True)
        return folder


@pytest.fixture(scope="session")
def workspace_cache(tmp_path_factory: pytest.TempPathFactory) -> WorkspaceCache:
    base = tmp_path_factory.getbasetemp()
    return WorkspaceCache((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prepared")


@pytest.fixture(scope="session")
def document() -> str:
    return str(BOOKSHOP / "openapi.yaml")


@pytest.fixture(scope="session")
def service() -> Iterator[str]:
    """Run the real bookshop on a free port; yield its base URL."""
    command = [sys.executable, str(BOOKSHOP / "service.py"), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()


@pytest.fixture
def cli(tmp_path: Path) -> InProcessCli:
    """Return commands that run in this process, in an empty folder."""
    return InProcessCli(tmp_path)


@pytest.fixture
def empty(tmp_path: Path) -> InProcessCli:
    """Return commands that run in this process, in an empty folder."""
    return InProcessCli(tmp_path)


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory, workspace_cache: WorkspaceCache, document: str, service: str
) -> InProcessCli:
    """Return commands in a workspace with the server `bookshop`, shared by tests that only read it."""
    folder = tmp_path_factory.mktemp("cli") / "ws"
    workspace_cache.copy(folder, ("--factory", "index"), ("new", "--from-openapi", document, "--name", "bookshop"))
    return InProcessCli(folder, {"MCPF_BOOKSHOP_BASE_URL": service, "MCPF_BOOKSHOP_API_KEY": "bookworm"})
