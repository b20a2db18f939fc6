"""The real `run_pipeline` in a separate process, with the fake stages: `pipeline_process.py ROOT SERVER …`."""

from __future__ import annotations

import sys
from pathlib import Path

from mcpfactory_pipeline.reporting import make_reporter
from mcpfactory_pipeline.run.run import run_pipeline
from mcpfactory_pipeline.workspace.workspace import Workspace
from tests.pipeline.fake_stages import STAGES


def main() -> None:
    _, root, *names = sys.argv
    workspace = Workspace.find(Path(root))
    outcome = run_pipeline(workspace, names, force=True, jobs=2, reporter=make_reporter("json"), stages=STAGES)
    sys.exit(130 if outcome.interrupted else int(outcome.failed or outcome.errored))


if __name__ == "__main__":  # process starters can import the main module again
    main()
