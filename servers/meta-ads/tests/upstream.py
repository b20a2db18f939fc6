"""Mock of Meta's Marketing API on loopback: two ad accounts with state, paging, jobs, batches, errors and rate limits.

It follows the reference: only `id` unless fields are given, cursors, errors with code, error_subcode and fbtrace_id, budgets as strings of
minor units. `python upstream.py` prints the server's environment as one line of JSON, and serves until stdin is closed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, parse_qsl, unquote, urlencode, urlsplit

Json = dict[str, Any]

TOKEN = "EAAB-modelled-token"
VERSION = "v25.0"
EUR, JPY = "act_1234567890", "act_2222222222"
PAGE = "104500000000001"
SALE, BRAND, JAPAN = "23842600000000001", "23842600000000002", "23842600000000003"
SALE_DE, SALE_FR, BRAND_SET = "23842600000000011", "23842600000000012", "23842600000000013"
AD_A, AD_B, AD_C = "23842600000000021", "23842600000000022", "23842600000000023"
CREATIVE = "23842600000000031"
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n modelled").decode()

_ONLY = {"objective": "campaign", "optimization_goal": "adset", "adset_id": "ad"}
"""Fields that one kind of object has and the others do not."""
_TYPES = {"campaign": "Campaign", "adset": "AdSet", "ad": "Adgroup", "account": "AdAccount"}
_NAMES = {"campaigns": "campaign", "adsets": "adset", "ads": "ad", "adcreatives": "creative"}
_AD_LEVELS = ("campaign", "adset", "ad")
_BREAKDOWNS = {
    "age": ["18-24", "25-34", "35-44"],
    "gender": ["female", "male"],
    "country": ["DE", "FR"],
    "publisher_platform": ["facebook", "instagram"],
}
_EDGES: dict[str, list[Json]] = {
    "promote_pages": [{"id": PAGE, "name": "Tea House"}],
    "adspixels": [{"id": "5551", "name": "Shop", "last_fired_time": "2026-11-22T10:00:00+0000"}],
    "customaudiences": [{"id": "6001", "name": "Buyers 180 days", "subtype": "WEBSITE"}],
    "saved_audiences": [{"id": "6101", "name": "Tea lovers"}],
    "advideos": [{"id": "7001", "title": "How to brew", "length": 15.0}],
    "activities": [
        {
            "event_type": "update_campaign_budget",
            "translated_event_type": "Campaign budget updated",
            "event_time": "2026-11-20T09:00:00+0000",
            "actor_name": "Ada",
            "object_id": SALE,
            "object_name": "Autumn sale",
            "extra_data": '{"old_value":4000,"new_value":5000}',
        }
    ],
}
_INTERESTS = [
    {"id": "6003000000001", "name": "Green tea", "type": "interests", "path": ["Interests", "Food and drink"]},
    {"id": "6003000000002", "name": "Tea", "type": "interests", "path": ["Interests", "Food and drink"]},
]


class Refusal(Exception):
    """An error of the Graph API."""

    def __init__(self, message: str, code: int, subcode: int = 0, status: int = 400, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        error = {"message": message, "type": "OAuthException", "code": code, "error_subcode": subcode, **more}
        self.body = {
            "error": {name: value for name, value in error.items() if value} | {"fbtrace_id": "AbCdEf0123456789"}
        }


def _unknown(node: str) -> Refusal:
    return Refusal(
        f"Unsupported request. Object with ID '{node}' does not exist, cannot be loaded due to missing permissions, "
        "or does not support this operation.",
        100,
        33,
    )


@dataclass
class Seen:
    """A received request with decoded `form` and `query` and raw `body`, and its response."""

    method: str
    path: str
    query: dict[str, str]
    form: dict[str, str]
    headers: dict[str, str]
    body: bytes
    status: int = 0
    answer: Any = None


def _objects() -> dict[str, Json]:
    def campaign(node: str, account: str, name: str, **more: Any) -> Json:
        base = {"kind": "campaign", "id": node, "account_id": account.removeprefix("act_"), "name": name}
        return base | {"objective": "OUTCOME_SALES", "status": "ACTIVE", "special_ad_categories": []} | more

    def adset(node: str, parent: str, name: str, **more: Any) -> Json:
        base = {"kind": "adset", "id": node, "account_id": "1234567890", "campaign_id": parent, "name": name}
        return base | {"status": "ACTIVE", "optimization_goal": "OFFSITE_CONVERSIONS"} | more

    def ad(node: str, parent: str, campaign_id: str, name: str, **more: Any) -> Json:
        base = {"kind": "ad", "id": node, "account_id": "1234567890", "adset_id": parent, "campaign_id": campaign_id}
        return base | {"name": name, "status": "ACTIVE", "creative": {"id": CREATIVE}} | more

    rejected = {"global": {"Grammar and profanity": "The text of the ad breaks the rules for grammar."}}
    rows: list[Json] = [
        {
            "kind": "account", "id": EUR, "account_id": "1234567890", "name": "Tea House", "currency": "EUR", "account_status": 1,
            "timezone_name": "Europe/Berlin", "timezone_offset_hours_utc": 1, "amount_spent": "418230", "spend_cap": "500000", "balance": "1200",
        },
        {
            "kind": "account", "id": JPY, "account_id": "2222222222", "name": "Ocha", "currency": "JPY", "account_status": 3,
            "timezone_name": "Asia/Tokyo", "timezone_offset_hours_utc": 9, "amount_spent": "90000", "spend_cap": "0", "balance": "0",
        },
        campaign(SALE, EUR, "Autumn sale", daily_budget="5000", budget_remaining="3120"),
        campaign(BRAND, EUR, "Brand", status="PAUSED", objective="OUTCOME_AWARENESS"),
        campaign(JAPAN, JPY, "Shinsen", daily_budget="5000"),
        adset(SALE_DE, SALE, "DE 25-45"),
        adset(SALE_FR, SALE, "FR 25-45", learning_stage_info={"status": "LEARNING"}),
        adset(BRAND_SET, BRAND, "Everybody", lifetime_budget="30000", budget_remaining="0", end_time="2026-10-31T23:59:59+0100"),
        ad(AD_A, SALE_DE, SALE, "Autumn tea A"),
        ad(AD_B, SALE_DE, SALE, "Autumn tea B", effective_status="DISAPPROVED", ad_review_feedback=rejected),
        ad(AD_C, BRAND_SET, BRAND, "Brand film"),
        {"kind": "creative", "id": CREATIVE, "account_id": "1234567890", "name": "Autumn tea", "title": "Warm up", "status": "ACTIVE"},
    ]  # fmt: skip
    return {str(row["id"]): row for row in rows}


@dataclass
class Meta:
    """State of the mock API. Tests set `usage`, `refuse`, `polls`, and `instead`, which replaces responses by path."""

    objects: dict[str, Json] = field(default_factory=_objects)
    images: dict[str, Json] = field(default_factory=dict)
    jobs: dict[str, Json] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    usage: dict[str, str] = field(default_factory=dict)
    refuse: list[Refusal] = field(default_factory=list)
    instead: dict[str, Any] = field(default_factory=dict)
    polls: int = 2
    job_status: str = "Job Completed"
    app_secret: str = ""
    made: int = 0

    def reset(self) -> None:
        """Restore the initial state."""
        self.__dict__.update(Meta().__dict__)

    def new_id(self) -> str:
        self.made += 1
        return str(23842600000000100 + self.made)

    # --- one request ---

    def answer(self, seen: Seen, base: str) -> tuple[int, Any]:
        """Return status and body for a request."""
        try:
            self._permitted(seen)
            if self.refuse:
                raise self.refuse.pop(0)
            if seen.path in self.instead:
                return 200, self.instead[seen.path]
            if not seen.path and seen.method == "POST":
                return 200, [self._batched(one, seen, base) for one in json.loads(seen.form["batch"])]
            return 200, self._routed(seen, base)
        except Refusal as refusal:
            return refusal.status, refusal.body

    def _permitted(self, seen: Seen) -> None:
        if seen.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refusal(
                "Error validating access token: Session has expired on Friday, 20-Nov-26 10:00:00 PST.", 190, 463
            )
        if self.app_secret:
            import hmac

            proof = hmac.new(self.app_secret.encode(), TOKEN.encode(), hashlib.sha256).hexdigest()
            if seen.query.get("appsecret_proof") != proof:
                raise Refusal("API calls from the server require an appsecret_proof argument", 100)

    def _batched(self, one: Json, whole: Seen, base: str) -> Json:
        url = urlsplit(one["relative_url"])
        seen = Seen(
            one["method"],
            unquote(url.path).strip("/"),
            dict(parse_qsl(url.query)),
            dict(parse_qsl(one.get("body", ""))),
            whole.headers,
            b"",
        )
        try:
            code, body = 200, self.instead[seen.path] if seen.path in self.instead else self._routed(seen, base)
        except Refusal as refusal:
            code, body = refusal.status, refusal.body
        return {"code": code, "body": json.dumps(body)}

    def _routed(self, seen: Seen, base: str) -> Any:
        node, _, edge = seen.path.partition("/")
        if seen.path == "me/adaccounts":
            accounts = [one for one in self.objects.values() if one["kind"] == "account"]
            return self._page(accounts, seen, base)
        if node == "search":
            return {"data": [one for one in _INTERESTS if seen.query.get("q", "").lower() in str(one["name"]).lower()]}
        if node in self.jobs:
            return self._job(self.jobs[node], edge, seen, base)
        if node not in self.objects:
            raise _unknown(node)
        act: Callable[[Json, str, Seen, str], Any] = {"GET": self._read, "POST": self._write, "DELETE": self._delete}[
            seen.method
        ]
        return act(self.objects[node], edge, seen, base)

    # --- reading ---

    def _read(self, one: Json, edge: str, seen: Seen, base: str) -> Any:
        if not edge:
            return self._chosen(one, seen.query.get("fields", "id"))
        if edge == "insights":
            return self._insights(one, seen.query, seen, base)
        if edge in _NAMES:
            states = json.loads(seen.query.get("effective_status", "[]"))
            found = [
                self._whole(row) for row in self.objects.values() if row["kind"] == _NAMES[edge] and _inside(row, one)
            ]
            return self._page([row for row in found if not states or row["effective_status"] in states], seen, base)
        if edge == "adimages":
            return self._page(list(self.images.values()), seen, base)
        if edge in {"previews", "generatepreviews"}:
            src = f"https://business.facebook.com/ads/api/preview_iframe.php?d=AQ&amp;t={seen.query['ad_format']}"
            return {"data": [{"body": f'<iframe src="{src}" width="540" height="690"></iframe>'}]}
        if edge in {"reachestimate", "delivery_estimate"}:
            if "geo_locations" not in json.loads(seen.query.get("targeting_spec", "{}")):
                raise Refusal("Invalid parameter", 100, 1885364, error_user_title="Missing Targeting")
            bounds = {"users_lower_bound": 1200000, "users_upper_bound": 1400000, "estimate_ready": True}
            return {"data": bounds if edge == "reachestimate" else [{"estimate_dau": 410000, "estimate_ready": True}]}
        if edge in _EDGES:
            return self._page(_EDGES[edge], seen, base)
        raise Refusal(f"(#100) Tried accessing nonexisting field ({edge})", 100)

    def _whole(self, one: Json) -> Json:
        """Return an object with its effective state, which depends on its parents."""
        if one["kind"] not in _AD_LEVELS or "effective_status" in one:
            return one
        state = one["status"]
        for above, paused in (("campaign_id", "CAMPAIGN_PAUSED"), ("adset_id", "ADSET_PAUSED")):
            if state == "ACTIVE" and above in one and self.objects[one[above]]["status"] != "ACTIVE":
                state = paused
        return one | {"effective_status": state}

    def _chosen(self, one: Json, fields: str) -> Json:
        one, found = self._whole(one), {}
        for name, inner in _parsed(fields):
            if inner is not None and f"{name}_id" in one:
                found[name] = self._chosen(self.objects[one[f"{name}_id"]], inner)
            elif one["kind"] in _TYPES and (
                (name == "daily_budget" and one["kind"] == "ad") or _ONLY.get(name, one["kind"]) != one["kind"]
            ):
                raise Refusal(
                    f"(#100) Tried accessing nonexisting field ({name}) on node type ({_TYPES[one['kind']]})", 100
                )
            elif name in one:
                found[name] = one[name]
        return {"id": one["id"]} | found if "id" in one else found

    def _page(self, rows: list[Json], seen: Seen, base: str, chosen: bool = True) -> Json:
        limit, begin = int(seen.query.get("limit", 25)), _offset(seen.query.get("after", ""))
        part = rows[begin : begin + limit]
        answer: Json = {
            "data": [self._chosen({"kind": "", **row}, seen.query.get("fields", "id")) for row in part]
            if chosen
            else part
        }
        if part:
            answer["paging"] = {"cursors": {"before": _cursor(begin), "after": _cursor(begin + len(part))}}
            if begin + limit < len(rows):
                query = urlencode({**seen.query, "after": _cursor(begin + len(part)), "access_token": TOKEN})
                answer["paging"]["next"] = f"{base}/{seen.path}?{query}"
        return answer

    # --- insights ---

    def _insights(self, one: Json, given: Json, seen: Seen, base: str) -> Json:
        rows = self._rows(one, given)
        return self._page(rows, seen, base, chosen=False)

    def _rows(self, one: Json, given: Json) -> list[Json]:
        split = [name for name in given.get("breakdowns", "").split(",") if name]
        for name in split:
            if name not in _BREAKDOWNS:
                raise Refusal(
                    f"(#100) breakdowns[0] must be one of the following values: {', '.join(_BREAKDOWNS)}", 100
                )
        level, ads = (
            given.get("level", one["kind"]),
            [row for row in self.objects.values() if row["kind"] == "ad" and _inside(row, one)],
        )
        rows = []
        for begin, end in self._periods(given):
            if split and "since" in seen_range(given) and (end - begin).days > 60 and "async" not in given:
                raise Refusal("Please reduce the amount of data you're asking for, then retry your request", 1, 99)
            for key in dict.fromkeys(self._key(row, level) for row in ads):
                group = [row for row in ads if self._key(row, level) == key]
                rows += [self._row(group, level, begin, end, given, values) for values in _splits(split)]
        if "spend_descending" in given.get("sort", ""):
            rows.sort(key=lambda row: -float(row.get("spend", 0)))
        return rows

    def _key(self, ad: Json, level: str) -> str:
        return str(ad["id"] if level == "ad" else ad.get(f"{level}_id", ad["account_id"]))

    def _periods(self, given: Json) -> list[tuple[date, date]]:
        today = datetime.now(UTC).date()
        days = {"last_7d": 7, "last_30d": 30, "last_90d": 90, "maximum": 1000}.get(
            given.get("date_preset", "last_30d"), 30
        )
        ranges = json.loads(given["time_ranges"]) if "time_ranges" in given else []
        ranges += [json.loads(given["time_range"])] if "time_range" in given else []
        for one in ranges:
            if not re.fullmatch(r"\d{4}-\d\d-\d\d", str(one.get("since"))):
                raise Refusal("(#100) time_range[since] must be a date in format YYYY-MM-DD", 100)
        found = [(date.fromisoformat(one["since"]), date.fromisoformat(one["until"])) for one in ranges]
        found = found or [(today - timedelta(days=days), today - timedelta(days=1))]
        step = int(given["time_increment"]) if given.get("time_increment", "").isdecimal() else 0
        return [part for period in found for part in _steps(*period, step)]

    def _row(self, ads: list[Json], level: str, begin: date, end: date, given: Json, values: Json) -> Json:
        days, share = (end - begin).days + 1, 1 / max(1, len(list(_splits([name for name in values]))))
        weight = sum(2 if row["id"] == AD_A else 1 for row in ads if row["campaign_id"] != BRAND) * days
        weight *= 2 if begin >= datetime.now(UTC).date() - timedelta(days=10) else 1
        ad = ads[0]
        names = {
            "account_id": ad["account_id"], "account_name": "Tea House", "campaign_id": ad["campaign_id"], "campaign_name": self.objects[ad["campaign_id"]]["name"],
            "adset_id": ad["adset_id"], "adset_name": self.objects[ad["adset_id"]]["name"], "ad_id": ad["id"], "ad_name": ad["name"],
        }  # fmt: skip
        purchases = [{"action_type": kind, "value": str(int(weight * share))} for kind in ("omni_purchase", "purchase")]
        figures = {
            "impressions": str(int(1000 * weight * share)), "clicks": str(int(20 * weight * share)), "spend": f"{8 * weight * share:.2f}",
            "actions": [{"action_type": "link_click", "value": str(int(18 * weight * share))}, *purchases],
            "action_values": [{**one, "value": f"{30 * weight * share:.2f}"} for one in purchases],
        }  # fmt: skip
        if windows := json.loads(given.get("action_attribution_windows", "[]")):
            figures["actions"] = [{**one, **dict.fromkeys(windows, one["value"])} for one in figures["actions"]]
        wanted = given.get("fields", "impressions,spend").split(",")
        below = {"account": 2, "campaign": 4, "adset": 6, "ad": 8}[level]
        shown = dict(list(names.items())[:below]) | figures
        dates = {"date_start": begin.isoformat(), "date_stop": end.isoformat()}
        return {name: shown[name] for name in wanted if name in shown} | values | dates

    def _job(self, job: Json, edge: str, seen: Seen, base: str) -> Json:
        if edge == "insights":
            if job["async_percent_completion"] < 100:
                raise Refusal("(#2601) Loading async results for a running job is not allowed", 2601)
            return self._page(job["rows"], seen, base, chosen=False)
        job["looks"] += 1
        done = job["looks"] >= self.polls
        job["async_percent_completion"] = 100 if done else job["looks"] * 100 // self.polls
        job["async_status"] = self.job_status if done else "Job Running"
        if done:
            job["time_completed"] = int(time.time())
        if done and self.job_status != "Job Completed":
            job |= {"error_code": 1, "error_subcode": 1487534, "error_message": "Too much data"}
        return {name: value for name, value in job.items() if name not in {"rows", "looks"}}

    # --- writing ---

    def _write(self, one: Json, edge: str, seen: Seen, base: str) -> Json:
        form = seen.form
        if edge == "insights":
            rows = self._rows(one, form | {"async": "1"})
            begin, end = self._periods(form)[0][0], self._periods(form)[-1][1]
            run = f"6023920149{len(self.jobs):03}"
            self.jobs[run] = {
                "id": run, "account_id": one["account_id"], "time_ref": int(time.time()), "async_status": "Job Not Started", "async_percent_completion": 0, "looks": 0, "rows": rows,
                "date_start": begin.isoformat(), "date_stop": end.isoformat(),
            }  # fmt: skip
            return {"report_run_id": run}
        if edge == "adimages":
            return self._upload(form)
        if edge == "copies":
            copy = deepcopy(one) | {
                "id": self.new_id(),
                "status": form.get("status_option", "PAUSED"),
                "name": f"{one['name']} - Copy",
            }
            self.objects[copy["id"]] = copy
            kind = {"adset": "ad_set"}.get(one["kind"], one["kind"])
            copied = {"ad_object_type": kind, "source_id": one["id"], "copied_id": copy["id"]}
            return {f"copied_{one['kind']}_id": copy["id"], "ad_object_ids": [copied]}
        if edge == "budget_schedules":
            return {"id": self.new_id()}
        if edge in _NAMES:
            return self._create(one, _NAMES[edge], form)
        if edge:
            raise Refusal(f"(#100) Tried accessing nonexisting field ({edge})", 100)
        _check_budget(form)
        one.update({name: value for name, value in form.items()})
        one.pop("effective_status", None) if "status" in form else None
        return {"success": True}

    def _create(self, account: Json, kind: str, form: dict[str, str]) -> Json:
        if kind != "creative" and "name" not in form:
            raise Refusal("(#100) The parameter name is required", 100)
        if kind == "campaign" and "special_ad_categories" not in form:
            raise Refusal("(#100) The parameter special_ad_categories is required", 100)
        _check_budget(form)
        if kind == "adset":
            parent = self.objects.get(form.get("campaign_id", "")) or {}
            if parent.get("daily_budget") and {"daily_budget", "lifetime_budget"} & set(form):
                raise Refusal(
                    "Invalid parameter",
                    100,
                    1885621,
                    error_user_title="Cannot set budget",
                    error_user_msg="The campaign has a budget already.",
                )
            if "geo_locations" not in json.loads(form.get("targeting", "{}")):
                raise Refusal("Invalid parameter", 100, 1885364, error_data='{"blame_field_specs":[["targeting"]]}')
        if kind == "ad" and form.get("adset_id") not in self.objects:
            raise _unknown(form.get("adset_id", ""))
        node = self.new_id()
        made = {name: _decoded(value) for name, value in form.items()}
        if kind == "ad":
            made["campaign_id"] = self.objects[form["adset_id"]]["campaign_id"]
        self.objects[node] = {"kind": kind, "id": node, "account_id": account["account_id"], "status": "ACTIVE", **made}
        return {"id": node}

    def _upload(self, form: dict[str, str]) -> Json:
        try:
            data = base64.b64decode(form["bytes"], validate=True)
        except (KeyError, binascii.Error):
            raise Refusal("(#100) Invalid parameter", 100, 1487411, error_user_title="Image Not Valid") from None
        found = hashlib.md5(data).hexdigest()
        self.images[found] = {
            "id": f"1234567890:{found}",
            "hash": found,
            "name": form.get("name", "bytes"),
            "status": "ACTIVE",
        }
        place = f"https://scontent.example/{found}"
        sizes = {"url_128": f"{place}/128", "url_256": f"{place}/256", "url_256_height": "134", "url_256_width": "256"}
        shown = {"hash": found, "url": place, **sizes, "height": 630, "width": 1200, "name": self.images[found]["name"]}
        return {"images": {form.get("name", "bytes"): shown}}

    def _delete(self, one: Json, edge: str, seen: Seen, base: str) -> Json:
        del self.objects[one["id"]]
        return {"success": True}


def seen_range(given: Json) -> Json:
    """Return the period of a request with explicit days."""
    found = json.loads(given.get("time_range", "{}"))
    return found if isinstance(found, dict) else {}


def _check_budget(form: dict[str, str]) -> None:
    for name in ("daily_budget", "lifetime_budget"):
        if name in form and not form[name].isdecimal():
            raise Refusal(f"(#100) Param {name} must be an integer", 100)
        if name in form and int(form[name]) < 100:
            raise Refusal(
                "Invalid parameter",
                100,
                1885272,
                error_user_title="Your budget is too low",
                error_user_msg="The minimum is 1.00 EUR.",
            )


def _inside(row: Json, holder: Json) -> bool:
    if holder["kind"] == "account":
        return bool(row["account_id"] == holder["account_id"])
    return holder["id"] in {row["id"], row.get("campaign_id"), row.get("adset_id")}


def _decoded(text: str) -> Any:
    with suppress(ValueError):
        if text[:1] in "[{":
            return json.loads(text)
    return text


def _parsed(fields: str) -> Iterable[tuple[str, str | None]]:
    """Yield the names in `a,b{c,d}`, each with the content of its braces."""
    for found in re.finditer(r"(\w+)(?:\{((?:[^{}]|\{[^{}]*\})*)\})?", fields):
        yield found[1], found[2]


def _splits(names: list[str]) -> Iterable[Json]:
    rows: list[Json] = [{}]
    for name in names:
        rows = [{**row, name: value} for row in rows for value in _BREAKDOWNS[name]]
    return rows


def _steps(begin: date, end: date, step: int) -> list[tuple[date, date]]:
    if not step:
        return [(begin, end)]
    starts = [begin + timedelta(days=days) for days in range(0, (end - begin).days + 1, step)]
    return [(one, min(end, one + timedelta(days=step - 1))) for one in starts]


def _cursor(number: int) -> str:
    return base64.urlsafe_b64encode(f"cursor:{number}".encode()).decode()


def _offset(cursor: str) -> int:
    if not cursor:
        return 0
    try:
        return int(base64.urlsafe_b64decode(cursor).decode().removeprefix("cursor:"))
    except ValueError:
        raise Refusal("(#100) Invalid cursors values", 100) from None


class Upstream:
    """Server of the mock API on loopback. `environment` configures an MCP server for it."""

    def __init__(self) -> None:
        self.meta = Meta()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}/{VERSION}"
        self.environment = {"META_ADS_BASE_URL": self.url, "META_ADS_TOKEN": TOKEN, "META_ADS_POLL_SECONDS": "0"}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model, lock, outer = self.meta, threading.Lock(), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # send head and body of a response in one packet

            def _serve(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                form = {name: values[-1] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
                path = unquote(url.path).removeprefix(f"/{VERSION}").strip("/")
                headers = {name.lower(): value for name, value in self.headers.items()}
                seen = Seen(self.command, path, dict(parse_qsl(url.query, keep_blank_values=True)), form, headers, body)
                with lock:
                    model.seen.append(seen)
                    status, answer = model.answer(seen, outer.url)
                    seen.status, seen.answer = status, answer
                    usage = dict(model.usage)
                data = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in {
                    **usage,
                    "Content-Type": "application/json; charset=UTF-8",
                    "Content-Length": str(len(data)),
                }.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_DELETE = _serve

            def log_message(self, *_: object) -> None:
                """Suppress the request log."""

        return Handler


if __name__ == "__main__":
    with Upstream() as upstream:
        print(json.dumps({"environment": upstream.environment}), flush=True)
        sys.stdin.read()
