"""Stages that a workspace adds: commands and approvals."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mcpfactory_codegen.text import listed, unknown_field
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import hash_file, hash_files, source_files
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.build.programs import run_program
from mcpfactory_pipeline.plan.fingerprint import SHOWN
from mcpfactory_pipeline.plan.policy import read_duration
from mcpfactory_pipeline.plan.stage import (
    AGENT_DECISIONS,
    MEMORY,
    OUTCOMES,
    ApprovalPolicy,
    Stage,
    StageInputs,
    StageOutputs,
    read_memory,
    read_timeout,
)
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error


def read_texts(table: Mapping[str, Any], stage: str, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of texts, `default` when the table does not have it.

    Raises:
        ConfigError: for anything else.
    """
    value = table.get(key, default)
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        example = default[0] if default else "build"
        raise setting_error(f"stage {stage}: {key} must be a list of strings", f'{key} = ["{example}"]')
    return tuple(value)


_APPROVAL_FIELDS: Final = (
    "name", "kind", "needs", "before", "shows", "approvals", "approvers", "message", "on_rejection", "signed",
    "agents",
)  # fmt: skip
_RESTART: Final = "restart:"


def approval_stage(name: str, table: Mapping[str, Any]) -> Stage:
    """Return the stage of a table with `kind = "approval"`; by default it shows what the stages found that it needs.

    Raises:
        ConfigError: on one that cannot be used.
    """
    if found := unknown_field(table, _APPROVAL_FIELDS, f"stage {name}"):
        raise setting_error(*found)
    needs = read_texts(table, name, "needs", ("build",))
    shows = read_texts(table, name, "shows", tuple(f"stage:{one}" for one in needs if ":" not in one))
    for part in shows:
        kind, colon, rest = part.partition(":")
        if not colon or kind not in SHOWN or not rest or ".." in PurePosixPath(rest).parts or rest.startswith("/"):
            raise setting_error(
                f"stage {name}: shows has the invalid entry {part!r}", 'shows = ["stage:validate", "file:README.md"]'
            )
    message = table.get("message", "")
    if not isinstance(message, str):
        raise setting_error(
            f"stage {name}: message must be a string", 'message = "Are these the tools that callers need?"'
        )
    return Stage(
        name=name,
        needs=needs,
        reads=shows,
        writes=(),
        version=1,
        run=never_run,
        check=True,
        settings={"message": message} if message else {},
        approval=_policy(name, table, message),
        before=read_texts(table, name, "before", ()),
    )


def _policy(name: str, table: Mapping[str, Any], message: str) -> ApprovalPolicy:
    approvals, approvers = table.get("approvals", 1), read_texts(table, name, "approvers", ())
    if not isinstance(approvals, int) or isinstance(approvals, bool) or not 1 <= approvals <= 20:
        raise setting_error(
            f"stage {name}: approvals is {approvals!r}, but must be a number from 1 to 20", "approvals = 1"
        )
    if approvers and len(set(approvers)) < approvals:
        raise setting_error(
            f"stage {name} requires {approvals} approvals, but names only {pluralize(len(set(approvers)), 'approver')}",
            "name more approvers",
        )
    rejected = table.get("on_rejection", "stop")
    if rejected != "stop" and not (isinstance(rejected, str) and rejected.removeprefix(_RESTART) not in {rejected, ""}):
        raise setting_error(
            f"stage {name}: on_rejection is {rejected!r}, which is not valid",
            'use "stop", or "restart:" and the name of an earlier stage',
        )
    restart = "" if rejected == "stop" else rejected.removeprefix(_RESTART)
    if not isinstance(signed := table.get("signed", False), bool):
        raise setting_error(f"stage {name}: signed is {signed!r}, but must be true or false", "signed = true")
    return ApprovalPolicy(
        approvals, tuple(approvers), message, restart, signed, _agents(name, table.get("agents", False))
    )


def _agents(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return AGENT_DECISIONS if value else ()
    if not isinstance(value, list) or not all(one in AGENT_DECISIONS for one in value):
        raise setting_error(
            f"stage {name}: agents is {value!r}, which is not valid",
            f"use true, or a list of {', '.join(AGENT_DECISIONS)}",
        )
    return tuple(one for one in AGENT_DECISIONS if one in value)


def check_restart(stage: Stage, before: set[str]) -> None:
    """Raise an error if a stage sends the work back to a stage that is not before it.

    Raises:
        ConfigError: the restart target is not an earlier stage; the hint lists the earlier ones.
    """
    if stage.approval and stage.approval.restart and stage.approval.restart not in before:
        raise setting_error(
            f"stage {stage.name}: on_rejection names {stage.approval.restart!r}, which is not an earlier stage",
            listed(stage.approval.restart, sorted(before), "stages"),
        )


def never_run(_inputs: StageInputs) -> StageOutputs:
    """Stand in for the function of a stage that people decide.

    Raises:
        StageError: always.
    """
    raise StageError(
        "this stage is approved or rejected, not run", hint="mcpfactory pipeline approve NAME --stage STAGE"
    )


_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")
_ENTRY: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_READS: Final = ("source", "tests", "candidate", "document", "config", "generated", "runtime")
_FIELDS: Final = (
    "name", "kind", "command", "entry", "settings", "needs", "before", "reads", "version", "timeout", "memory", "soak", "on_failure",
)  # fmt: skip
_KINDS: Final = ("job", "approval")
_RETURN: Final = 'return StageOutputs("passed", "what was found")'


def own_stages(workspace: Workspace) -> list[Stage]:
    """Return the stages of `[[pipeline.stages]]`, in their order.

    Raises:
        ConfigError: on one that cannot be used.
    """
    tables = workspace.settings.get("stages", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise setting_error("pipeline.stages is not a list of tables", "write [[pipeline.stages]] before each stage")
    return [_stage(workspace, table) for table in tables]


def _stage(workspace: Workspace, table: Mapping[str, Any]) -> Stage:
    name = table.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise setting_error(
            f"stage name {name!r} is invalid: use lower-case letters, digits and dashes", 'name = "licences"'
        )
    if (kind := table.get("kind", "job")) not in _KINDS:
        raise setting_error(f"stage {name}: kind is {kind!r}, which is not valid", f"use one of {', '.join(_KINDS)}")
    if kind == "approval":
        return approval_stage(name, table)
    if found := unknown_field(table, _FIELDS, f"stage {name}"):
        raise setting_error(*found)
    reads, needs = read_texts(table, name, "reads", ("candidate",)), read_texts(table, name, "needs", ("build",))
    if wrong := [one for one in reads if one not in _READS]:
        raise setting_error(f"stage {name} reads the unknown input {wrong[0]!r}", listed(wrong[0], _READS, "inputs"))
    version = table.get("version", 1)
    if not isinstance(version, int):
        raise setting_error(f"stage {name}: version is not a whole number", "version = 2")
    if (on_failure := table.get("on_failure", "stop")) not in {"stop", "rollback"}:
        raise setting_error(
            f"stage {name}: on_failure is {on_failure!r}, which is not valid", 'on_failure = "stop", or "rollback"'
        )
    return Stage(
        name=name,
        needs=needs,
        reads=reads,
        writes=("checks",),
        version=version,
        run=run_entry if "entry" in table else run_command,
        timeout=read_timeout(table.get("timeout", 600), name),
        memory=read_memory(table.get("memory", MEMORY), name),
        check=True,
        caller_environ=True,
        settings=_settings(workspace, name, table),
        before=read_texts(table, name, "before", ()),
        soak=read_duration(table.get("soak", "0s"), f"stage {name}: soak"),
        rollback=on_failure == "rollback",
    )


def _settings(workspace: Workspace, name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the stage, which count as an input: also the hash of the workspace's code that it runs."""
    if "entry" in table and "command" in table:
        raise setting_error(f"stage {name} has both a command and an entry", "remove one of the two")
    if "entry" in table:
        where, own = table["entry"], table.get("settings", {})
        if not isinstance(where, str) or not _ENTRY.fullmatch(where):
            raise setting_error(
                f"stage {name}: entry is {where!r}, which is not valid", 'entry = "tools.licences:stage"'
            )
        if not isinstance(own, dict) or not _is_json(own):
            raise setting_error(f"stage {name}: settings must be a table of plain values", "settings = { most = 10 }")
        return {"entry": where, "settings": own, "sources": hash_sources(workspace.root, where)}
    words = table.get("command")
    if not isinstance(words, list) or not words or not all(isinstance(part, str) for part in words):
        raise setting_error(
            f"stage {name}: command must be a list of strings", 'command = ["python", "tools/licences.py"]'
        )
    if "settings" in table:
        raise setting_error(
            f"stage {name}: settings are only for an entry", "pass the settings to the command as arguments"
        )
    scripts = {part: content for part in words if (content := hash_file(workspace.root / part)) != "none"}
    return {"command": words, "scripts": scripts}


def _is_json(value: object) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):  # a date of TOML
        return False
    return True


def run_command(inputs: StageInputs) -> StageOutputs:
    """Run the command in the workspace's root. What it is about stands in its environment (how-to/write-a-stage)."""
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
    """Call the workspace's function.

    Raises:
        StageError: when it is not there, or gives what no stage may give.
    """
    entry = str(inputs.settings["entry"])
    sys.path.insert(0, str(inputs.root))
    function = _find_function(entry)
    outputs = function(replace(inputs, settings=dict(inputs.settings["settings"])))
    if not isinstance(outputs, StageOutputs):
        raise StageError(f"{entry} returned {type(outputs).__name__} instead of StageOutputs", hint=_RETURN)
    if outputs.outcome not in OUTCOMES:
        raise StageError(
            f"{entry} returned the unknown outcome {outputs.outcome!r}", hint=f"outcomes: {', '.join(OUTCOMES)}"
        )
    if outputs.built or outputs.channel:
        raise StageError(
            f"{entry} must not make a candidate or move a channel: a stage of a workspace only returns a verdict",
            hint=_RETURN,
        )
    try:
        json.dumps(outputs.to_json())
    except (TypeError, ValueError) as error:
        raise StageError(
            f"{entry}: its summary is not valid JSON: {error}", hint="use strings, numbers, lists and dicts"
        ) from error
    return outputs


def hash_sources(root: Path, entry: str) -> str:
    """Return the hash of the function's code below the workspace root: the top package, or the single module.

    The hash is `none` for a module from elsewhere: changes there are only visible by the stage's `version`.
    """
    top = entry.partition(":")[0].partition(".")[0]
    if (root / top).is_dir():
        return hash_files(root / top, [path for path in source_files(root / top) if path.endswith(".py")])
    return hash_files(root, [f"{top}.py"] if (root / f"{top}.py").is_file() else [])


def _find_function(entry: str) -> Callable[[StageInputs], object]:
    module, _, name = entry.partition(":")
    try:
        found: Callable[[StageInputs], object] = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise StageError(
            f"{entry}: no module {error.name}", hint="put it below the workspace's root, or install it"
        ) from error
    except AttributeError as error:
        raise StageError(f"{entry}: the module has no {name}", hint=f"add def {name}(inputs: StageInputs)") from error
    return found
