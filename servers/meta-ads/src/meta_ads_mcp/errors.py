"""Parsing of Meta's errors, and advice for each.

An error response is {"error": {"message", "type", "code", "error_subcode", "error_user_title", "error_user_msg", "fbtrace_id"}};
the code is the category of the failure, the subcode the exact one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["THROTTLED", "GraphError", "explain", "next_step", "read_error"]

THROTTLED: Final = frozenset({4, 17, 32, 613, *range(80000, 80015)})
"""Codes of rate limits of an app, user, page, ad account or business use case."""


@dataclass(frozen=True, slots=True)
class GraphError:
    """An error of the Graph API; missing texts are "", missing numbers 0."""

    message: str
    code: int = 0
    subcode: int = 0
    title: str = ""
    advice: str = ""
    trace: str = ""
    transient: bool = False
    fields: tuple[str, ...] = ()


def read_error(value: Any) -> GraphError | None:
    """Return the error in a response (bytes, string or JSON), or None."""
    if isinstance(value, bytes | str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    error = value.get("error") if isinstance(value, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return None
    return GraphError(
        message=error["message"],
        code=_number(error.get("code")),
        subcode=_number(error.get("error_subcode")),
        title=str(error.get("error_user_title") or ""),
        advice=str(error.get("error_user_msg") or ""),
        trace=str(error.get("fbtrace_id") or ""),
        transient=error.get("is_transient") is True,
        fields=_fields(error.get("error_data")),
    )


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _fields(data: Any) -> tuple[str, ...]:
    """Return the faulty parameters in `error_data`, which is an object or a JSON string."""
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except (ValueError, RecursionError):
            return ()
    specs = data.get("blame_field_specs") if isinstance(data, dict) else None
    if not isinstance(specs, list):
        return ()
    return tuple(".".join(map(str, one)) if isinstance(one, list) else str(one) for one in specs)


_BY_SUBCODE: Final[dict[int, str]] = {
    33: "the ID does not exist, or the token may not see it; look it up with a list tool, in the right ad account.",
    99: "Meta could not answer; check that `level` fits the object, and ask for a shorter period.",
    463: "the token has expired; the operator must create a new one and set META_ADS_TOKEN. "
    "A system user's token does not expire.",
    458: "the app is no longer permitted by its user; the operator must log in again and set META_ADS_TOKEN.",
    460: "the password was changed since the token was made; the operator must create a new one.",
    459: "the user must log in at facebook.com and clear a checkpoint, then the token works again.",
    464: "the user must log in at facebook.com and clear a checkpoint, then the token works again.",
    467: "the token is no longer valid; the operator must create a new one and set META_ADS_TOKEN.",
    1487534: "too much data for one answer: use run_report, or a shorter period, fewer breakdowns, fewer fields.",
    1504018: "too much data for one answer: use run_report, or a shorter period, fewer breakdowns, fewer fields.",
    1870034: "the Custom Audience terms must be accepted first, at business.facebook.com/customaudiences/tos.",
    1885621: "the budget is on the campaign: omit daily_budget and lifetime_budget of the ad set.",
    2446079: "the ad account is throttled; wait some minutes, then make fewer and larger requests.",
}

_BY_CODE: Final[dict[int, str]] = {
    1: "Meta failed; try again in a moment, with a shorter period or fewer fields if it was a report.",
    2: "Meta is not available for a moment; try again.",
    4: "the app is throttled; wait until the hour is over, and make fewer requests.",
    10: "the app or token lacks a permission; reading needs ads_read, changes need ads_management, leads need leads_retrieval.",
    17: "the user's rate limit for this ad account is used up; wait some minutes.",
    100: "correct the parameter in the message and call again.",
    102: "the session is over; the operator must create a new token and set META_ADS_TOKEN.",
    190: "the token is not valid; the operator must create a new one and set META_ADS_TOKEN.",
    200: "the token's user lacks a role in this ad account, or the token a permission (ads_read, ads_management).",
    294: "the token lacks ads_management, which changes need.",
    368: "Meta blocked this action for a time, for its policies; check Account quality in Business settings.",
    613: "too many calls for this ad account in a short time; wait a minute.",
    2635: "the API version has ended; the operator must set META_ADS_API_VERSION to a supported version.",
    3018: "Meta keeps results for 37 months; use a later first day.",
    80000: "the limit for insights of this ad account is used up; wait, then ask for less, or use run_report.",
    80003: "the limit for custom audiences of this ad account is used up; wait.",
    80004: "the limit for managing this ad account is used up; wait, then make fewer requests.",
}


def next_step(error: GraphError) -> str:
    """Return the hint for an error, or ""."""
    if "reduce the amount of data" in error.message.lower():
        return _BY_SUBCODE[1487534]
    if found := _BY_SUBCODE.get(error.subcode) or _BY_CODE.get(error.code):
        return found
    if error.code in THROTTLED:
        return "a rate limit is used up; wait some minutes."
    if 200 <= error.code < 300:
        return _BY_CODE[200]
    return "Meta calls this transient; try again in a moment." if error.transient else ""


def explain(what: str, error: GraphError, wait: str = "") -> str:
    """Return the message for an error.

    Args:
        what: the failed request, such as `GET /{campaign_id} failed: 400 Bad Request`.
        error: Meta's error.
        wait: a sentence on the end of a rate limit, or "".
    """
    numbers = [f"code {error.code}"] + [f"error_subcode {error.subcode}"] * bool(error.subcode)
    lines = [f"{what}: {error.message} ({', '.join(numbers)})"]
    if said := ": ".join(one for one in (error.title, error.advice) if one):
        lines.append(f"Meta says: {said}")
    if error.fields:
        lines.append(f"It concerns: {', '.join(error.fields)}")
    if wait:
        lines.append(wait)
    if error.trace:
        lines.append(f"fbtrace_id: {error.trace}")
    if step := next_step(error):
        lines.append(f"hint: {step}")
    return "\n".join(lines)
