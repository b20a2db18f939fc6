"""Client of the HTTP API of Prometheus, and of servers with the same API (Mimir, Thanos, VictoriaMetrics)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

__all__ = ["Alert", "Metric", "Prometheus", "PrometheusError", "Result", "Series"]

_SECONDS: Final = 30.0  # timeout of one request
_POINTS: Final = 2_000  # values of one result, in all series


class PrometheusError(Exception):
    """Raised for a query that fails; the message is for a model."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric with its type and help text, both "" if unknown."""

    name: str
    type: str
    help: str


@dataclass(frozen=True, slots=True)
class Series:
    """A series with its labels, and its values as [Unix time, value] pairs; values are texts, such as "0.5" or "NaN"."""

    labels: dict[str, str]
    values: list[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a query. `more` is true if series or values were cut off."""

    kind: str
    series: list[Series]
    more: bool
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Alert:
    """A pending or firing alert."""

    name: str
    state: str
    since: str
    value: str
    labels: dict[str, str]
    annotations: dict[str, str]


class Prometheus:
    """The server at a URL, with a bearer token unless it is empty."""

    def __init__(self, url: str, token: str = "") -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http = httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=_SECONDS)

    def query(self, query: str, limit: int, **times: str) -> Result:
        """Run a PromQL query at one time, or over a range if `times` has start, end and step."""
        path = "query_range" if "step" in times else "query"
        whole = self._get(path, query=query, **{key: value for key, value in times.items() if value})
        data = whole["data"]
        rows = data["result"] if data["resultType"] in ("vector", "matrix") else [{"value": data["result"]}]
        series, room = [], _POINTS
        for row in rows[:limit]:
            values = row.get("values") or [row["value"]]
            series.append(Series(row.get("metric", {}), [(time, value) for time, value in values[:room]]))
            room -= len(values)
            if room <= 0:
                break
        return Result(data["resultType"], series, len(series) < len(rows) or room < 0, whole.get("warnings", []))

    def metrics(self, contains: str, limit: int) -> list[Metric]:
        """Return the metrics whose names contain a text."""
        known = self._get("metadata")["data"]
        names = [name for name in self._get("label/__name__/values")["data"] if contains.lower() in name.lower()]
        first: list[tuple[str, Mapping[str, str]]] = [(name, (known.get(name) or [{}])[0]) for name in names[:limit]]
        return [Metric(name, about.get("type", ""), about.get("help", "")) for name, about in first]

    def labels(self, selector: str, label: str, limit: int) -> list[str]:
        """Return the label names of the series that a selector matches, or the values of one label."""
        path = f"label/{label}/values" if label else "labels"
        names: list[str] = self._get(path, **({"match[]": selector} if selector else {}))["data"]
        return names[:limit]

    def alerts(self) -> list[Alert]:
        """Return the pending and firing alerts."""
        return [
            Alert(one["labels"].get("alertname", ""), one["state"], one.get("activeAt", ""), one.get("value", ""), one["labels"], one.get("annotations", {}))
            for one in self._get("alerts")["data"]["alerts"]
        ]

    def version(self) -> str:
        """Return the version of the server."""
        version: str = self._get("status/buildinfo")["data"]["version"]
        return version

    def _get(self, path: str, **parameters: str) -> dict[str, Any]:
        try:
            answer = self._http.get(f"/api/v1/{path}", params=parameters)
            data = answer.json()
        except httpx.HTTPError as error:
            raise PrometheusError(f"Prometheus cannot be reached: {error or type(error).__name__}.") from None
        except ValueError:
            raise PrometheusError(f"Prometheus returned HTTP {answer.status_code} without JSON: check the URL and the token.") from None
        if not isinstance(data, dict) or data.get("status") != "success":
            said = data.get("error") if isinstance(data, dict) else data
            raise PrometheusError(f"Prometheus says: {said or f'HTTP {answer.status_code}'}")
        return data
