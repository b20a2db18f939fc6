"""Tools for large reports by Meta's asynchronous insights jobs, as MCP tasks if the client supports them."""

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
_ROOM: Final = 80_000  # characters of rows in one result: about 20,000 tokens, which clients do not truncate
_LONGEST: Final = 3600.0  # seconds that a task waits for a job
_SLOWEST: Final = 15.0  # maximum seconds between two polls


def _seconds(variable: str, default: float) -> float:
    text = os.environ.get(variable, "").strip()
    try:
        return float(text) if text else default
    except ValueError:
        raise ToolError(f"{variable} is {text[:20]!r}.\nhint: the operator must set it to a number.") from None


def _progress(job: graph.Json) -> int:
    return int(number(job.get("async_percent_completion")))


def _finished(job: graph.Json) -> bool:
    """Return True if a job's rows can be read.

    Raises:
        ToolError: the job failed.
    """
    status = str(job.get("async_status", ""))
    if status in _ENDED:
        said = job.get("error_user_msg") or job.get("error_message") or "Meta gives no reason"
        raise ToolError(
            f"{status}: {said} (code {job.get('error_code', 0)}, error_subcode {job.get('error_subcode', 0)})\n"
            "hint: ask for a shorter period, a higher level, or fewer breakdowns and fields, and run the report again."
        )
    return status == "Job Completed" and _progress(job) == 100


async def _waited(run: str, ctx: Context) -> graph.Json:
    """Wait for a job, and return its state when it has finished or the time is over."""
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
    """Return the rows of a finished job, or its progress."""
    if not _finished(job):
        return {
            "report_run_id": run,
            "status": job.get("async_status"),
            "percent": _progress(job),
            "rows": [],
            "next": f"The job is still running: call read_report with report_run_id {run} in a moment.",
        }
    rows, more = await graph.pages(run, "insights", most, after=after)
    fitting = _fitting(rows)
    if fitting < len(rows):  # read again, for the cursor after the last row that fits
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
    """Return the number of rows that fit in one result, at least 1."""
    size = 0
    for index, row in enumerate(rows):
        size += len(json.dumps(flat(row), separators=(",", ":"), ensure_ascii=False)) + 1
        if size > _ROOM:
            return max(1, index)
    return len(rows)


def _check_days(since: str, until: str) -> None:
    """Refuse an invalid period.

    Raises:
        ToolError: a day is invalid, or the last is before the first.
    """
    try:
        first, last = (datetime.strptime(day, "%Y-%m-%d").date() for day in (since, until))
    except ValueError:
        raise ToolError(f"{since} to {until} is not a valid period.\nhint: days have the form 2026-10-31.") from None
    if first > last:
        raise ToolError(f"{since} is after {until}.\nhint: since is the first day, until the last.")


async def run_report(
    object_id: Annotated[str, "ID of an ad account (act_…), campaign, ad set or ad."],
    ctx: Context,
    level: Annotated[Level, "Kind of objects with one row each."] = "campaign",
    date_preset: Annotated[str, "Named period: last_7d, last_30d, last_90d, last_month, this_year, maximum …"] = "",
    since: Annotated[str, "First day, YYYY-MM-DD, instead of date_preset."] = "",
    until: Annotated[str, "Last day, YYYY-MM-DD."] = "",
    fields: Annotated[
        list[str] | None, "Metrics and names [default: impressions, clicks, spend, actions and names]."
    ] = None,
    breakdowns: Annotated[list[str] | None, "Dimensions, such as age, gender, country, publisher_platform."] = None,
    time_increment: Annotated[str, "Days per row, such as 1; monthly; all_days."] = "",
    action_attribution_windows: Annotated[
        list[str] | None, "Windows to count actions by, such as 7d_click, 1d_view."
    ] = None,
    filtering: Annotated[
        list[dict[str, Any]] | None, 'Filters, such as {"field": "spend", "operator": "GREATER_THAN", "value": 0}.'
    ] = None,
    max_rows: Annotated[int, "Maximum number of rows; read_report returns the rest."] = 200,
) -> dict[str, Any]:
    """Make a large report: start Meta's asynchronous job, wait for it and read the rows.

    For long periods, many ads, days or breakdowns, if get_insights fails with "reduce the amount of data". It is an MCP task if the client supports
    tasks; otherwise a long job continues at Meta, and read_report returns its rows later. Actions are returned as {action type: value}.
    """
    most = _bounded(max_rows)
    if (since or until) and not (since and until):
        raise ToolError("since and until must be given together.\nhint: give both, or only date_preset.")
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
    report_run_id: Annotated[str, "ID of the job, from run_report or start_insights_job."],
    after: Annotated[str, "Cursor of the next rows, from the previous result."] = "",
    max_rows: Annotated[int, "Maximum number of rows."] = 200,
) -> dict[str, Any]:
    """Read the rows of a report that was started before, or its progress. Meta keeps reports for 30 days."""
    most = _bounded(max_rows)
    return await _told(report_run_id, await graph.get(report_run_id, fields=_STATUS), most, after)


def _bounded(rows: int) -> int:
    if not 1 <= rows <= 1000:
        raise ToolError(f"max_rows is {rows}.\nhint: give 1 to 1000.")
    return rows
