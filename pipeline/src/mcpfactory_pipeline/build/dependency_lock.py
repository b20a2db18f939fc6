"""Lock of a candidate's dependencies: the versions that uv resolved, with hashes.

The stage `build` makes the lock once, and all environments of the candidate are made from it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.build.factory_distributions import cached_runtime_wheel, requires_runtime
from mcpfactory_pipeline.build.programs import run_uv
from mcpfactory_pipeline.build.wheels import read_dist_info, wheel_name
from mcpfactory_pipeline.plan.fingerprint import lock_file, uv_settings_hash

_PIN: Final = re.compile(r"^([\w.-]+)(?:\[[\w,.-]*\])?(?:==| @ )(\S+)", re.MULTILINE)


def runtime_wheel_for(artifacts: Path, wheel: Path) -> Path | None:
    """Return the wheel of the runtime that is installed beside a server's wheel, or None."""
    return cached_runtime_wheel(artifacts) if requires_runtime(wheel) else None


def direct_references(wheel: Path) -> list[str]:
    """Return the names of dependencies that the wheel requires from a URL, and not from an index."""
    declared = read_dist_info(wheel, "METADATA").get_all("Requires-Dist", [])
    return sorted({one.name for one in map(Requirement, declared) if one.url})


def ensure_lock(folder: Path, wheel: Path, *, artifacts: Path, root: Path, work: Path) -> Path:
    """Return the lock of the candidate in `folder`. Make it if it is missing, or if settings of uv have changed.

    Raises:
        ToolRejectedInputError: no versions meet all requirements.
        StageError: uv failed for another reason, for example without a network.
    """
    place = lock_file(folder)
    if not place.is_file() or place.read_text(encoding="utf-8").partition("\n")[0] != _head(root):
        write_lock(place, resolve_dependencies(wheel, artifacts=artifacts, root=root, work=work))
    return place


def write_lock(place: Path, text: str) -> None:
    """Replace a lock."""
    replace_file(place, text.encode())


def resolve_dependencies(wheel: Path, *, artifacts: Path, root: Path, work: Path) -> str:
    """Resolve the newest dependencies of a wheel, and return the text of a lock. `work` is an empty or own folder.

    The server and a runtime that no index offers are left out.
    """
    packages = [wheel, *filter(None, [runtime_wheel_for(artifacts, wheel)])]
    work.mkdir(parents=True, exist_ok=True)
    given, made = work / "requirements.in", work / "resolved.lock"
    given.write_text("".join(f"{package.as_posix()}\n" for package in packages), encoding="utf-8")
    left_out = [word for package in packages for word in ("--no-emit-package", wheel_name(package.name))]
    options = ("--quiet", "--generate-hashes", "--no-header", "--no-annotate", *left_out)
    run_uv("pip", "compile", *options, "--output-file", str(made), str(given), cwd=work, log=False)
    return f"{_head(root)}\n{made.read_text(encoding='utf-8')}"


def locked_versions(text: str) -> dict[str, str]:
    """Return the version, or the URL, of each package in a lock."""
    return dict(_PIN.findall(text))


def _head(root: Path) -> str:
    return f"# settings of uv: {uv_settings_hash(root)}"
