from __future__ import annotations

import shutil
from typing import Any, Final

from mcpfactory_codegen.servers.server_files import Lockfile, LockfileError
from mcpfactory_pipeline.base.errors import StageError
from mcpfactory_pipeline.base.hashing import shorten_hash
from mcpfactory_pipeline.base.text import pluralize
from mcpfactory_pipeline.channels import contract
from mcpfactory_pipeline.plan.stage import StageInputs, StageOutputs
from mcpfactory_pipeline.workspace.coverage import coverage
from mcpfactory_pipeline.workspace.workspace import REPORT, Workspace

_BROKEN: Final = ("write", "internal")  # codes of a `CreateError` that the document did not cause


def run(inputs: StageInputs) -> StageOutputs:
    """Regenerate the generated files. A server without an API document passes."""
    server = Workspace.find(inputs.root).server(inputs.server)
    try:
        template = Lockfile.read(server.folder).template
    except LockfileError as error:
        return StageOutputs("failed", f"{error}; hint: {error.hint}")
    origin = {"template": shorten_hash(template)} if template else {}  # `views.drift` compares it with later versions
    if server.document is None:
        return StageOutputs("passed", "not made from an API document: nothing to generate", origin)
    from mcpfactory_codegen.servers.create import regenerate  # noqa: PLC0415 - heavy, and only this job needs it
    from mcpfactory_codegen.servers.generation import CreateError  # noqa: PLC0415 - heavy, and only this job needs it

    try:
        created = regenerate(server.folder)
    except CreateError as error:
        if error.code in _BROKEN:
            raise StageError(str(error), hint=error.hint) from error
        return StageOutputs("failed", f"{error}; hint: {error.hint}")
    _keep_tools(inputs)
    problems = created.problems
    errors = sum(problem.level == "error" for problem in problems)
    for problem in problems:
        print(f"{problem.level} {problem.code} at {problem.pointer or '/'}: {problem.message}")  # noqa: T201 - the log of the stage
    message = f"{created.tools} tools from {created.operations} operations"
    message += f", {pluralize(len(problems), 'problem')} in the document" if problems else ""
    summary: dict[str, Any] = {
        "tools": created.tools,
        "operations": created.operations,
        "problems": len(problems),
        "errors": errors,
        **origin,
    }
    summary |= {"coverage": coverage(server.folder, created.operations)}
    if not created.tools:
        return StageOutputs("failed", f"{message}: a server needs at least one tool; see the log", summary)
    return StageOutputs("passed", message, summary)


def _keep_tools(inputs: StageInputs) -> None:
    """Store the tool list and the report, so that approvals can show them."""
    manifest = inputs.folder / "src" / inputs.package.replace(".", "/") / "_generated" / "manifest.json"
    tools = contract.parse_contract(manifest.read_bytes(), manifest.name).tools
    inputs.keep.mkdir(parents=True, exist_ok=True)
    (inputs.keep / contract.FILE).write_text(contract.contract_to_text(tools), encoding="utf-8")
    shutil.copyfile(inputs.folder / REPORT, inputs.keep / "report.json")
