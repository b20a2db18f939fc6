"""Reports, logs and manifests that lie in a workspace, read with bounds.

What is missing or damaged is left out and never an exception: a page about a broken server is of more use than an error page.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from mcpfactory_pipeline.base.files import open_own

__all__ = ["open_log", "plain_text", "read_json", "read_log", "read_validation", "wheel_manifest"]

_MAX_REPORT: Final = 32 * 1024 * 1024  # bytes of one report that are read
_MAX_LOG: Final = 12_000  # bytes of one log that are shown, from its end
# Commands of a terminal, and control characters.
_COMMANDS: Final = re.compile(
    r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_MANIFEST: Final = "/_generated/manifest.json"


def read_json(file: Path) -> Mapping[str, Any]:
    """Return the object in a file; empty where there is none."""
    try:
        return {} if file.stat().st_size > _MAX_REPORT else _object(file.read_bytes())
    except OSError:
        return {}


def open_log(file: Path) -> BinaryIO:
    """Open `ARTIFACTS/SERVER/logs/STAGE.log`, for reading at any place. Raises `OSError` where there is none, and for what is no file of its own."""
    return open_own(file, file.parents[2])


def plain_text(data: bytes) -> str:
    """Return whole lines of a log as text without colors and other commands of a terminal. Of a line that was overwritten, as by a progress bar, the last state counts."""
    text = data.decode("utf-8", errors="replace")
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _COMMANDS.sub("", text)


def read_log(file: Path) -> str:
    """Return the end of a log as plain text; empty if there is none."""
    try:
        with open_log(file) as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - _MAX_LOG))
            text = plain_text(stream.read(_MAX_LOG))
    except OSError:
        return ""
    return text if size <= _MAX_LOG else f"… {size - _MAX_LOG} bytes before this …\n{text.partition(chr(10))[2]}"


def read_validation(folder: Path, kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the report that the stage `validate` kept below `folder`, where it is still on this machine."""
    for relative in kept:
        file = folder / relative
        if relative.endswith(".json") and file.resolve().is_relative_to(folder.resolve()):
            report = read_json(file)
            if "findings" in report:
                return report
    return {}


def wheel_manifest(folder: Path) -> Mapping[str, Any]:
    """Return the manifest of generated tools in the wheel of a candidate; empty where it has none, or is not on this machine."""
    for wheel in sorted(folder.glob("*.whl")):
        try:
            with zipfile.ZipFile(wheel) as archive:
                for entry in archive.infolist():
                    if entry.filename.endswith(_MANIFEST) and entry.file_size <= _MAX_REPORT:
                        return _object(archive.read(entry))
        except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
            return {}
    return {}


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
