"""`generate`: the machine's files, made anew from the API document."""

from __future__ import annotations

from mcpfactory_pipeline.stage import Stage, StageInputs, StageOutputs
from mcpfactory_pipeline.workspace import Workspace

__all__ = ["STAGE"]


def run(inputs: StageInputs) -> StageOutputs:
    """Writes the generated files again. A server that is not made from a document has none, and passes."""
    server = Workspace.find(inputs.root).server(inputs.server)
    if server.document is None:
        return StageOutputs("passed", "not made from an API document: nothing to generate")
    from mcpfactory_codegen.create import regenerate  # noqa: PLC0415 - heavy, and only this job needs it

    created = regenerate(server.folder)
    errors = sum(problem.level == "error" for problem in created.problems)
    return StageOutputs(
        "passed",
        f"{created.tools} tools from {created.operations} operations"
        + (f", {len(created.problems)} problems in the document" if created.problems else ""),
        {"tools": created.tools, "operations": created.operations, "problems": len(created.problems), "errors": errors},
    )


STAGE = Stage(
    name="generate",
    needs=(),
    reads=("document", "config", "generated", "template", "codegen"),
    writes=("generated",),
    version=1,
    run=run,
    timeout=300,
)
