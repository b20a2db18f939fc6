"""What a server's code reaches from its sandbox: its own folder and the system, at every level that this machine has."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcpfactory.commands.pipeline_run import warn_missing_isolation
from mcpfactory_pipeline.base.errors import ConfigError, StageError
from mcpfactory_pipeline.build.programs import job_environ, uv_environ
from mcpfactory_pipeline.isolation import levels
from mcpfactory_pipeline.isolation.container_client import container_client_command
from mcpfactory_pipeline.isolation.landlock import seccomp_program
from mcpfactory_pipeline.isolation.levels import Sandbox, clean_environ, interpreter_paths, make_sandbox
from mcpfactory_pipeline.plan.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.run.executor import LocalExecutor
from mcpfactory_pipeline.run.job import make_job
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.stages import STAGES, workspace_stages
from mcpfactory_pipeline.state.store import Store
from tests.pipeline import fake_stages
from tests.pipeline.fake_stages import add_server
from tests.pipeline.inprocess_executor import InProcessExecutor
from tests.pipeline.staged_workspace import configured
from tests.skip_conditions import needs

SECRET = "canary-9c3f"

# Tries what it is told, and says as JSON what came of each.
HOSTILE = """
import json, os, resource, signal, socket, sys
def attempt(act):
    try:
        return act() or "done"
    except (OSError, KeyError) as error:
        return type(error).__name__
def read(path):
    with open(path, errors="replace") as stream:
        return stream.read()
def write(path, how="w"):
    with open(path, how) as stream:
        stream.write("forged")
def connect(path):
    with socket.socket(socket.AF_UNIX) as unix:
        unix.connect(path)
def send(path):
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"forged", path)
def limit(process):
    resource.prlimit(process, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
def pair():
    for one in socket.socketpair():
        one.close()
def listen():
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
outside, parent, unix, shared, terminal = sys.argv[1], int(sys.argv[2]), *sys.argv[3:]
print(json.dumps({
    "own": attempt(lambda: write("own.txt")),
    "home": attempt(lambda: write(os.path.join(os.environ["HOME"], "x"))),
    "temporary": attempt(lambda: write(os.path.join(os.environ["TMPDIR"], "x"))),
    "null": attempt(lambda: write(os.devnull)),
    "write": attempt(lambda: write(outside)),
    "append": attempt(lambda: write(outside, "a")),
    "cut": attempt(lambda: os.truncate(outside, 0)),
    "remove": attempt(lambda: os.remove(outside)),
    "rename": attempt(lambda: os.rename(outside, "taken.txt")),
    "link": attempt(lambda: os.link(outside, "linked.txt")),
    "new": attempt(lambda: write(outside + ".new")),
    "read": attempt(lambda: read(outside)),
    "symlink": attempt(lambda: os.symlink(outside, "way") or read("way")),
    "parent": attempt(lambda: read(f"/proc/{parent}/environ")),
    "signal": attempt(lambda: os.kill(parent, 0)),
    "variable": attempt(lambda: os.environ["CALLER_TOKEN"]),
    "unix": attempt(lambda: connect(unix)),
    "datagram": attempt(lambda: send(unix + ".datagrams")),
    "shared": attempt(lambda: read(shared)),
    "terminal": attempt(lambda: write(terminal)),
    "limits": attempt(lambda: limit(parent)),
    "own limits": attempt(lambda: limit(0)),
    "pair": attempt(pair),
    "listen": attempt(listen),
}))
"""

OPEN = {"own", "home", "temporary", "null", "own limits", "pair", "listen"}


def attempts(sandbox: Sandbox, outside: Path) -> dict[str, str]:
    words = [os.path.realpath(sys.executable), "-I", "-c", HOSTILE, str(outside), str(os.getpid())]
    with other_program() as places:
        command = sandbox.command([*words, *places])
        done = subprocess.run(
            command, cwd=sandbox.folder, env=dict(sandbox.environ), capture_output=True, text=True, check=False
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@contextmanager
def other_program() -> Iterator[tuple[str, str, str]]:
    """What another program of the user has: a socket that listens, shared memory with a secret, and a terminal. Their paths."""
    terminal, own = os.openpty()
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX) as listening,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        listening.bind(f"{folder}/socket")  # a path of a socket has 107 bytes at most
        listening.listen()
        datagrams.bind(f"{folder}/socket.datagrams")
        shared = Path(f"/dev/shm/{Path(folder).name}")
        shared.write_text(SECRET)
        try:
            yield f"{folder}/socket", str(shared), os.ttyname(own)
        finally:
            shared.unlink()
            os.close(terminal)
            os.close(own)


@pytest.fixture
def outside(tmp_path, monkeypatch) -> Path:
    """A file beside the sandbox, as the history is; the caller has a token."""
    monkeypatch.setenv("CALLER_TOKEN", SECRET)
    (tmp_path / "work").mkdir()
    (tmp_path / "history.jsonl").write_text(f"{SECRET}\n")
    return tmp_path / "history.jsonl"


@pytest.mark.parametrize(
    "level", [pytest.param("landlock", marks=needs("landlock")), pytest.param("bubblewrap", marks=needs("bubblewrap"))]
)
def test_code_reaches_its_own_folder_and_neither_files_nor_processes_outside(outside, level):
    sandbox = make_sandbox({"isolation": level}, outside.parent / "work")
    found = attempts(sandbox, outside)
    assert {name for name, came in found.items() if not came.endswith("Error")} == OPEN, found
    assert all(found[name] == "done" for name in OPEN)
    assert SECRET not in json.dumps(found)
    assert outside.read_text() == f"{SECRET}\n"
    assert sorted(path.name for path in outside.parent.iterdir()) == ["history.jsonl", "work"]


@needs("linux")
def test_without_a_level_there_is_a_copy_and_a_clean_environment_and_no_wall(outside):
    found = attempts(make_sandbox({"isolation": "none"}, outside.parent / "work"), outside)
    assert found["variable"] == "KeyError"
    assert found["append"] == "done", "which is why what changed is looked for afterwards"


@needs("landlock")
def test_what_is_listed_can_be_read_and_not_written(outside):
    sandbox = make_sandbox({"isolation": "landlock"}, outside.parent / "work", readable=(outside,))
    found = attempts(sandbox, outside)
    assert found["read"] == f"{SECRET}\n"
    assert {found[name] for name in ("write", "append", "cut", "remove", "rename")} <= {"PermissionError", "OSError"}


def answer_of(program: bytes, call: dict[int, int]) -> int:
    """What a filter answers to a call: `call` has its words by their offset in struct seccomp_data."""
    rows = list(struct.iter_unpack("=HBBI", program))
    at = word = 0
    while True:
        operation, yes, no, operand = rows[at]
        if operation == 0x06:
            return operand
        if operation == 0x20:
            word, skip = call[operand], 0
        elif operation == 0x54:
            word, skip = word & operand, 0
        else:
            skip = yes if (word == operand if operation == 0x15 else word & operand) else no
        at += 1 + skip


ALLOWED = 0x7FFF0000


@pytest.mark.parametrize(
    ("machine", "architecture", "connect", "pair", "limits"),
    [("x86_64", 0xC000003E, 41, 53, 302), ("aarch64", 0xC00000B7, 198, 199, 261)],
)
def test_unix_sockets_are_refused_and_so_is_every_way_around(machine, architecture, connect, pair, limits):
    def allowed(number: int, first: int, second: int = 0, *, of: int = architecture, network: bool = True) -> bool:
        return (
            answer_of(seccomp_program(machine, network=network), {0: number, 4: of, 16: first, 24: second}) == ALLOWED
        )

    assert allowed(connect, 2)
    assert allowed(connect, 10)
    assert allowed(pair, 1, 0o2000001), "a pair of streams that programs which are started do not inherit"
    assert not allowed(pair, 1, 2)
    assert not allowed(pair, 1, 3), "which Linux takes for 2"
    assert allowed(limits, 0)
    assert allowed(0, 1)
    assert not allowed(connect, 1)
    assert not allowed(connect | 0x40000000, 1), "the calls of x32"
    assert not allowed(102, 1, of=0x40000003), "socketcall of 32 bits"
    assert not allowed(425, 8), "io_uring"
    assert not allowed(limits, 4711), "limits of another process"
    assert allowed(452, 1)
    assert not allowed(452, 1, network=False), "fchmodat2"
    assert allowed(limits, 0, network=False)
    assert not allowed(limits, 4711, network=False)
    assert not any(allowed(connect, family, network=False) for family in (1, 2, 10))
    assert allowed(pair, 1, 1, network=False)


@needs("landlock")
def test_the_rules_of_a_sandbox_are_out_of_its_reach(outside):
    sandbox = make_sandbox({"isolation": "landlock"}, outside.parent / "work")
    assert attempts(sandbox, sandbox.reach.rules)["write"] == "PermissionError"


def test_auto_takes_the_first_level_that_is_here_and_never_a_container(monkeypatch):
    def without(*names: str) -> str:
        table = {
            name: level if name not in names else levels.IsolationLevel(name, level.says, lambda: "gone", level.command)
            for name, level in levels.LEVELS.items()
        }
        monkeypatch.setattr(levels, "LEVELS", table)
        return levels.find_isolation_level("auto").name

    here = [name for name in ("landlock", "bubblewrap") if not levels.LEVELS[name].lacking()]
    assert without() == [*here, "none"][0]
    assert without("landlock", "bubblewrap") == "none"


class HereLocal(LocalExecutor):
    """The executor for this machine, with its jobs in this process."""

    run = InProcessExecutor.run


@pytest.fixture
def bare(monkeypatch):
    """A machine on which nothing keeps code apart."""
    gone = {name: levels.IsolationLevel(name, "", lambda: "it is gone", levels.NONE.command) for name in levels.LEVELS}
    monkeypatch.setattr(levels, "LEVELS", {**gone, "none": levels.NONE})


def test_where_a_level_is_required_a_run_on_a_bare_machine_is_refused_before_anything_runs(workspace, bare):
    add_server(workspace.root, "books")
    space = configured(workspace, 'isolation = "required"')
    with pytest.raises(
        StageError,
        match="no isolation level is available on this machine: landlock: it is gone; bubblewrap: it is gone",
    ) as told:
        run_pipeline(
            space, stages=[replace(stage, sandboxed=True) for stage in fake_stages.STAGES], executor=HereLocal(1)
        )
    assert told.value.hint
    assert Store(space).history("books") == []


def test_what_a_run_is_kept_apart_by_is_told_in_its_first_event_and_its_outcome(workspace, bare):
    add_server(workspace.root, "books")
    told = []
    reporter = SimpleNamespace(emit=told.append, close=lambda: None)
    stages = [replace(stage, sandboxed=True) for stage in fake_stages.STAGES]
    outcome = run_pipeline(workspace, stages=stages, executor=HereLocal(1), reporter=reporter)
    assert (told[0].to_json()["isolation"], outcome.isolation) == ("none", "none")


def test_nothing_that_keeps_code_apart_is_warned_of_where_nobody_chose_it(workspace, bare, capsys):
    for ran, text in ((0, ""), (1, ""), (1, 'isolation = "none"')):
        warn_missing_isolation(configured(workspace, text), SimpleNamespace(ran=ran, isolation="none"))
        told = capsys.readouterr().err
        assert ("ran without isolation (landlock: it is gone" in told) == (ran == 1 and not text)


def test_a_level_that_is_demanded_and_not_to_be_had_breaks_the_stage(monkeypatch):
    gone = levels.IsolationLevel("landlock", "", lambda: "it is gone", levels.NONE.command)
    monkeypatch.setattr(levels, "LEVELS", {**levels.LEVELS, "landlock": gone})
    with pytest.raises(StageError, match="it is gone") as told:
        levels.find_isolation_level("landlock")
    assert told.value.hint


def test_a_container_gets_the_folders_and_the_variables_and_the_values_stand_in_no_argument(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///there.sock")
    settings = {"isolation": "container", "container": {"program": "podman", "image": "python:3.13"}}
    monkeypatch.setattr(levels, "_container_lacking", lambda: "")
    monkeypatch.setitem(
        levels.LEVELS, "container", levels.IsolationLevel("container", "", lambda: "", levels.LEVELS["container"].command)
    )  # fmt: skip
    sandbox = make_sandbox(settings, tmp_path, readable=(Path(__file__).parent,))
    words = sandbox.command(["python", "-m", "hello"])
    command, environ = container_client_command(words[words.index("-S") + 2 :], {**sandbox.environ, "API_KEY": SECRET})
    assert command[:3] == ["podman", "run", "--rm"]
    assert command[-4:] == ["python:3.13", "python", "-m", "hello"]
    assert f"type=bind,source={sandbox.folder},target={sandbox.folder}" in command
    assert f"type=bind,source={Path(__file__).parent},target={Path(__file__).parent},readonly" in command
    assert command[command.index("API_KEY") - 1] == "--env"
    assert f"HOME={sandbox.folder / 'home'}" in command, (
        "the program's home is the sandbox, the client's is the caller's"
    )
    assert SECRET not in " ".join(command)
    assert environ["API_KEY"] == SECRET
    assert environ["DOCKER_HOST"] == "unix:///there.sock"
    assert "DOCKER_HOST" not in " ".join(command)
    assert not {"PATH", "--privileged"} & set(command)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('isolation = "chroot"', 'pipeline.isolation: "chroot"'),
        ('isolation = "container"\n[pipeline.container]\nimages = "x"', "images"),
        ('isolation = "container"\n[pipeline.container]\nimage = 1', "pipeline.container"),
    ],
)
def test_what_the_workspace_says_of_isolation_is_read_strictly(workspace, text, said):
    with pytest.raises(ConfigError, match=said):
        workspace_stages(configured(workspace, text))


def test_the_stages_that_run_code_of_a_server_are_told_and_due_again(workspace):
    stages = {stage.name: stage for stage in workspace_stages(configured(workspace, 'isolation = "bubblewrap"'))}
    usual = {stage.name: stage for stage in workspace_stages(configured(workspace))}
    changed = {name for name in usual if usual[name].stamp != stages[name].stamp}
    assert changed == {stage.name for stage in STAGES if stage.sandboxed} == {"build", "test", "validate"}
    assert all(stages[name].settings["isolation"] == "bubblewrap" for name in changed)


def test_programs_of_a_stage_see_no_token_of_the_caller(monkeypatch, tmp_path):
    for name in (
        "GITHUB_TOKEN",
        "UV_PUBLISH_TOKEN",
        "UV_PUBLISH_PASSWORD",
        "TWINE_PASSWORD",
        "UV_INDEX_PRIVATE_PASSWORD",
    ):
        monkeypatch.setenv(name, SECRET)
    assert SECRET not in clean_environ(tmp_path).values()
    assert {name for name, value in uv_environ().items() if value == SECRET} == {"UV_INDEX_PRIVATE_PASSWORD"}
    assert {name for name, value in job_environ().items() if value == SECRET} == {"UV_INDEX_PRIVATE_PASSWORD"}


@needs("linux")
def test_a_process_that_hides_is_closed_to_other_programs_of_its_user():
    code = (
        "import ctypes\nfrom mcpfactory_pipeline.isolation.processes import hide_process\n"
        "get = lambda: ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)\n"  # PR_GET_DUMPABLE
        "print(get()); hide_process(); print(get())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "0"]


def test_stages_run_with_a_reduced_environment_and_a_workspaces_own_with_all_of_it(workspace, monkeypatch):
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    add_server(workspace.root, "books")
    executor = LocalExecutor(1)
    seen = {}
    for name, caller in (("books", False), ("own", True)):
        stage = Stage(name, (), ("source",), (), 1, f"{__name__}:show", caller_environ=caller)
        work = workspace.root / name
        work.mkdir()
        inputs = StageInputs("books", "p", workspace.root, workspace.root, work, workspace.artifacts, work)
        seen[name] = executor.run(make_job(stage, inputs), log=work / "log").message
    assert seen == {"books": "", "own": SECRET}


def show(_inputs: StageInputs) -> StageOutputs:
    """A stage that says which token it sees."""
    return StageOutputs("passed", os.environ.get("GITHUB_TOKEN", ""))


def test_a_module_of_every_start_that_is_a_link_to_elsewhere_can_be_read(tmp_path, monkeypatch):
    """Debian's standard library has `sitecustomize.py` in /etc."""
    elsewhere, library = tmp_path / "etc.py", tmp_path / "lib"
    elsewhere.write_text("")
    library.mkdir()
    (library / "sitecustomize.py").symlink_to(elsewhere)
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(library))
    assert str(elsewhere) in interpreter_paths()
