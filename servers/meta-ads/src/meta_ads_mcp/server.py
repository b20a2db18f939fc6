"""The MCP server of Meta Ads. Edit this file; `_generated` is overwritten when the API document changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from mcpfactory_runtime import Server

from . import __version__, graph, guides
from ._generated import api
from .accounts import account_overview
from .budgets import change_budget, plan_budget_increase
from .comparison import compare_periods
from .delivery import diagnose_delivery
from .link_ads import create_link_ad
from .reports import read_report, run_report
from .states import delete_object, set_status

api.upstream = graph.connection  # also for generated tools: rate limits, detailed errors, app secret proofs

server = Server(
    "meta-ads",
    version=__version__,
    title="Meta Ads",
    instructions=(
        "Facebook and Instagram advertising. A campaign holds ad sets, an ad set holds ads, an ad shows a creative; ad account IDs start with act_. "
        "Start with list_ad_accounts. account_overview shows running campaigns, compare_periods changes, get_insights any figure, run_report large "
        "reports, diagnose_delivery why something does not run. Everything is created paused. Budgets are changed by change_budget in the currency, "
        "states by set_status: both ask the user before spending increases. Budget fields of lists are in minor units (5000 is 50.00 USD, but 5000 JPY)."
    ),
)
server.mount_manifest(Path(__file__).parent / "_generated")

_READS: Final = {"readOnlyHint": True, "openWorldHint": True}
_MAKES: Final = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True}
_CHANGES: Final = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True}

for tool in (account_overview, compare_periods, diagnose_delivery, read_report):
    server.tool(annotations=_READS)(tool)
server.tool(annotations=_READS, task="optional")(run_report)
_WRITES: Final[tuple[tuple[Any, dict[str, bool]], ...]] = (
    (create_link_ad, _MAKES),
    (plan_budget_increase, _MAKES),
    (change_budget, _CHANGES),
    (set_status, _CHANGES),
    (delete_object, _CHANGES),
)
for function, hints in _WRITES:
    server.tool(annotations=hints)(function)
guides.add_to(server)


def main() -> None:
    """Serve MCP on stdin and stdout, or over HTTP with --http."""
    server.run()
