"""What the specification's published schemas say, revision by revision: the oracle for the records and for every message.

The tables beside this module are made by `python -m tests.runtime.spec_types.make`, each from one published file, whose hash it has.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema

from mcpfactory_runtime.revisions import Revision
from tests.runtime.spec_types.notation import KEY, expand

__all__ = ["TABLES", "definitions", "faults"]

TABLES = Path(__file__).parent


@functools.cache
def definitions(revision: Revision) -> dict[str, Any]:
    """Type → what a value of it must be, as JSON Schema."""
    table = json.loads((TABLES / f"{revision.name}.json").read_text("utf-8"))
    return {name: expand(kind) for name, kind in table["types"].items()}


def faults(value: Any, wire_type: str, revision: Revision) -> list[str]:
    """Why a value is not of a type of the revision; empty when it is."""
    found = _validator(wire_type, revision).iter_errors(value)
    return [f"{fault.json_path}: {fault.message}" for fault in found]


@functools.cache
def _validator(wire_type: str, revision: Revision) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({KEY: definitions(revision), "$ref": f"#/{KEY}/{wire_type}"})
