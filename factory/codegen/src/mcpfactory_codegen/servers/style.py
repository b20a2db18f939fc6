"""Generated Python, formatted by ruff: one run over everything."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ruff import find_ruff_bin  # type: ignore[import-untyped]  # a binary with one Python function

__all__ = ["FormatError", "formatted"]

LINE_LENGTH: Final = 120
_SHOWN: Final = 800


class FormatError(Exception):
    """The formatter refused what was generated: a fault of the generator, never of the user."""


def formatted(files: Mapping[str, str]) -> dict[str, str]:
    """Return the same files with every `.py` among them formatted; the formatter's own configuration files are ignored.

    Raises:
        FormatError: a file is not valid Python, or the formatter could not run.
    """
    modules = {path: text for path, text in files.items() if path.endswith(".py")}
    if not modules:
        return dict(files)
    with TemporaryDirectory(prefix="mcpfactory-format-") as folder:
        root = Path(folder)
        for path, text in modules.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
        _run("format", root)
        done = {path: (root / path).read_text("utf-8") for path in modules}
    return {path: done.get(path, text) for path, text in files.items()}


def _run(command: str, root: Path) -> None:
    options = ["--isolated", "--no-cache", "--quiet", f"--line-length={LINE_LENGTH}", "--target-version=py311"]
    ran = subprocess.run(
        [str(find_ruff_bin()), command, *options, str(root)], capture_output=True, text=True, check=False
    )
    if ran.returncode:
        said = ran.stderr.replace(str(root), "").strip()[:_SHOWN]
        raise FormatError(f"generated code could not be formatted: {said}")
