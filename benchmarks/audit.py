"""`python -m benchmarks.audit`: advisories of the packages in requirements.lock and requirements-docs.lock, by pip-audit and OSV.

The exit code is 1 when there is one, and 3 when nobody could be asked. What is asked are names and versions; nothing is installed or
resolved, as the locks have every package and its hashes. `--osv-url URL` asks another service of the same form.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

_LOCKS: Final = ("requirements.lock", "requirements-docs.lock")
_TOOL: Final = "pip-audit==2.10.1"
_TIME: Final = 900.0  # seconds


def advisories(report: Any) -> Iterator[str]:
    """Yield a line for each advisory in a report of pip-audit: package, version, id, where it is mended."""
    for row in report["dependencies"]:
        for one in row.get("vulns", ()):
            mended = ", ".join(one.get("fix_versions") or ()) or "nowhere yet"
            yield f"{row['name']} {row['version']}: {one['id']}, mended in {mended}"


def main(arguments: Sequence[str] = ()) -> int:
    """Ask about each lock, print what was found, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osv-url", default="", help="the address of the advisory service; OSV's own without it")
    service, found, packages = parser.parse_args(arguments).osv_url, set[str](), 0
    for lock in _LOCKS:
        try:
            report = _report(lock, service)
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            print(f"nobody could be asked about {lock}: {error}")
            print(
                "hint: it takes a package index, for pip-audit itself, and https://api.osv.dev: try again where the network has both"
            )
            return 3
        found |= set(advisories(report))
        packages += len(report["dependencies"])
    for line in sorted(found):
        print(line)
    print(f"{packages} locked packages, {len(found)} advisories")
    return 1 if found else 0


def _report(lock: str, service: str) -> Any:
    """Return pip-audit's report of a lock. Raises `ValueError`, with the last that it said, where there is none."""
    root = Path(__file__).resolve().parents[1]
    command = [str(Path(sys.executable).with_name("uv")), "tool", "run", "--quiet", "--from", _TOOL, "pip-audit"]
    command += [
        "--disable-pip",
        "--require-hashes",
        "--requirement",
        str(root / lock),
        "--vulnerability-service",
        "osv",
    ]
    command += ["--format", "json", "--progress-spinner", "off", *(["--osv-url", service] if service else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIME, cwd=root)
    if not done.stdout.lstrip().startswith("{"):
        raise ValueError((done.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1][:300])
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
