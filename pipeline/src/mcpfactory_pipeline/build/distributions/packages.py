"""What is published of a distribution: its canonical wheel, and its source distribution. Equal sources give equal bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.files import replace_file
from mcpfactory_pipeline.base.hashing import hash_file
from mcpfactory_pipeline.build.distributions.handing import write_wheel
from mcpfactory_pipeline.build.distributions.sources import package_files
from mcpfactory_pipeline.build.distributions.wheel import read_wheel
from mcpfactory_pipeline.build.programs import ProgramRefusedError
from mcpfactory_pipeline.build.wheels import build_packages

__all__ = ["write_packages"]


def write_packages(source: Path, into: Path) -> dict[str, str]:
    """Write the wheel and the source distribution of the sources in a folder into another; return name → hash.

    The wheel is built from the source distribution. Other versions of them are taken away. Raises `StageError` when they
    do not build.
    """
    if not (source / "pyproject.toml").is_file():
        raise StageError(f"{source} has no pyproject.toml", hint="name the folder of a distribution")
    with tempfile.TemporaryDirectory() as work:
        try:
            built, sdist = build_packages(source, package_files(source), Path(work), log=False)
        except ProgramRefusedError as error:
            raise StageError(f"{source} does not build: {error}", hint="mend its sources") from error
        wheel = write_wheel(read_wheel(built), into)
        replace_file(into / sdist.name, sdist.read_bytes())
    made = (wheel.name, sdist.name)
    for pattern in (f"{wheel.name.partition('-')[0]}-*.whl", f"{wheel.name.partition('-')[0]}-*.tar.gz"):
        for old in into.glob(pattern):
            if old.name not in made:
                old.unlink()
    return {name: hash_file(into / name) for name in made}
