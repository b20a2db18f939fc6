"""Stage `evaluate`: judge the candidate by recorded model reports (`mcpfactory evaluate --report`).

The stage does not ask a model. A report is valid for one tool list and one set of cases. Without a valid report, the
gate stays closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpfactory_pipeline.base.errors import ConfigError, StageError, StateError
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs


def run(inputs: StageInputs) -> StageOutputs:
    """Compare the recorded evaluations with the candidate's tool list and the cases."""
    from mcpfactory_pipeline.checks.evaluation.evaluation_reports import judge_recorded_report  # noqa: PLC0415 - heavy
    from mcpfactory_pipeline.workspace.evaluation_case import read_evaluation_cases  # noqa: PLC0415 - heavy

    candidate = inputs.built_candidate
    kept = contract.stored_contract(candidate.folder)
    if kept is None or not (candidate.folder / "validate" / contract.FILE).is_file():
        raise StageError(
            f"the tool list of {candidate.id} is not on this machine",
            hint=f"mcpfactory pipeline run {inputs.server} --force",
        )
    try:
        cases = read_evaluation_cases(inputs.folder)
        mode = str(inputs.settings.get("mode", "full"))
        places: Mapping[str, str] = inputs.settings.get("endpoints", {})
        found: dict[str, dict[str, Any]] = {
            str(model): judge_recorded_report(
                inputs.folder,
                inputs.server,
                str(model),
                mode,
                tools=kept.tools,
                cases=cases,
                endpoint=places.get(str(model), ""),
            )
            for model in inputs.settings.get("models", ())
        }
    except (ConfigError, StateError) as error:
        return StageOutputs("failed", f"{error}; hint: {error.hint}")
    said = [_not_counted(one) or f"{one['rate']:.0%}, at least {one['lower']:.0%}" for one in found.values()]
    words = "; ".join(f"{model}: {text}" for model, text in zip(found, said, strict=True))
    return StageOutputs("passed", words, {"models": found, "cases": len(cases)})


def _not_counted(found: Mapping[str, Any]) -> str:
    return f"nothing is known, and gates stay closed: {found['why']}" if found.get("why") else ""
