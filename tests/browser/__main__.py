"""The dashboard in a real browser: `python -m tests.browser [SCENE…]`, with screenshots in build/browser/shots.

    python -m tests.browser --install        install chromium too (Debian, as root)
    python -m tests.browser visit act        only these scenes

It uses the system's Chromium, puts axe-core into build/browser, and creates its own workspace. It takes some minutes.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.browser.browser_install import FOLDER, chromium, provide
from tests.browser.demo_workspace import dashboard, make
from tests.browser.scenes import SCENES

_SHOWN = 12  # maximum printed faults of a scene


def main() -> None:
    """Run all scenes, or the named ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join(SCENES))
    parser.add_argument("--install", action="store_true", help="get chromium by apt-get")
    asked = parser.parse_args()
    if unknown := [name for name in asked.scenes if name not in SCENES]:
        parser.error(f"there is no scene {unknown[0]}; scenes: {', '.join(SCENES)}")
    provide(install=asked.install)
    from playwright.sync_api import sync_playwright

    shots = FOLDER / "shots"
    shutil.rmtree(shots, ignore_errors=True)
    shots.mkdir(parents=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as place, sync_playwright() as play:
        root = make(Path(place))
        browser = play.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for name in asked.scenes or SCENES:
            began = time.monotonic()
            try:
                with dashboard(root) as url:
                    seen, faults = SCENES[name](browser, url.rstrip("/"), root, shots)
            except Exception as error:  # noqa: BLE001 - the other scenes must still run
                seen, faults = "broke off", [f"{type(error).__name__}: {error}"]
            wrong += len(faults)
            print(f"{name:14} {'FAULTS' if faults else 'ok':6} {time.monotonic() - began:6.1f} s  {seen}", flush=True)
            for fault in list(dict.fromkeys(faults))[:_SHOWN]:
                print(f"    {fault}", flush=True)
        browser.close()
    print(f"{len(list(shots.glob('*.png')))} screenshots in {shots}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
