"""Which files of a server's folder are its evaluation cases, and which the model of its API consists of. Light: every plan asks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

PROGRAM: Final = "tests/upstream.py"
_EVALUATION: Final = re.compile(r"evals/[^/]+\.ya?ml")
_NO_MODEL: Final = re.compile(r"tests/(_generated/.*|(.*/)?(test_[^/]*|[^/]*_test|conftest)\.py)")


def is_evaluation(path: str) -> bool:
    """Whether a file, by its path below the server's folder, has evaluation cases."""
    return _EVALUATION.fullmatch(path) is not None


def model_files(paths: Iterable[str]) -> list[str]:
    """Return the files that the model may use: what is below `tests/`, without tests and generated files; none where there is no model."""
    found = [path for path in paths if path.startswith("tests/") and not _NO_MODEL.fullmatch(path)]
    return found if PROGRAM in found else []
