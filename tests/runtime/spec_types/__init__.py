"""Types of the specification's published schemas by revision, against which tests check the records and messages.

`python -m tests.runtime.spec_types.make` writes each table of this package from a published file, with its hash.
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
    """Return the JSON Schema of each type of a revision."""
    table = json.loads((TABLES / f"{revision.name}.json").read_text("utf-8"))
    return {name: expand(kind) for name, kind in table["types"].items()}


def faults(value: Any, wire_type: str, revision: Revision) -> list[str]:
    """Return the reasons why a value does not match a type of the revision; empty if it matches."""
    found = _validator(wire_type, revision).iter_errors(value)
    return [f"{fault.json_path}: {fault.message}" for fault in found]


@functools.cache
def _validator(wire_type: str, revision: Revision) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({KEY: definitions(revision), "$ref": f"#/{KEY}/{wire_type}"})
