"""Results by period.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any, Literal

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Paging, Parameter, Unset, Upstream

GET_INSIGHTS = Operation(
    "GET",
    "/{object_id}/insights",
    parameters=(
        Parameter("object_id", "path", "object_id"),
        Parameter("fields", "query", "fields", style="form", explode=False),
        Parameter("level", "query", "level"),
        Parameter("date_preset", "query", "date_preset"),
        Parameter("time_range", "query", "time_range", content_type="application/json"),
        Parameter("time_ranges", "query", "time_ranges", content_type="application/json"),
        Parameter("time_increment", "query", "time_increment"),
        Parameter("breakdowns", "query", "breakdowns", style="form", explode=False),
        Parameter("action_breakdowns", "query", "action_breakdowns", style="form", explode=False),
        Parameter("action_attribution_windows", "query", "action_attribution_windows", content_type="application/json"),
        Parameter("use_account_attribution_setting", "query", "use_account_attribution_setting"),
        Parameter("action_report_time", "query", "action_report_time"),
        Parameter("filtering", "query", "filtering", content_type="application/json"),
        Parameter("sort", "query", "sort", style="form", explode=False),
        Parameter("limit", "query", "limit"),
        Parameter("after", "query", "after"),
    ),
    security=(("token",),),
    paging=Paging("cursor", "after", next=("paging", "next"), items=("data",), size="limit", limit=25),
)
START_INSIGHTS_JOB = Operation(
    "POST",
    "/{object_id}/insights",
    parameters=(Parameter("object_id", "path", "object_id"),),
    body=Body(
        "application/x-www-form-urlencoded",
        (
            Field("fields", ("fields",), style="form", explode=False),
            Field("level", ("level",)),
            Field("date_preset", ("date_preset",)),
            Field("time_range", ("time_range",), content_type="application/json"),
            Field("time_increment", ("time_increment",)),
            Field("breakdowns", ("breakdowns",), style="form", explode=False),
            Field("action_breakdowns", ("action_breakdowns",), style="form", explode=False),
            Field("action_attribution_windows", ("action_attribution_windows",), content_type="application/json"),
            Field("filtering", ("filtering",), content_type="application/json"),
            Field("sort", ("sort",), style="form", explode=False),
        ),
        required=True,
    ),
    security=(("token",),),
)
GET_INSIGHTS_JOB = Operation(
    "GET", "/{report_run_id}", parameters=(Parameter("report_run_id", "path", "report_run_id"),), security=(("token",),)
)


async def get_insights(
    api: Upstream,
    /,
    *,
    object_id: str,
    fields: list[str] | Unset = UNSET,
    level: Literal["account", "campaign", "adset", "ad"] | Unset = UNSET,
    date_preset: str | Unset = UNSET,
    time_range: dict[str, Any] | Unset = UNSET,
    time_ranges: list[dict[str, Any]] | Unset = UNSET,
    time_increment: str | Unset = UNSET,
    breakdowns: list[str] | Unset = UNSET,
    action_breakdowns: list[str] | Unset = UNSET,
    action_attribution_windows: list[
        Literal["1d_click", "7d_click", "28d_click", "1d_view", "1d_ev", "dda", "default", "skan_click", "skan_view"]
    ]
    | Unset = UNSET,
    use_account_attribution_setting: bool | Unset = UNSET,
    action_report_time: Literal["impression", "conversion", "mixed", "lifetime"] | Unset = UNSET,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    sort: list[str] | Unset = UNSET,
    limit: int | Unset = UNSET,
    after: str | Unset = UNSET,
) -> ToolResult:
    """Get spend and results.

    GET /{object_id}/insights

    Args:
        api: the connection that the tools share.
        object_id: An ad account (act_…), campaign, ad set or ad id; or the report_run_id of a finished job
        fields: Which fields to return; others of the object may be named, too
        level: One row for each of these
        date_preset: A period by its name, in the account's time zone. Not together with time_range
        time_range: A period by its first and last day, both included
        time_ranges: Several periods, to compare them; each gets rows of its own
        time_increment: Days of one row, 1 to 90; monthly; or all_days
        breakdowns: Split rows by these. Not all combinations are permitted; see the resource
            meta-ads://breakdowns
        action_breakdowns: Split actions by these
        action_attribution_windows: Count actions by these windows, each in a member of its own (1d_view,
            7d_click)
        use_account_attribution_setting: Count by the account's attribution setting
        action_report_time: Count an action on the day of the impression, or of the conversion
        filtering: Only what meets all of these conditions
        sort: Order: a field with _ascending or _descending
        limit: At most so many in one answer
        after: Cursor of the next page
    """
    return await api.send(
        GET_INSIGHTS,
        {
            "object_id": object_id,
            "fields": [
                "campaign_name",
                "adset_name",
                "ad_name",
                "impressions",
                "reach",
                "clicks",
                "ctr",
                "spend",
                "cpc",
                "cpm",
                "actions",
                "action_values",
                "purchase_roas",
            ]
            if fields is UNSET
            else fields,
            "level": level,
            "date_preset": date_preset,
            "time_range": time_range,
            "time_ranges": time_ranges,
            "time_increment": time_increment,
            "breakdowns": breakdowns,
            "action_breakdowns": action_breakdowns,
            "action_attribution_windows": action_attribution_windows,
            "use_account_attribution_setting": use_account_attribution_setting,
            "action_report_time": action_report_time,
            "filtering": filtering,
            "sort": sort,
            "limit": limit,
            "after": after,
        },
    )


async def start_insights_job(
    api: Upstream,
    /,
    *,
    object_id: str,
    fields: list[str] | Unset = UNSET,
    level: Literal["account", "campaign", "adset", "ad"] | Unset = UNSET,
    date_preset: str | Unset = UNSET,
    time_range: dict[str, Any] | Unset = UNSET,
    time_increment: str | Unset = UNSET,
    breakdowns: list[str] | Unset = UNSET,
    action_breakdowns: list[str] | Unset = UNSET,
    action_attribution_windows: list[
        Literal["1d_click", "7d_click", "28d_click", "1d_view", "1d_ev", "dda", "default", "skan_click", "skan_view"]
    ]
    | Unset = UNSET,
    filtering: list[dict[str, Any]] | Unset = UNSET,
    sort: list[str] | Unset = UNSET,
) -> ToolResult:
    """Start an asynchronous insights job.

    POST /{object_id}/insights

    Args:
        api: the connection that the tools share.
        object_id: An ad account (act_…), campaign, ad set or ad id; or the report_run_id of a finished job
        fields: Metrics and names to return
        level: One row for each of these
        date_preset: Periods end with yesterday unless they are called today or this_…; maximum is 37 months
        time_range: First and last day
        time_increment: Days of one row, 1 to 90; monthly; or all_days
        breakdowns: Split rows by these
        action_breakdowns: Split actions by these
        action_attribution_windows: Count actions by these windows
        filtering: Only rows that meet all of these
        sort: Order: a field with _ascending or _descending
    """
    return await api.send(
        START_INSIGHTS_JOB,
        {
            "object_id": object_id,
            "fields": fields,
            "level": level,
            "date_preset": date_preset,
            "time_range": time_range,
            "time_increment": time_increment,
            "breakdowns": breakdowns,
            "action_breakdowns": action_breakdowns,
            "action_attribution_windows": action_attribution_windows,
            "filtering": filtering,
            "sort": sort,
        },
    )


async def get_insights_job(api: Upstream, /, *, report_run_id: str) -> ToolResult:
    """Look how far an insights job is.

    GET /{report_run_id}

    Args:
        api: the connection that the tools share.
        report_run_id: The job, as start_insights_job gave it
    """
    return await api.send(GET_INSIGHTS_JOB, {"report_run_id": report_run_id})
