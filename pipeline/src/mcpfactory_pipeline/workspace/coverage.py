"""API coverage of a server, from `.mcpfactory/report.json`: operations that are tools, left out, or missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.workspace.workspace import REPORT

_REASON: Final = 200  # maximum characters of a stored reason


def coverage(folder: Path, operations: int = 0) -> dict[str, Any]:
    """Return the API coverage of the server in `folder`; empty without a report.

    `operations` is the number of operations in the document, if known. The result has these members:

    - `made`: number of operations that became tools
    - `left_out`: operation → reason why it is not a tool
    - `missing`: number of operations that the report does not contain
    - `share`: percentage of operations that became tools, rounded down

    Raises:
        StageError: the report cannot be read.
    """
    report = _read(folder / REPORT)
    if report is None:
        return {}
    try:
        made = {operation_name(tool["operation"]) for tool in report["tools"]}
        left_out = {operation_name(one): str(one["reason"])[:_REASON] for one in report["skipped"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise _damaged(error) from error
    left_out = {name: reason for name, reason in left_out.items() if name not in made}
    total = max(operations, len(made) + len(left_out))
    return {
        "operations": total,
        "made": len(made),
        "left_out": left_out,
        "missing": total - len(made) - len(left_out),
        "share": 100 * len(made) // total if total else 0,
    }


def inspection_report(folder: Path) -> dict[str, Any] | None:
    """Return the output of `inspect` for the server in `folder`; None without a report.

    Raises:
        StageError: the report is damaged.
    """
    report = _read(folder / REPORT)
    if report is not None and not isinstance(report.get("tools"), list):
        raise _damaged(TypeError("it has no list of tools"))
    return report


def source_gate_facts(folder: Path) -> dict[str, Any]:
    """Return the facts for gates: `document`; with an API document also `tools`, `tokens` and `coverage` (%)."""
    report, found = _read(folder / REPORT), coverage(folder)
    if report is None:
        return {"document": False}
    try:
        return {
            "document": True,
            "tools": len(report["tools"]),
            "tokens": int(report["tokens"]),
            "coverage": found["share"],
        }
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(error) from error


def operation_name(operation: Mapping[str, Any]) -> str:
    """Return the name of an operation in a report, with its document's label, if any: "shelf: GET /books"."""
    label = f"{operation['document']}: " if operation.get("document") else ""
    return f"{label}{operation['method']} {operation['path']}"


def _read(file: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _damaged(error) from error
    if not isinstance(data, dict):
        raise _damaged(TypeError("not an object"))
    return data


def _damaged(error: Exception) -> StageError:
    return StageError(
        f"{REPORT} cannot be read: {error!r}", hint="delete the file; the stage generate writes a new file"
    )
