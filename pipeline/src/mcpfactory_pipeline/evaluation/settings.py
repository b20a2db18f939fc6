"""The table `[pipeline.evaluation]` of a workspace: whose reports count, and where models are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcpfactory_codegen.text import unknown_field
from mcpfactory_pipeline.evaluation.model import find_endpoint
from mcpfactory_pipeline.evaluation.model_report import read_prices
from mcpfactory_pipeline.workspace.workspace import Workspace, setting_error

__all__ = ["MODES", "EvaluationSettings", "read_evaluation"]

MODES: Final = ("full", "search")
_FIELDS: Final = ("models", "mode", "endpoints")
_ENDPOINT: Final = ("url", "key", "read", "written", "cached", "currency")
_ANY_KEY: Final = "none"


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """What a workspace says about models.

    Attributes:
        models: whose recorded reports count for the gate `min_pass_rate`; each of them must open it.
        mode: in which tools were offered in the reports that count.
        endpoints: model → `url`, `key` (the variable that has it), prices of a million tokens.
    """

    models: tuple[str, ...] = ()
    mode: str = "full"
    endpoints: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_evaluation(workspace: Workspace) -> EvaluationSettings:
    """Return the settings; nothing is set where there is no table.

    Raises:
        ConfigError: for what cannot be meant.
    """
    table = workspace.settings.get("evaluation", {})
    if not isinstance(table, dict):
        raise setting_error("pipeline.evaluation is no table", "write [pipeline.evaluation] on its own line")
    if found := unknown_field(table, _FIELDS, "pipeline.evaluation"):
        raise setting_error(*found)
    models, mode, endpoints = table.get("models", []), table.get("mode", "full"), table.get("endpoints", {})
    if not isinstance(models, list) or not all(isinstance(one, str) for one in models):
        raise setting_error("pipeline.evaluation: models is no list of names", 'models = ["openai:NAME"]')
    if mode not in MODES:
        raise setting_error(f"pipeline.evaluation: mode is {mode!r}", f"one of {', '.join(MODES)}")
    if not isinstance(endpoints, dict) or not all(isinstance(one, dict) for one in endpoints.values()):
        raise setting_error(
            "pipeline.evaluation: endpoints is no table of tables", '[pipeline.evaluation.endpoints."openai:NAME"]'
        )
    for name, one in endpoints.items():
        if found := unknown_field(one, _ENDPOINT, f"the endpoint of {name}"):
            raise setting_error(*found)
        read_prices(one)
    for name in (*models, *endpoints):
        find_endpoint(name, {"url": "http://localhost", "key": _ANY_KEY}, environ={})  # is it a name?
    return EvaluationSettings(tuple(models), mode, endpoints)
