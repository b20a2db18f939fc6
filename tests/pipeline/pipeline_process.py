"""The real `run_pipeline` and `promote` in a process of their own, with the cheap stages: `pipeline_process.py run|side|promote ROOT …`."""

from __future__ import annotations

import sys
from pathlib import Path

from mcpfactory_pipeline.decisions.promote import promote
from mcpfactory_pipeline.reporting import make_reporter
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import SIDE_BY_SIDE, STAGES


def main() -> None:
    _, action, root, *rest = sys.argv
    workspace = Workspace.find(Path(root))
    if action in {"run", "side"}:
        stages = STAGES if action == "run" else SIDE_BY_SIDE
        outcome = run_pipeline(workspace, rest, force=True, jobs=2, reporter=make_reporter("json"), stages=stages)
        sys.exit(130 if outcome.interrupted else int(outcome.failed or outcome.errored))
    server, channel, count = rest
    for number in range(int(count)):
        promote(workspace, server, channel, reason=f"{channel} {number}", stages=STAGES)


if __name__ == "__main__":  # what starts processes may load the module that was started
    main()
