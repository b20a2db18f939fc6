"""Reports that are too large for one answer: Meta's asynchronous insights jobs, as tasks of MCP where the client has them."""

from __future__ import annotations

import asyncio
import json
import os
import time
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from mcpfactory_runtime import Context, ToolError

from . import graph
from .metrics import flat, number

__all__ = ["read_report", "run_report"]

Level = Literal["account", "campaign", "adset", "ad"]

_DEFAULT_FIELDS: Final = "campaign_name,adset_name,ad_name,impressions,clicks,spend,actions,action_values"
_STATUS: Final = (
    "async_status,async_percent_completion,date_start,date_stop,error_code,error_subcode,error_message,error_user_msg"
)
_ENDED: Final = {"Job Failed", "Job Skipped"}
_ROOM: Final = 80_000  # characters of rows in one answer: some 20,000 tokens, which clients still show whole
_LONGEST: Final = 3600.0  # seconds that a task waits for a job
_SLOWEST: Final = 15.0  # seconds between two looks at most


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise ToolError(f"{variable} is {text[:20]!r}.\nhint: the person who runs this server sets a number.") from None


def _progress(job: graph.Json) -> int:
    return int(number(job.get("async_percent_completion")))


def _finished(job: graph.Json) -> bool:
    """Return whether a job's rows can be read.

    Raises:
        ToolError: the job failed.
    """
    status = str(job.get("async_status", ""))
    if status in _ENDED:
        said = job.get("error_user_msg") or job.get("error_message") or "Meta says no more"
        raise ToolError(
            f"{status}: {said} (code {job.get('error_code', 0)}, error_subcode {job.get('error_subcode', 0)})\n"
            "hint: ask for a shorter period, a higher level, or fewer breakdowns and fields, and run the report again."
        )
    return status == "Job Completed" and _progress(job) == 100


async def _waited(run: str, ctx: Context) -> graph.Json:
    """Return the job when it has finished, or as it is when the time for an ordinary call is over."""
    pause = _seconds("META_ADS_POLL_SECONDS", 2.0)
    until = time.monotonic() + (_LONGEST if ctx.task_id else _seconds("META_ADS_WAIT_SECONDS", 45.0))
    while True:
        job = await graph.get(run, fields=_STATUS)
        await ctx.report_progress(_progress(job), 100, f"{job.get('async_status')}, {_progress(job)} %")
        if _finished(job) or time.monotonic() + pause > until:
            return job
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, _SLOWEST)


async def _told(run: str, job: graph.Json, most: int, after: str) -> dict[str, Any]:
    """Return the rows of a finished job, or how far it is."""
    if not _finished(job):
        return {
            "report_run_id": run,
            "status": job.get("async_status"),
            "percent": _progress(job),
            "rows": [],
            "next": f"The job goes on at Meta: call read_report with report_run_id {run} in a moment.",
        }
    rows, more = await graph.pages(run, "insights", most, after=after)
    fitting = _fitting(rows)
    if fitting < len(rows):  # once more, for the cursor of the first row that is left out
        rows, more = await graph.pages(run, "insights", fitting, after=after)
    told: dict[str, Any] = {
        "report_run_id": run,
        "status": job.get("async_status"),
        "percent": 100,
        "rows": [flat(row) for row in rows],
    }
    if job.get("date_start") and job.get("date_stop"):
        told["period"] = f"{job['date_start']} to {job['date_stop']}"
    if more:
        told |= {
            "after": more,
            "next": f'There are more rows: read_report with report_run_id {run} and after="{more}".',
        }
    return told


def _fitting(rows: list[graph.Json]) -> int:
    """Return how many rows one answer holds; at least one."""
    size = 0
    for index, row in enumerate(rows):
        size += len(json.dumps(flat(row), separators=(",", ":"), ensure_ascii=False)) + 1
        if size > _ROOM:
            return max(1, index)
    return len(rows)


def _check_days(since: str, until: str) -> None:
    """Refuse days that there are not.

    Raises:
        ToolError: a day is none, or the last is before the first.
    """
    try:
        first, last = (datetime.strptime(day, "%Y-%m-%d").date() for day in (since, until))
    except ValueError:
        raise ToolError(f"{since} to {until} is no period.\nhint: days have the form 2026-10-31.") from None
    if first > last:
        raise ToolError(f"{since} is after {until}.\nhint: since is the first day, until the last.")


async def run_report(
    object_id: Annotated[str, "An ad account (act_…), campaign, ad set or ad."],
    ctx: Context,
    level: Annotated[Level, "One row for each of these."] = "campaign",
    date_preset: Annotated[str, "A period by name: last_7d, last_30d, last_90d, last_month, this_year, maximum …"] = "",
    since: Annotated[str, "First day, YYYY-MM-DD, instead of date_preset."] = "",
    until: Annotated[str, "Last day, YYYY-MM-DD."] = "",
    fields: Annotated[
        list[str] | None, "Metrics and names; impressions, clicks, spend, actions and names when left out."
    ] = None,
    breakdowns: Annotated[list[str] | None, "Split by these, such as age, gender, country, publisher_platform."] = None,
    time_increment: Annotated[str, "Days of one row, such as 1; monthly; all_days."] = "",
    action_attribution_windows: Annotated[
        list[str] | None, "Count actions by these windows, such as 7d_click, 1d_view."
    ] = None,
    filtering: Annotated[
        list[dict[str, Any]] | None, 'Such as {"field": "spend", "operator": "GREATER_THAN", "value": 0}.'
    ] = None,
    max_rows: Annotated[int, "At most so many rows now; read_report gives the rest."] = 200,
) -> dict[str, Any]:
    """Make a large report: starts Meta's asynchronous job, waits for it and reads the rows.

    For long periods, many ads, days or breakdowns, where get_insights fails with "reduce the amount of data". Where the client knows tasks the report
    is one; otherwise a job that takes long goes on at Meta, and read_report gives its rows later. Actions come as {action type: value}.
    """
    most = _bounded(max_rows)
    if (since or until) and not (since and until):
        raise ToolError("since and until go together.\nhint: give both, or date_preset alone.")
    if since:
        _check_days(since, until)
    started = await graph.post(
        object_id,
        "insights",
        level=level,
        fields=",".join(fields) if fields else _DEFAULT_FIELDS,
        date_preset="" if since else date_preset or "last_30d",
        time_range={"since": since, "until": until} if since else "",
        breakdowns=",".join(breakdowns or ()),
        time_increment=time_increment,
        action_attribution_windows=action_attribution_windows,
        filtering=filtering,
    )
    run = str(started.get("report_run_id", ""))
    if not run:
        raise ToolError("Meta did not start the job: its answer has no report_run_id.\nhint: try again.")
    return await _told(run, await _waited(run, ctx), most, "")


async def read_report(
    report_run_id: Annotated[str, "The job, as run_report or start_insights_job gave it."],
    after: Annotated[str, "Where the next rows begin, as the last answer said."] = "",
    max_rows: Annotated[int, "At most so many rows."] = 200,
) -> dict[str, Any]:
    """Read the rows of a report that was started before, or see how far it is. Meta keeps reports for 30 days."""
    most = _bounded(max_rows)
    return await _told(report_run_id, await graph.get(report_run_id, fields=_STATUS), most, after)


def _bounded(rows: int) -> int:
    if not 1 <= rows <= 1000:
        raise ToolError(f"max_rows is {rows}.\nhint: give 1 to 1000.")
    return rows
