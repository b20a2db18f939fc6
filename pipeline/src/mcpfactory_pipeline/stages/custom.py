from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.text import did_you_mean
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_file, hash_files, list_source_files
from mcpfactory_pipeline.build.programs import run_program
from mcpfactory_pipeline.plan.stage import OUTCOMES, Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.workspace.policy import ApprovalStage, JobStage
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error


def custom_stages(workspace: Workspace) -> list[Stage]:
    """Return the stages in `[[pipeline.stages]]`."""
    return [
        _job(workspace, one) if isinstance(one, JobStage) else _approval(one)
        for one in workspace.settings.pipeline.stages
    ]


def _approval(settings: ApprovalStage) -> Stage:
    """Return an approval stage. By default, it shows the results of the stages that it needs."""
    needed = tuple(f"stage:{one}" for one in settings.needs if ":" not in one)
    return Stage(
        name=settings.name,
        needs=settings.needs,
        reads=needed if settings.shows is None else settings.shows,
        writes=(),
        version=1,
        check=True,
        settings={"message": settings.message} if settings.message else {},
        approval=settings,
        before=settings.before,
    )


def _job(workspace: Workspace, settings: JobStage) -> Stage:
    return Stage(
        name=settings.name,
        needs=settings.needs,
        reads=settings.reads,
        writes=("checks",),
        version=settings.version,
        run=f"{__name__}:{'run_command' if settings.entry is None else 'run_entry'}",
        timeout=settings.timeout,
        memory=settings.memory,
        check=True,
        caller_environ=True,
        settings=_inputs(workspace, settings),
        before=settings.before,
        soak=settings.soak,
        rollback=settings.on_failure == "rollback",
    )


def _inputs(workspace: Workspace, settings: JobStage) -> dict[str, Any]:
    """Return a stage's settings, and the hash of the workspace code that the stage runs."""
    if settings.entry is not None:
        sources = hash_function_source(workspace.root, settings.entry)
        return {"entry": settings.entry, "settings": settings.settings, "sources": sources}
    words = list(settings.command or ())
    scripts = {part: content for part in words if (content := hash_file(workspace.root / part)) != "none"}
    return {"command": words, "scripts": scripts}


def check_restart(stage: Stage, before: set[str]) -> None:
    """Check that a rejection restarts an earlier stage."""
    if stage.approval and stage.approval.restart and stage.approval.restart not in before:
        raise setting_error(
            f"stage {stage.name}: 'on_rejection' must be an earlier stage, not {stage.approval.restart!r}",
            did_you_mean(stage.approval.restart, sorted(before), "stages"),
        )


_RETURN: Final = 'return StageOutputs("passed", "what was found")'


def run_command(inputs: StageInputs) -> StageOutputs:
    """Run the command in the workspace's root. Variables describe the job (how-to/write-a-stage)."""
    environ = {
        **os.environ,
        "MCPFACTORY_SERVER": inputs.server,
        "MCPFACTORY_SERVER_FOLDER": str(inputs.folder),
        "MCPFACTORY_CANDIDATE": inputs.candidate.id if inputs.candidate else "",
        "MCPFACTORY_WHEEL": str(inputs.candidate.offered) if inputs.candidate else "",
        "MCPFACTORY_REPORTS": str(inputs.keep),
        "MCPFACTORY_REJECTION": inputs.rejection,
    }
    inputs.keep.mkdir(parents=True, exist_ok=True)
    command = list(inputs.settings["command"])
    code = run_program(command, cwd=inputs.root, environ=environ)
    if code < 0:
        return StageOutputs("errored", f"{command[0]} was ended by signal {-code}")
    return StageOutputs("passed" if code == 0 else "failed", f"{command[0]} ended with exit {code}", {"exit": code})


def run_entry(inputs: StageInputs) -> StageOutputs:
    """Call the workspace's function."""
    entry = str(inputs.settings["entry"])
    sys.path.insert(0, str(inputs.root))
    function = _find_function(entry)
    outputs = function(replace(inputs, settings=dict(inputs.settings["settings"])))
    if not isinstance(outputs, StageOutputs):
        raise StageError(f"{entry} returned {type(outputs).__name__} instead of StageOutputs", hint=_RETURN)
    if outputs.outcome not in OUTCOMES:
        raise StageError(
            f"{entry} returned the unknown outcome {outputs.outcome!r}", hint=f"return one of {', '.join(OUTCOMES)}"
        )
    if outputs.built or outputs.channel:
        raise StageError(
            f"{entry} must not build or promote a candidate: a custom stage can only return a verdict",
            hint=_RETURN,
        )
    try:
        json.dumps(outputs.to_json())
    except (TypeError, ValueError) as error:
        raise StageError(
            f"{entry}: the returned summary is not valid JSON: {error}", hint="use strings, numbers, lists and dicts"
        ) from error
    return outputs


def hash_function_source(root: Path, entry: str) -> str:
    """Return the hash of the workspace package, or else of the workspace module, that contains a function.

    The hash is `none` if the function is outside the workspace. After a change of code outside the workspace, increase
    the stage's `version`.
    """
    top = entry.partition(":")[0].partition(".")[0]
    if (root / top).is_dir():
        return hash_files(root / top, [path for path in list_source_files(root / top) if path.endswith(".py")])
    return hash_files(root, [f"{top}.py"] if (root / f"{top}.py").is_file() else [])


def _find_function(entry: str) -> Callable[[StageInputs], object]:
    module, _, name = entry.partition(":")
    try:
        found: Callable[[StageInputs], object] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise StageError(
            f"{entry}: no module {error.name}",
            hint="put the module into the root folder of the workspace, or install the module",
        ) from error
    except AttributeError as error:
        raise StageError(f"{entry}: the module has no {name}", hint=f"add def {name}(inputs: StageInputs)") from error
    return found
