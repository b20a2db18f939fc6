"""Fast stages for tests of the pipeline. They run in separate processes, as all stages do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_bytes, hash_named_texts
from mcpfactory_pipeline.isolation.levels import make_sandbox
from mcpfactory_pipeline.plan.stage import BuiltFiles, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.workspace.policy import ChannelPolicy
from tests.timeouts import TIMEOUT, wait_until


def note(inputs: StageInputs, stage: str) -> str:
    """Record the end of a stage outside the pipeline's history; return the written token."""
    token = f"{stage}:{inputs.work.name}"
    descriptor = os.open(inputs.root / "ledger.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(descriptor, f"{token}\n".encode())
    os.close(descriptor)
    return token


def build(inputs: StageInputs) -> StageOutputs:
    """Write a "wheel" with the text of source.txt, and a version for each text: 1.0 for "one", and 2.0 for "2.0"."""
    data = (inputs.folder / "source.txt").read_bytes()
    version = "1.0" if data == b"one" else f"1.0.post{int(hash_bytes(data)[-8:], 16)}"
    version = data.decode() if data.replace(b".", b"").isdigit() else version
    name = f"{inputs.server.replace('-', '_')}-{version}-py3-none-any.whl"
    files = {name: hash_bytes(data)}
    candidate = hash_named_texts(files).removeprefix("sha256:")[:16]
    folder = inputs.artifacts / inputs.server / candidate
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return StageOutputs(
        "passed", "built", {"token": note(inputs, "build")}, built=BuiltFiles(candidate, version, files)
    )


def test(inputs: StageInputs) -> StageOutputs:
    """Return the outcome in outcome.txt; `broken` raises, `dead` kills the process, `bug` is a bug in the stage."""
    wanted = (inputs.folder / "tests" / "outcome.txt").read_text().strip()
    print(f"the outcome is to be {wanted}")
    if wanted == "broken":
        raise StageError("the machine is broken", hint="mend it")
    if wanted == "dead":
        os.kill(os.getpid(), signal.SIGKILL)
    if wanted == "worker dies":  # the parent, which runs a cluster worker; the second attempt succeeds
        if not (inputs.root / "died").exists():
            (inputs.root / "died").write_text("")
            supervisor = Path(f"/proc/{os.getppid()}/stat").read_text()
            os.kill(int(supervisor.rpartition(")")[2].split()[1]), signal.SIGKILL)
            signal.pause()
        wanted = "passed"
    if wanted.startswith("leaves "):
        leave_daemon(inputs, wanted.split()[1])
        wanted = "takes 200"
    if wanted.startswith("takes "):
        held = b"x" * (int(wanted.split()[1]) * 2**20)  # MiB; written bytes are resident
        signal.pause()
        raise AssertionError(len(held))
    if wanted == "bug":
        raise ZeroDivisionError("a bug")
    if wanted == "held":
        lock = FileLock(inputs.root / "alive.lock")
        lock.acquire()
        (inputs.root / "holding").write_text("")
        signal.pause()
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / "report.txt").write_text("seen")
    return StageOutputs(wanted, f"it {wanted} in {inputs.root}", {"token": note(inputs, "test")})


# A daemon in a separate session that holds a lock while it runs. The alarm is its timeout.
DAEMON = """
import fcntl, os, signal, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.alarm(600)
        os.chdir(sys.argv[1])
        fcntl.flock(os.open("alive.lock", os.O_RDWR | os.O_CREAT), fcntl.LOCK_EX)
        open("holding", "w").close()
        signal.pause()
    os._exit(0)
os.wait()
"""


def leave_daemon(inputs: StageInputs, level: str) -> None:
    """Start a daemon in a sandbox of a level."""
    sandbox = make_sandbox({"isolation": level}, inputs.work, writable=(inputs.root,))
    command = sandbox.command([os.path.realpath(sys.executable), "-I", "-S", "-c", DAEMON, str(inputs.root)])
    subprocess.Popen(command, cwd=sandbox.folder, env=dict(sandbox.environ))
    wait_until((inputs.root / "holding").exists)


def ship(inputs: StageInputs) -> StageOutputs:
    """Report a promotion to staging; if `held.txt` exists, first wait for `ship.lock`, which a test releases."""
    if (inputs.root / "held.txt").exists():
        (inputs.root / "holding").write_text("")
        with FileLock(inputs.root / "ship.lock"):
            pass
    return StageOutputs("passed", "shipped", {"token": note(inputs, "ship")}, channel="staging")


BUILD = Stage("build", (), ("source",), ("candidate",), 1, f"{__name__}:build", timeout=TIMEOUT)
TEST = Stage(
    "test", ("build",), ("candidate", "tests"), ("checks",), 1, f"{__name__}:test", timeout=TIMEOUT, check=True
)
SHIP = Stage(
    "staging",
    ("test",),
    ("candidate", "checks"),
    ("channel",),
    1,
    f"{__name__}:ship",
    timeout=TIMEOUT,
    channel=ChannelPolicy(name="staging"),
)
STAGES = (BUILD, TEST, SHIP)
IMPATIENT = (BUILD, replace(TEST, timeout=0.5), SHIP)


def add_server(root: Path, name: str, *, source: str = "one", outcome: str = "passed") -> Path:
    """Create the folder of a server for these stages."""
    folder = root / "servers" / name
    (folder / "tests").mkdir(parents=True)
    (folder / "mcpfactory.toml").write_text(f'[server]\nname = "{name}"\npackage = "p"\ntemplate = "none"\n')
    (folder / "source.txt").write_text(source)
    (folder / "tests" / "outcome.txt").write_text(outcome)
    return folder


def nothing(_inputs: StageInputs) -> StageOutputs:
    """Return a passed result."""
    return StageOutputs("passed", "nothing to do")


_CHEAP = {"generate": "nothing", "build": "build", "test": "test", "validate": "nothing", "staging": "ship"}


def with_fake_stages(stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
    """Return the stages of a workspace, with fast ones instead of those of mcpfactory."""
    return tuple(
        replace(
            stage,
            run=f"{__name__}:{_CHEAP[stage.name]}",
            reads=("source",) if stage.name == "build" else stage.reads,
        )
        if stage.name in _CHEAP and not stage.approval
        else stage
        for stage in stages
    )
