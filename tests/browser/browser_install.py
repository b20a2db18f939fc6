"""Dependencies of the browser tests only: the system's browser, and axe-core in a folder below build/."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "build" / "browser"
_AXE_VERSION = "4.14.1"
AXE = FOLDER / f"axe-core-{_AXE_VERSION}.js"


def chromium() -> str:
    """Return the path of the browser. Raise `SystemExit` with a hint if it is missing."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise SystemExit(
        "error: there is no chromium\nhint: apt-get install chromium, or python -m tests.browser --install"
    )


def provide(*, install: bool) -> None:
    """Download missing dependencies; with `install` also the browser, on Debian as root."""
    if install and not shutil.which("chromium"):
        command = ["apt-get", "install", "-y", "--no-install-recommends", "chromium"]
        subprocess.run(["apt-get", "update"], check=True, stdout=subprocess.DEVNULL, timeout=300)
        environ = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=600, env=environ)
    chromium()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not AXE.is_file():
        _axe()


def _axe() -> None:
    """Return the script of axe-core, from its package."""
    command = ["npm", "pack", "--silent", f"axe-core@{_AXE_VERSION}"]
    packed = subprocess.run(command, cwd=FOLDER, check=True, capture_output=True, text=True, timeout=120)
    archive = FOLDER / packed.stdout.strip().splitlines()[-1]
    with tarfile.open(archive) as opened:
        content = opened.extractfile("package/axe.min.js")
        assert content is not None
        AXE.write_bytes(content.read())
    archive.unlink()
