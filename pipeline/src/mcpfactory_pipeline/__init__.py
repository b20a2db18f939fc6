"""The public API of the pipeline, for programs and for a workspace's own stages (docs/reference/pipeline.md).

Import only names in `__all__`, because their modules may move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcpfactory_pipeline.base.errors import PipelineError as PipelineError
    from mcpfactory_pipeline.channels.candidate import prune as prune
    from mcpfactory_pipeline.decisions.decision import approve as approve
    from mcpfactory_pipeline.decisions.decision import hold as hold
    from mcpfactory_pipeline.decisions.decision import reject as reject
    from mcpfactory_pipeline.decisions.decision import retire as retire
    from mcpfactory_pipeline.decisions.decision import revive as revive
    from mcpfactory_pipeline.decisions.decision import unhold as unhold
    from mcpfactory_pipeline.decisions.promote import promote as promote
    from mcpfactory_pipeline.decisions.promote import promote_due as promote_due
    from mcpfactory_pipeline.decisions.promote import rollback as rollback
    from mcpfactory_pipeline.decisions.restore import restore as restore
    from mcpfactory_pipeline.decisions.restore import restore_candidate_files as restore_candidate_files
    from mcpfactory_pipeline.plan.stage import Stage as Stage
    from mcpfactory_pipeline.plan.stage import StageInputs as StageInputs
    from mcpfactory_pipeline.plan.stage import StageOutputs as StageOutputs
    from mcpfactory_pipeline.run.run import plan_servers as plan_servers
    from mcpfactory_pipeline.run.run import run_pipeline as run_pipeline
    from mcpfactory_pipeline.state.store import Store as Store
    from mcpfactory_pipeline.state.verify import repair as repair
    from mcpfactory_pipeline.state.verify import verify as verify
    from mcpfactory_pipeline.views.inbox import next_commands as next_commands
    from mcpfactory_pipeline.views.inbox import read_inbox as read_inbox
    from mcpfactory_pipeline.views.status import history as history
    from mcpfactory_pipeline.views.status import status as status
    from mcpfactory_pipeline.workspace.workspace import Workspace as Workspace

# Module → its public names. A name is imported at first use (PEP 562), so that each command loads few modules.
_NAMES: Final = {
    "base.errors": "PipelineError",
    "channels.candidate": "prune",
    "decisions.decision": "approve hold reject unhold retire revive",
    "decisions.promote": "promote promote_due rollback",
    "decisions.restore": "restore restore_candidate_files",
    "plan.stage": "Stage StageInputs StageOutputs",
    "run.run": "plan_servers run_pipeline",
    "state.store": "Store",
    "state.verify": "repair verify",
    "views.inbox": "next_commands read_inbox",
    "views.status": "history status",
    "workspace.workspace": "Workspace",
}
_WHERE: Final = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_WHERE]  # noqa: PLE0604 - `_NAMES` above has the names


def __getattr__(name: str) -> Any:
    module = _WHERE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - loaded only when a name is first used

    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
