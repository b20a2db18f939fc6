"""`build`: the candidate. One wheel, built once from a copy of the sources; its id is the hash of its bytes."""

from __future__ import annotations

import shutil
from pathlib import Path

from mcpfactory_pipeline.coverage import facts
from mcpfactory_pipeline.fingerprint import NOT_BUILT
from mcpfactory_pipeline.hashing import hash_file, hash_record, source_files
from mcpfactory_pipeline.stage import Built, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.tools import Refused
from mcpfactory_pipeline.wheels import build_wheel, wheel_version

__all__ = ["STAGE"]


def run(inputs: StageInputs) -> StageOutputs:
    """Builds the wheel and puts it into the folder of its candidate."""
    try:
        wheel = build_wheel(inputs.folder, source_files(inputs.folder, without=NOT_BUILT), inputs.work)
    except Refused as error:
        return StageOutputs("failed", f"the wheel does not build: {error}")
    files = {wheel.name: hash_file(wheel)}
    candidate = hash_record(files).removeprefix("sha256:")[:16]
    _keep(wheel, inputs.artifacts / inputs.server / candidate, files[wheel.name])
    built = Built(candidate, wheel_version(wheel.name), files, facts(inputs.folder))
    return StageOutputs("passed", f"{wheel.name}, candidate {candidate}", {"bytes": wheel.stat().st_size}, built=built)


def _keep(wheel: Path, folder: Path, content: str) -> None:
    place = folder / wheel.name
    if hash_file(place) == content:
        return
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{wheel.name}.tmp"
    shutil.copyfile(wheel, temporary)
    temporary.replace(place)


STAGE = Stage(
    name="build",
    needs=("generate",),
    reads=("source", "report", "uv"),
    writes=("candidate",),
    version=2,
    run=run,
    timeout=600,
)
