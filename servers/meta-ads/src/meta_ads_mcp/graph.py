"""The Graph API: its version, proofs of the app's secret, limits, errors, and requests for tools of our own.

Generated tools and tools of our own share one way to Meta: `connection` takes the place of the generated one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from mcpfactory_runtime import Text, ToolError, ToolResult
from mcpfactory_runtime.upstream import Body, Field, Operation, Parameter, Upstream
from mcpfactory_runtime.upstream.client import Upstream as _Client
from mcpfactory_runtime.upstream.redaction import Redaction, remember_secrets
from mcpfactory_runtime.upstream.request import UpstreamRequest
from mcpfactory_runtime.upstream.secrets import secret
from pydantic import Field as PydanticField

from ._generated.api import BASE_URL, SCHEMES
from .errors import GraphError, explain, read_error
from .usage import Place, Usage, place_of

__all__ = [
    "USAGE",
    "Json",
    "NodeId",
    "batch",
    "connection",
    "delete",
    "get",
    "identified",
    "pages",
    "post",
    "request",
    "rows",
]

Json = dict[str, Any]
NodeId = Annotated[str, PydanticField(pattern=r"^[1-9][0-9]{0,29}$")]
"""The id of a campaign, ad set or ad; those of accounts begin with act_."""

USAGE: Final = Usage()
"""What this process knows of Meta's limits."""

_BATCH: Final = 50  # requests that one batch may hold
_PAGE: Final = 500  # rows of one page that tools of our own ask for


def _versioned(url: str, environ: Mapping[str, str]) -> str:
    """Return a base URL with the version that META_ADS_API_VERSION names.

    Raises:
        ToolError: what it names is no version.
    """
    version = environ.get("META_ADS_API_VERSION", "").strip()
    if not version:
        return url
    if not re.fullmatch(r"v\d{1,3}\.\d", version):
        raise ToolError(f"META_ADS_API_VERSION is {version[:20]!r}.\nhint: a version has the form v25.0.")
    return re.sub(r"/v\d+\.\d+$", f"/{version}", url)


class _Graph(_Client):
    """The way to Meta. Requests carry a proof of the app's secret when there is one; limits are noted, and obeyed."""

    async def _exchange(
        self, request: UpstreamRequest, certificate: Any, limit: int, attempt: int = 0
    ) -> tuple[int, dict[str, str], bytes, bool]:
        place = self._place(request.url)
        if attempt == 0:
            _check(place)
        status, headers, content, cut = await super()._exchange(self._proved(request), certificate, limit, attempt)
        USAGE.note(place, headers)
        if minutes := USAGE.blocked(place):
            headers = {"retry-after": str(minutes * 60), **headers}  # so that nothing is sent again before
        return status, headers, content, cut

    def _place(self, url: str) -> Place:
        """Return what a request is counted for."""
        return place_of(urlsplit(url).path.removeprefix(urlsplit(self.base_url).path.rstrip("/")))

    def _proved(self, request: UpstreamRequest) -> UpstreamRequest:
        """Return a request with `appsecret_proof`, which apps can demand of every call."""
        key = secret("META_ADS_APP_SECRET", os.environ)
        token = next((value for name, value in request.headers if name.lower() == "authorization"), "")
        if not key or not token:
            return request
        proof = hmac.new(key.encode(), token.removeprefix("Bearer ").encode(), hashlib.sha256).hexdigest()
        return replace(request, url=f"{request.url}{'&' if '?' in request.url else '?'}appsecret_proof={proof}")

    def _result(
        self,
        answer: tuple[int, dict[str, str], bytes, bool],
        operation: Operation,
        arguments: Mapping[str, Any],
        *,
        secrets: tuple[str, ...],
        url: str,
        redirect: Any,
    ) -> ToolResult:
        place = self._place(url)
        if key := secret("META_ADS_APP_SECRET", os.environ):
            secrets = (*secrets, key)
            remember_secrets(secrets)
        if answer[0] >= 400 and (error := read_error(answer[2])):
            path = operation.path.replace("{node}", str(arguments.get("node", "{node}")))
            what = f"{operation.method} {path} failed: {_reason(answer[0])}"
            raise ToolError(Redaction(secrets).text(explain(what, error, USAGE.waiting(place))))
        result = super()._result(answer, operation, arguments, secrets=secrets, url=url, redirect=redirect)
        if notice := USAGE.notice(place):
            return ToolResult([*result.content, Text(notice)], structured=result.structured, meta=result.meta)
        return result


def _check(place: Place) -> None:
    """Refuse a request of a place that Meta has closed for some minutes.

    Raises:
        ToolError: it is closed.
    """
    if waiting := USAGE.waiting(place):
        raise ToolError(
            f"Not sent: {waiting}\nhint: wait that long; until then Meta refuses, and tries may make it longer."
        )


def _reason(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}" if status in HTTPStatus._value2member_map_ else str(status)


@cache
def connection() -> Upstream:
    """Return the way to Meta that generated tools use."""
    return _Graph(_versioned(BASE_URL, os.environ), SCHEMES, prefix="META_ADS")


@cache
def _reader() -> Upstream:
    """Return the way to Meta for tools of our own, which read whole answers and give models their sum."""
    return _Graph(_versioned(BASE_URL, os.environ), SCHEMES, prefix="META_ADS", max_text=20_000_000)


# --- requests of tools of our own ---


async def get(node: str, edge: str = "", **query: Any) -> Json:
    """Read an object or one of its edges; lists and objects in the query travel as JSON.

    Raises:
        ToolError: Meta refuses, or the answer is none.
    """
    answer = await _send("GET", node, edge, query)
    if edge:
        rows(answer, f"{node}/{edge}")
    else:
        identified(answer, node)
    return answer


def rows(answer: Any, of: str) -> list[Json]:
    """Return the objects of an edge's answer.

    Raises:
        ToolError: there is no list of objects in it.
    """
    found = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _unexpected(of, "an object with `data`, a list of objects")
    return found


def identified(answer: Any, of: str) -> Json:
    """Return the answer for an object, which always has its id.

    Raises:
        ToolError: it has none.
    """
    if not isinstance(answer, dict) or not answer.get("id"):
        raise _unexpected(of, "an object with `id`")
    return answer


def _unexpected(of: str, expected: str) -> ToolError:
    return ToolError(
        f"Meta's answer for {of} is none that its reference knows; expected {expected}.\n"
        "hint: nothing is known by this, not even that there is nothing; try again in a moment."
    )


async def post(node: str, edge: str = "", **form: Any) -> Json:
    """Change an object, or make one at its edge; lists and objects in the form travel as JSON."""
    return await _send("POST", node, edge, form)


async def delete(node: str) -> Json:
    """Delete an object."""
    return await _send("DELETE", node, "", {})


async def pages(node: str, edge: str, most: int, **query: Any) -> tuple[list[Json], str]:
    """Read the items of an edge page by page, at most so many; a page or cursor that was there before is the end.

    Returns:
        The items, and the cursor where the next ones begin; "" when there are no more.
    """
    found: list[Json] = []
    page: list[Json] = []
    after = str(query.pop("after", ""))
    seen = {"", after}
    while True:
        given = query | ({"after": after} if after else {})
        answer = await get(node, edge, limit=min(_PAGE, most - len(found)), **given)
        if page and answer["data"] == page:
            return found, ""
        page = answer["data"]
        found += page
        after = _next(answer.get("paging"))
        if after in seen:
            return found, ""
        if len(found) >= most:
            return found, after
        seen.add(after)


def _next(paging: Any) -> str:
    """Return the cursor of the next page; "" where there is none."""
    cursors = paging.get("cursors") if isinstance(paging, dict) and paging.get("next") else None
    return str(cursors.get("after") or "") if isinstance(cursors, dict) else ""


async def _send(method: str, node: str, edge: str, values: Mapping[str, Any]) -> Json:
    given = {name: one for name, one in values.items() if one not in ("", None)}
    kinds = {name: "application/json" if isinstance(one, list | dict) else "" for name, one in given.items()}
    path = "/{node}" + (f"/{edge}" if edge else "")
    place = Parameter("node", "path", "node")
    if method == "POST":
        fields = tuple(Field(name, (name,), content_type=kind) for name, kind in kinds.items())
        body = Body("application/x-www-form-urlencoded", fields, required=True)
        operation = Operation(method, path, (place,), body=body, security=(("token",),))
    else:
        query = tuple(Parameter(name, "query", name, content_type=kind) for name, kind in kinds.items())
        operation = Operation(method, path, (place, *query), security=(("token",),))
    result = await _reader().send(operation, {"node": node, **given})
    if not isinstance(result.structured, dict):
        raise _unexpected(f"{method} {node}{edge and '/' + edge}", "an object")
    return result.structured


_BATCHED: Final = Operation(
    "POST",
    "/",
    body=Body(
        "application/x-www-form-urlencoded",
        (Field("batch", ("batch",), content_type="application/json"), Field("include_headers", ("include_headers",))),
        required=True,
    ),
    security=(("token",),),
)


def request(method: str, node: str, edge: str = "", **values: Any) -> Json:
    """Return one request of a batch; lists and objects travel as JSON."""
    pairs = {
        name: json.dumps(one, separators=(",", ":")) if isinstance(one, list | dict) else str(one)
        for name, one in values.items()
        if one not in ("", None)
    }
    path = "/".join(quote(one, safe="") for one in (node, edge) if one)
    if method == "POST":
        return {"method": method, "relative_url": path, "body": urlencode(pairs)}
    return {"method": method, "relative_url": f"{path}?{urlencode(pairs)}" if pairs else path}


async def batch(requests: Sequence[Json]) -> list[Json | GraphError]:
    """Send requests together, fifty at a time.

    Returns:
        For each, in their order, its answer, or what Meta said against it.
    """
    for one in requests:
        _check(place_of(urlsplit(one["relative_url"]).path))
    answers: list[Json | GraphError] = []
    for begin in range(0, len(requests), _BATCH):
        part = list(requests[begin : begin + _BATCH])
        result = await _reader().send(_BATCHED, {"batch": part, "include_headers": "false"})
        given = result.structured.get("result") if isinstance(result.structured, dict) else None
        answers += [_answered(one) for one in given] if isinstance(given, list) else []
        if len(answers) != begin + len(part):
            raise ToolError(
                f"Meta answered {len(answers) - begin} of {len(part)} requests of a batch.\nhint: try again."
            )
    return answers


def _answered(entry: Any) -> Json | GraphError:
    """Return what one entry of a batch's answer says; null is a request that Meta did not get to."""
    if not isinstance(entry, dict):
        return GraphError("Meta did not get to this request in time", transient=True)
    try:
        value = json.loads(entry.get("body") or "{}")
    except (ValueError, RecursionError):
        value = None
    if _status(entry) >= 400:
        return read_error(value) or GraphError(f"Meta answered with status {entry.get('code')}")
    return value if isinstance(value, dict) else {"result": value}


def _status(entry: Json) -> int:
    code = entry.get("code")
    return code if isinstance(code, int) else 0
