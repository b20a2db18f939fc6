"""PEP 517 hook caller: `python -P backend.py PLAN`, run with the interpreter of the backend's environment.

PLAN is JSON: `source`, the folder of the project; `out`, the output folder; `backend` and `path`, as in
`[build-system]`; `hook`, the package to build (`sdist` or `wheel`); `from_sdist`, true to build from the source
distribution in `out`; `given`, the requirements that the backend requested earlier and that are now installed.

If the backend requests further requirements, they are written to `wanted.json` next to the plan, and the exit code is
`ASKS`. A sandbox runs this file without our packages, so the file uses only the standard library.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tarfile
from functools import reduce
from pathlib import Path
from typing import Any, Final

ASKS: Final = 75  # exit code EX_TEMPFAIL of sysexits.h: call again with more requirements
WANTED: Final = "wanted.json"


def main() -> None:
    """Build the distributions in the plan."""
    plan_file = Path(sys.argv[1])
    plan = json.loads(plan_file.read_text(encoding="utf-8"))
    source, out = Path(plan["source"]), Path(plan["out"])
    out.mkdir(exist_ok=True)
    hook = plan["hook"]
    if hook == "wheel" and plan["from_sdist"]:
        source = _unpacked(next(out.glob("*.tar.gz")), out.parent / "unpacked")
    os.chdir(source)
    sys.path[:0] = [str(source / part) for part in plan["path"]]
    backend = _backend(plan["backend"])
    asks = getattr(backend, f"get_requires_for_build_{hook}", None)
    wanted = [str(one) for one in (asks() if asks else [])]
    if any(one not in plan["given"] for one in wanted):
        plan_file.with_name(WANTED).write_text(json.dumps(wanted), encoding="utf-8")
        sys.exit(ASKS)
    getattr(backend, f"build_{hook}")(str(out))


def _backend(name: str) -> Any:
    module, _, inner = name.partition(":")
    return reduce(getattr, inner.split(".") if inner else [], importlib.import_module(module))


def _unpacked(sdist: Path, folder: Path) -> Path:
    with tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(folder, filter="data")
        else:  # `tarfile` of Python 3.11.0 to 3.11.3 has no `filter`
            archive.extractall(folder)  # noqa: S202 - the sandbox confines what is unpacked
    return next(folder.iterdir())


if __name__ == "__main__":
    main()
