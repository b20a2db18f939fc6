"""Each way to install the factory, in an empty home and an empty folder, with the system's Python; then the whole road from there.

The sources are a clone of the commit that is checked out here. Every installation goes the way of the tutorial: doctor, init,
new, inspect, call, pipeline, status; its server answers `uvx` from the staging channel, as a bundle that the official CLI
unpacked, and from a package index on loopback. The bytes of the wheels, bundles and
channels must be the same whichever way the factory was installed. What was typed and what was printed is shown.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uv

from benchmarks.exam.results import Outcome, judged, unavailable
from benchmarks.trials import services as outside
from benchmarks.trials.fake_stages import ROOT
from mcpfactory_pipeline.base.hashing import hash_file

PYTHON = "/usr/bin/python3"
SHOP = ROOT / "docs" / "examples" / "bookshop"
TOOLS = 11  # of the bookshop


def _make_install(at: InstallationScenario) -> Path:
    at.type("make", "install", cwd=at.clone)
    return at.home / ".local" / "bin"


def _uv_git(at: InstallationScenario) -> Path:
    at.type("uv", "tool", "install", "--quiet", f"mcpfactory @ git+file://{at.clone}#subdirectory=factory/cli")
    return at.home / ".local" / "bin"


def _pip_git(at: InstallationScenario) -> Path:
    at.type(PYTHON, "-m", "venv", "env")
    where = {"mcpfactory-runtime[http,upstream]": "factory/runtime", "mcpfactory-codegen": "factory/codegen",
             "mcpfactory-pipeline": "pipeline", "mcpfactory": "factory/cli"}  # fmt: skip
    # An address with a host: Debian 12's pip 23.0 takes no file URL without one.
    lines = [f"{name} @ git+file://localhost{at.clone}#subdirectory={folder}" for name, folder in where.items()]
    at.type("env/bin/pip", "install", "--quiet", *lines)
    return at.folder / "env" / "bin"


def _uv_wheels(at: InstallationScenario) -> Path:
    at.type("uv", "tool", "install", "--quiet", "--find-links", str(at.clone / "dist"), "mcpfactory")
    return at.home / ".local" / "bin"


def _pip_wheels(at: InstallationScenario) -> Path:
    at.type(PYTHON, "-m", "venv", "env")
    at.type("env/bin/pip", "install", "--quiet", "--find-links", str(at.clone / "dist"), "mcpfactory")
    return at.folder / "env" / "bin"


WAYS: dict[str, Callable[[InstallationScenario], Path]] = {
    "make install": _make_install,
    "uv, git": _uv_git,
    "pip, git": _pip_git,
    "uv, wheels": _uv_wheels,
    "pip, wheels": _pip_wheels,
}


@dataclass
class InstallationScenario:
    """An empty home and an empty folder, and what a person types there."""

    folder: Path
    clone: Path
    programs: tuple[Path, ...]
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The home, which holds what the installation put there and nothing else."""
        return self.folder / "home"

    def words(self, *command: str) -> list[str]:
        """A command as this person starts it: nothing of our environment but where packages come from."""
        return [*outside.plain(self.home, *self.programs, SHELL="/bin/bash", **self.environ), *command]

    def type(self, *command: str, cwd: Path | None = None, code: int = 0) -> str:
        """Runs a command, shows both what was typed and what was printed, and gives stdout. Raises `_Stop` for another exit code."""
        print(f"$ {shlex.join(command)}", flush=True)
        done = subprocess.run(
            self.words(*command), cwd=cwd or self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        shown = "\n".join(
            line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("WARNING: Location")
        )
        print(shown, flush=True)
        if done.returncode != code:
            raise _Stop(f"{shlex.join(command)[:60]} ended in {done.returncode}")
        return done.stdout


class _Stop(Exception):  # noqa: N818 - the end of one way, which is a finding
    """A command did not end as it should."""


@dataclass(frozen=True)
class _Services:
    """The API, a package index and the official CLI; None if one is not available."""

    api: str
    index: str | None
    cli: Path | None


def run(folder: Path, _times: int, _seed: int) -> Outcome:
    """Every way once; the figure says how many went the whole road, and whether their bytes were the same."""
    if not Path(PYTHON).exists():
        return unavailable(f"there is no {PYTHON}")
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    subprocess.run(["make", "--quiet", "dist", f"PYTHON={PYTHON}"], cwd=clone, check=True)
    programs = folder / "uv"
    programs.mkdir()
    for name in ("uv", "uvx"):
        (programs / name).symlink_to(Path(uv.find_uv_bin()).with_name(name))
    rows: dict[str, dict[str, str]] = {}
    with _services(folder) as services:
        for way, install in WAYS.items():
            place = folder / way.replace(", ", "-").replace(" ", "-")
            place.mkdir()
            at = InstallationScenario(place, clone, () if way == "make install" else (programs,))
            print(f"\n== {way}", flush=True)
            rows[way] = dict(_way(at, install, services, programs))
    return _told(rows)


def _told(rows: dict[str, dict[str, str]]) -> Outcome:
    names = max((list(row) for row in rows.values()), key=len)
    print(f"\n{'way':14}" + "".join(f"{name:>10}" for name in names), flush=True)
    for way, row in rows.items():
        print(f"{way:14}" + "".join(f"{row.get(name, 'FAULT'):>10}" for name in names), flush=True)
    same = {name: {row.get(name) for row in rows.values()} for name in names}
    apart = [name for name, seen in same.items() if len(seen) > 1]
    whole = sum("FAULT" not in (row.get(name, "FAULT") for name in names) for row in rows.values())
    figure = f"{whole} of {len(rows)} ways go the whole road; " + (
        f"they differ in {', '.join(apart)}" if apart else "the same bytes"
    )
    return judged(figure, good=whole == len(rows) and not apart)


def _way(
    at: InstallationScenario, install: Callable[[InstallationScenario], Path], services: _Services, programs: Path
) -> Iterator[tuple[str, str]]:
    """What was found on the road of one way, by name. It ends where a command does not do what it should."""
    try:
        at.programs = (install(at), *at.programs)
        yield from _tutorial(at, services.api)
        at.programs = (*at.programs, programs)
        yield from _used(at, services)
    except _Stop as fault:
        print(f"FAULT: {fault}", flush=True)


def _tutorial(at: InstallationScenario, api: str) -> Iterator[tuple[str, str]]:
    """The tutorial's commands; then what lies in the channel."""
    first = at.type("mcpfactory", "doctor")
    yield "doctor", "yes" if "error" not in first and first.startswith("ok      runtime: ") else "FAULT"
    at.type("mcpfactory", "init", "my-servers")
    space = at.folder / "my-servers"
    at.type("mcpfactory", "new", "--from-openapi", str(SHOP / "openapi.yaml"), "--name", "bookshop", cwd=space)
    at.type("mcpfactory", "inspect", "bookshop", cwd=space)
    at.environ |= {"MCPFACTORY_BASE_URL": api, "MCPF_BOOKSHOP_API_KEY": "bookworm"}
    at.type("mcpfactory", "call", "bookshop", "list_books", "--arg", "q=austen", "--arg", "max_price=8", cwd=space)
    changed = at.type(
        "mcpfactory", "call", "bookshop", "change_book", "--arg", "isbn=9780141439518", "--arg", "stock=9", cwd=space
    )
    yield "call", "yes" if json.loads(changed)["stock"] == 9 else "FAULT"
    at.type("mcpfactory", "pipeline", "plan", cwd=space)
    at.type("mcpfactory", "pipeline", "run", cwd=space)
    again = at.type("mcpfactory", "pipeline", "run", cwd=space)
    at.type("mcpfactory", "pipeline", "status", cwd=space)
    status = json.loads(at.type("mcpfactory", "pipeline", "status", "--json", cwd=space))
    yield "pipeline", "yes" if "staging" in status[0]["channels"] and "nothing to do" in again else "FAULT"
    at.type("mcpfactory", "dashboard", "--export", "site", cwd=space)
    clean = at.type("mcpfactory", "doctor", cwd=space).splitlines()
    yield "clean", "yes" if all(line.startswith("ok") for line in clean) else "FAULT"
    for name, pattern in (("runtime", "mcpfactory_runtime-*.whl"), ("server", "bookshop_mcp-*.whl")):
        (file,) = (space / "pipeline" / "channels" / "staging" / "files").glob(f"*/{pattern}")
        yield name, hash_file(file).removeprefix("sha256:")[:8]


def _used(at: InstallationScenario, services: _Services) -> Iterator[tuple[str, str]]:
    """The server as others start it: from the channel, from an index, as a bundle."""
    space = at.folder / "my-servers"
    simple = f"file://{space}/pipeline/channels/staging/simple"
    yield "uvx", _answers(at, "uvx", "--index", simple, "bookshop-mcp")
    if services.index:
        at.environ["PYPI_TOKEN"] = outside.PASSWORD
        where = {
            "url": f"{services.index}/",
            "index": f"{services.index}/simple/",
            "user": outside.USER,
            "runtime": "publish",
        }
        options = [word for name, value in where.items() for word in ("--set", f"pypi.{name}={value}")]
        at.type("mcpfactory", "publish", "bookshop", "--target", "pypi", "--channel", "staging", *options, cwd=space)
        yield "pypi", _answers(at, "uvx", "--index-url", f"{services.index}/simple/", "bookshop-mcp")
    made = json.loads(
        at.type("mcpfactory", "publish", "bookshop", "--target", "mcpb", "--channel", "staging", "--json", cwd=space)
    )["outcomes"][0]
    (name,) = made["files"]
    bundle = Path(made["folder"]) / name
    yield "bundle", hash_file(bundle).removeprefix("sha256:")[:8]
    if services.cli:
        place = at.folder / "unpacked"
        right = outside.unpack_bundle(services.cli, bundle, place)
        yield "mcpb", "yes" if right and len(outside.start_bundle(at.folder, services.cli, place)) == TOOLS else "FAULT"


def _answers(at: InstallationScenario, *command: str) -> str:
    print(f"$ {shlex.join(command)}", flush=True)
    try:
        found = outside.list_tools(at.words(*command), cwd=at.folder)
    except Exception as error:
        raise _Stop(f"{shlex.join(command)[:60]} does not answer: {error}") from error
    print(f"{len(found)} tools: {', '.join(found)}", flush=True)
    return "yes" if len(found) == TOOLS else "FAULT"


@contextmanager
def _services(folder: Path) -> Iterator[_Services]:
    with ExitStack() as stack:
        command = [sys.executable, str(SHOP / "service.py"), "--port", "0"]
        api = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(api.terminate)
        assert api.stdout is not None
        url = api.stdout.readline().strip()
        program = outside.install_index(folder / "index-program")
        index = stack.enter_context(outside.package_index(program, folder / "index")) if program else None
        yield _Services(url, index, outside.install_cli(folder / "npm"))
