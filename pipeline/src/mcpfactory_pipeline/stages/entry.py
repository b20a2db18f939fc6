"""A stage of the workspace's own: a Python function, found by `module:name` below the workspace's root or where packages are.

The function takes `StageInputs` and gives `StageOutputs`; its `settings` are those that the workspace gave the stage. It
judges: it can neither make a candidate nor move a channel.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_files, source_files
from mcpfactory_pipeline.plan.stage import OUTCOMES, StageInputs, StageOutputs

__all__ = ["run", "sources"]

_RETURN: Final = 'return StageOutputs("passed", "what was found")'


def run(inputs: StageInputs) -> StageOutputs:
    """Call the workspace's function. Raises `StageError` when it is not there, or gives what no stage may give."""
    entry = str(inputs.settings["entry"])
    sys.path.insert(0, str(inputs.root))
    function = _find(entry)
    outputs = function(replace(inputs, settings=dict(inputs.settings["settings"])))
    if not isinstance(outputs, StageOutputs):
        raise StageError(f"{entry} gave {type(outputs).__name__} instead of StageOutputs", hint=_RETURN)
    if outputs.outcome not in OUTCOMES:
        raise StageError(
            f"{entry} gave the outcome {outputs.outcome!r}, which is none", hint=f"outcomes: {', '.join(OUTCOMES)}"
        )
    if outputs.built or outputs.channel:
        raise StageError(f"{entry} wants to make a candidate or to move a channel: a stage of a workspace judges only",
                         hint=_RETURN)  # fmt: skip
    try:
        json.dumps(outputs.to_json())
    except (TypeError, ValueError) as error:
        raise StageError(f"{entry}: its summary is no JSON: {error}", hint="texts, numbers, lists and dicts") from error
    return outputs


def sources(root: Path, entry: str) -> str:
    """Return the hash of what the function's code stands in below the workspace's root: the top package, or the one module.

    `none` for a module from elsewhere: of that, only the stage's `version` tells.
    """
    top = entry.partition(":")[0].partition(".")[0]
    if (root / top).is_dir():
        return hash_files(root / top, [path for path in source_files(root / top) if path.endswith(".py")])
    return hash_files(root, [f"{top}.py"] if (root / f"{top}.py").is_file() else [])


def _find(entry: str) -> Callable[[StageInputs], object]:
    module, _, name = entry.partition(":")
    try:
        found: Callable[[StageInputs], object] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise StageError(
            f"{entry}: there is no module {error.name}", hint="put it below the workspace's root, or install it"
        ) from error
    except AttributeError as error:
        raise StageError(f"{entry}: the module has no {name}", hint=f"def {name}(inputs: StageInputs)") from error
    return found
