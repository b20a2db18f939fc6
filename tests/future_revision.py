"""A future revision with renamed methods, in a copy of the runtime with one changed file."""

import os
import shutil
from pathlib import Path

import mcpfactory_runtime

RECORD = """
R2027_01_01 = successor(
    R2026_07_28,
    "2027-01-01",
    wire_names={"tools/call": "tools/run", "notifications/progress": "notifications/moved"},
)

RELEASED: Final = (R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, R2027_01_01)
"""


def trial(folder: Path) -> dict[str, str]:
    """Return the environment of a runtime copy with the trial revision."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(Path(mcpfactory_runtime.__file__).parent, folder / "mcpfactory_runtime")
    add_record(folder / "mcpfactory_runtime" / "revisions" / "records.py")
    return {**os.environ, "PYTHONPATH": str(folder)}


def add_record(records: Path) -> None:
    """Add the trial revision to a copy of `revisions/records.py`."""
    head, mark, _ = records.read_text(encoding="utf-8").rpartition("\nRELEASED: Final = ")
    assert mark, "revisions/records.py no longer ends with RELEASED"
    records.write_text(head + RECORD, encoding="utf-8")
