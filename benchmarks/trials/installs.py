"""What an installer gets from production are the bytes that were validated, or it gets nothing.

A server goes through all stages and into production. uv and pip then install it with the hash that the state has, and once
more after a line was added to a module of the wheel in the channel.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import uv

from benchmarks.exam.outcome import Outcome, judged
from mcpfactory_codegen.servers.create import create_server
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.init import init_workspace
from mcpfactory_pipeline.state.store import Store
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["run"]

_OPTIONS = ("--require-hashes", "--no-deps", "--no-cache-dir", "--only-binary", ":all:")


def run(folder: Path, times: int, seed: int) -> Outcome:
    """`times` servers, one after the other; the seed changes nothing. The last figure is the hash that all agree on."""
    del seed
    programs = {"uv": [uv.find_uv_bin(), "pip"], "pip": [sys.executable, "-m", "pip", "--disable-pip-version-check"]}
    faults, digest = list[str](), ""
    for number in range(times):
        space = _in_production(folder / f"space {number}")
        state = Store(space).state("hello")
        files = state.candidates[state.channels["production"].candidate].files
        wheel, digest = next((name, content) for name, content in files.items() if name.endswith(".whl"))
        validated = space.artifacts / "hello" / str(state.candidate) / wheel
        print(f"validated {hash_file(validated)}, state {digest}", flush=True)
        for name, program in programs.items():
            faults += [f"{name}: {fault}" for fault in _right(space, name, program, validated, digest)]
        (offered,) = (space.pipeline / "channels/production/files").glob(f"*/{wheel}")
        _change(offered)
        for name, program in programs.items():
            done = _install(space, program, folder / f"wrong {name} {number}", digest)
            print(f"{name}, after a line was added to a module: exit code {done.returncode}", flush=True)
            if done.returncode == 0 or "hash" not in (done.stdout + done.stderr).lower():
                faults.append(
                    f"{name} took a wheel with other bytes, or did not say why not: {done.stdout}{done.stderr}"
                )
    for fault in faults:
        print(fault)
    figure = f"{times} servers by {' and '.join(programs)}, {digest[:19]}…; other bytes refused; {len(faults)} not as promised"
    return judged(figure, good=not faults)


def _in_production(root: Path) -> Workspace:
    """A workspace whose server went all the way, by the command line."""
    space = init_workspace(root, git=False)
    create_server(space.root / "servers", name="hello", template="minimal")
    for words in ("run", "approve hello --channel production", "promote hello --channel production"):
        command = [sys.executable, "-m", "benchmarks.trials.command", "pipeline", *words.split()]
        subprocess.run(command, cwd=root, check=True, capture_output=True)
    return space


def _change(wheel: Path) -> None:
    """A wheel that any installer can read, with one line more in it."""
    with zipfile.ZipFile(wheel) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for member, data in members.items():
            archive.writestr(member, data + (b"# changed\n" if member.endswith("__init__.py") else b""))


def _right(space: Workspace, name: str, program: list[str], validated: Path, digest: str) -> Iterator[str]:
    """Installs, and holds every file against the wheel that was validated."""
    target = space.root / f"installed by {name}"
    done = _install(space, program, target, digest)
    if done.returncode:
        yield f"ended in {done.returncode}: {done.stderr}"
        return
    with zipfile.ZipFile(validated) as archive:
        modules = [member for member in archive.namelist() if ".dist-info/" not in member]
        same = sum((target / member).read_bytes() == archive.read(member) for member in modules)
    print(f"{name} installed {json.dumps(digest)}: {same} of {len(modules)} files are those of the wheel", flush=True)
    if same != len(modules):
        yield "installed files differ from those of the wheel that was validated"


def _install(space: Workspace, program: list[str], target: Path, digest: str) -> subprocess.CompletedProcess[str]:
    version = Store(space).state("hello").channels["production"].version
    requirements = space.root / "requirements.txt"
    requirements.write_text(f"hello-mcp=={version} --hash={digest}\n")
    index = f"file://{space.pipeline}/channels/production/simple".replace(" ", "%20")
    command = [*program, "install", "--index-url", index, *_OPTIONS, "--target", str(target), "-r", str(requirements)]
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(command, cwd=space.root, env=environ, capture_output=True, text=True, check=False)
