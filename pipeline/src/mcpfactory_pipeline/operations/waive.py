"""Accept the findings of a rule for a time."""

from __future__ import annotations

from datetime import date
from typing import Annotated, ClassVar

from pydantic import Field

from mcpfactory_pipeline.operations.fields import BY_PEOPLE, RequiredReason, Server
from mcpfactory_pipeline.operations.operation import Omitted, Operation, OperationContext, OperationResult, Param


class WaiveResult(OperationResult):
    """A recorded waiver."""

    server: str
    rule: str
    tool: str = ""
    person: str
    reason: str
    until: date
    offer: str = ""
    seen: str = ""
    covers: str = Field(default="", description="Drift that the waiver covers.")
    file: str = Field(description="File of the waiver, relative to the workspace.")


class Waive(Operation):
    """Accept the findings of a rule until a date, with a reason.

    The waiver records its author and reason, and is stored in waivers.toml in the server's folder.
    """

    command: ClassVar[str] = "waive"
    title: ClassVar[str] = "Waive"
    result: ClassVar[type[OperationResult]] = WaiveResult
    omit: ClassVar[Omitted] = {"mcp": BY_PEOPLE}

    rule: Annotated[str, Field(description="Rule ID, as shown in reports"), Param(argument=True, metavar="RULE")]
    server: Annotated[Server, Param(metavar="NAME", names="servers")]
    expires: Annotated[date, Field(description="Last day on which findings are accepted"), Param(metavar="YYYY-MM-DD")]
    reason: RequiredReason
    tool: Annotated[
        str, Field(description="Only findings about this tool [default: all]"), Param(metavar="TOOL", names="tools")
    ] = ""

    def run(self, context: OperationContext) -> WaiveResult:
        """Record the waiver."""
        from mcpfactory_pipeline.checks import waive  # noqa: PLC0415 - loads all rules

        made = waive.waive(
            context.workspace,
            self.server,
            self.rule,
            expires=self.expires,
            reason=self.reason,
            tool=self.tool,
            dry_run=context.dry_run,
            clock=context.clock,
        )
        about = f" for {self.tool}" if self.tool else ""
        message = f"{made['rule']}{about} is waived at {self.server} until {made['until']} by {made['person']}: {made['file']}"
        details = (made["covers"],) if made.get("covers") else ()
        return WaiveResult(message=message, details=details, **made)
