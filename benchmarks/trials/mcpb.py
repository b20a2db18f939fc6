"""MCPB bundles of the servers of this repository: made twice, judged and opened by the official CLI, started as it says.

`@anthropic-ai/mcpb` is installed from the npm registry into the trial's folder; how a bundle is started is asked of its own
`getMcpConfigForManifest`, which desktop clients use. Each bundle is unpacked and started in an empty home.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from benchmarks.exam.outcome import Outcome, judged, unavailable
from benchmarks.trials.promoted import SERVERS, plain, promoted, tools
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.publish.publish import publish
from mcpfactory_pipeline.workspace.workspace import Workspace

__all__ = ["CLI", "install_cli", "official", "run", "start"]

CLI = "@anthropic-ai/mcpb@2.1.2"
_MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
_ASK = """\
import { readFileSync } from "node:fs";
import { getMcpConfigForManifest } from "@anthropic-ai/mcpb";
const [folder, config] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(folder + "/manifest.json", "utf8"));
const found = await getMcpConfigForManifest({ manifest, extensionPath: folder, systemDirs: {}, userConfig: JSON.parse(config), pathSeparator: "/" });
console.log(JSON.stringify(found));
"""


def install_cli(folder: Path) -> Path | None:
    """The official CLI in a folder of its own; None where there is no node, or npm does not get it."""
    if shutil.which("npm") is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    done = subprocess.run(["npm", "install", "--silent", CLI], cwd=folder, check=False, timeout=300)
    (folder / "ask.mjs").write_text(_ASK)
    program = folder / "node_modules" / ".bin" / "mcpb"
    return program if done.returncode == 0 and program.exists() else None


def run(folder: Path, times: int, _seed: int) -> Outcome:
    """Makes each bundle `times` times; the figure says how many came out the same, were accepted, and answered."""
    cli = install_cli(folder / "npm")
    if cli is None:
        return unavailable(f"{CLI} cannot be installed here: it needs node and npm")
    spaces = [promoted(folder / f"place {number}", SERVERS) for number in range(times)]
    print(f"{'bundle':34} {'bytes':>9} {'same':5} {'validate':9} {'info':5} {'unpack':7} tools")
    faults = 0
    for server in SERVERS:
        for kind in ("uv", "python"):
            faults += _one(folder, cli, spaces, server, kind)
    made = 2 * len(SERVERS)
    return judged(f"{made} bundles, each made {times} times: {faults} with a fault", good=not faults)


def _one(folder: Path, cli: Path, spaces: list[Workspace], server: str, kind: str) -> bool:
    """One bundle; prints its row, and says whether anything is wrong with it."""
    files = [_make(space, server, kind, number) for number, space in enumerate(spaces)]
    bundle, place = files[0], folder / "open" / f"{server}-{kind}"
    same = len({hash_file(file) for file in files}) == 1
    unpacked = official(cli, "unpack", str(bundle), str(place))
    valid = official(cli, "validate", str(place / "manifest.json"))
    info = official(cli, "info", str(bundle))
    listed = sorted(tool["name"] for tool in json.loads((place / "manifest.json").read_bytes()).get("tools", []))
    answered = start(folder, cli, place) if unpacked else []
    right = bool(answered) and (not listed or answered == listed)
    words = [
        f"{bundle.name:34} {bundle.stat().st_size:>9}",
        *(f"{'yes' if fact else 'NO'}" for fact in (same, valid, info, unpacked)),
    ]
    print(
        f"{words[0]} {words[1]:5} {words[2]:9} {words[3]:5} {words[4]:7} {len(answered)} of {len(listed) or 'any'}",
        flush=True,
    )
    return not (same and valid and info and unpacked and right)


def _make(space: Workspace, server: str, kind: str, number: int) -> Path:
    zone = ("UTC", "Asia/Tokyo", "America/New_York")[number % 3]
    with patch.dict(os.environ, {"TZ": zone, "SOURCE_DATE_EPOCH": str(1_600_000_000 + number)}):
        (made,) = publish(space, server, ["mcpb"], given={"mcpb": {"type": kind, "python": _MINOR}})
    assert made.outcome == "made", made.problems
    (name,) = made.files
    return Path(made.folder) / name


def official(cli: Path, *arguments: str) -> bool:
    done = subprocess.run([str(cli), *arguments], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode:
        print(done.stdout + done.stderr, flush=True)
    return done.returncode == 0


def start(folder: Path, cli: Path, place: Path) -> list[str]:
    """Starts what was unpacked as the official package says, in an empty home; the tools that it offers."""
    manifest = json.loads((place / "manifest.json").read_bytes())
    config = {key: "set-by-trial" for key, row in manifest.get("user_config", {}).items() if row.get("required")}
    asked = subprocess.run(
        ["node", "ask.mjs", str(place), json.dumps(config)],
        cwd=cli.parents[2],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    launch = json.loads(asked.stdout)
    begin = plain(folder / "home", Path(sys.executable).parent, **launch.get("env", {}))
    try:
        return tools([*begin, launch["command"], *launch["args"]], cwd=folder)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        print(f"{place.name} does not answer: {error}", flush=True)
        return []
