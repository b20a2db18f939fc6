"""Evaluation case files and API model files of a server. Imports little, because every plan uses it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

PROGRAM: Final = "tests/upstream.py"
_EVALUATION: Final = re.compile(r"evals/[^/]+\.ya?ml")
_NO_MODEL: Final = re.compile(r"tests/(_generated/.*|(.*/)?(test_[^/]*|[^/]*_test|conftest)\.py)")


def is_evaluation(path: str) -> bool:
    """Return True if a file, by its path below the server's folder, contains evaluation cases."""
    return _EVALUATION.fullmatch(path) is not None


def model_files(paths: Iterable[str]) -> list[str]:
    """Return the files that the model can use; empty without a model.

    These are the files below `tests/`, except tests and generated files.
    """
    found = [path for path in paths if path.startswith("tests/") and not _NO_MODEL.fullmatch(path)]
    return found if PROGRAM in found else []
