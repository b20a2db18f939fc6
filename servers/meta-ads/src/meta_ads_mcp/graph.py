"""Client of the Graph API: version, app secret proofs, rate limits, errors, and requests of the own tools.

Generated and own tools share the client class: `connection` replaces the generated connection.
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
"""ID of a campaign, ad set or ad; IDs of accounts start with act_."""

USAGE: Final = Usage()
"""Usage of Meta's rate limits, as seen by this process."""

_BATCH: Final = 50  # maximum requests per batch, a limit of the API
_PAGE: Final = 500  # rows per page of the own tools


def _versioned(url: str, environ: Mapping[str, str]) -> str:
    """Return a base URL with the version META_ADS_API_VERSION, if it is set.

    Raises:
        ToolError: META_ADS_API_VERSION is invalid.
    """
    version = environ.get("META_ADS_API_VERSION", "").strip()
    if not version:
        return url
    if not re.fullmatch(r"v\d{1,3}\.\d", version):
        raise ToolError(f"META_ADS_API_VERSION is {version[:20]!r}.\nhint: a version has the form v25.0.")
    return re.sub(r"/v\d+\.\d+$", f"/{version}", url)


class _Graph(_Client):
    """Client that adds app secret proofs and respects rate limits."""

    async def _exchange(
        self, request: UpstreamRequest, certificate: Any, limit: int, attempt: int = 0
    ) -> tuple[int, dict[str, str], bytes, bool]:
        place = self._place(request.url)
        if attempt == 0:
            _check(place)
        status, headers, content, cut = await super()._exchange(self._proved(request), certificate, limit, attempt)
        USAGE.note(place, headers)
        if minutes := USAGE.blocked(place):
            headers = {"retry-after": str(minutes * 60), **headers}  # so that retries wait as well
        return status, headers, content, cut

    def _place(self, url: str) -> Place:
        """Return the rate limit that a URL counts toward."""
        return place_of(urlsplit(url).path.removeprefix(urlsplit(self.base_url).path.rstrip("/")))

    def _proved(self, request: UpstreamRequest) -> UpstreamRequest:
        """Return a request with `appsecret_proof`, which some apps require."""
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
    """Refuse a request while Meta blocks its rate limit.

    Raises:
        ToolError: requests are blocked.
    """
    if waiting := USAGE.waiting(place):
        raise ToolError(f"Not sent: {waiting}\nhint: wait that long; earlier requests fail, and may extend the time.")


def _reason(status: int) -> str:
    return f"{status} {HTTPStatus(status).phrase}" if status in HTTPStatus._value2member_map_ else str(status)


@cache
def connection() -> Upstream:
    """Return the connection of the generated tools."""
    return _Graph(_versioned(BASE_URL, os.environ), SCHEMES, prefix="META_ADS")


@cache
def _reader() -> Upstream:
    """Return the connection of the own tools, which read and summarize large responses."""
    return _Graph(_versioned(BASE_URL, os.environ), SCHEMES, prefix="META_ADS", max_text=20_000_000)


# --- requests of the own tools ---


async def get(node: str, edge: str = "", **query: Any) -> Json:
    """Read an object or one of its edges. Lists and objects in the query are sent as JSON.

    Raises:
        ToolError: the request fails, or the response has another form.
    """
    answer = await _send("GET", node, edge, query)
    if edge:
        rows(answer, f"{node}/{edge}")
    else:
        identified(answer, node)
    return answer


def rows(answer: Any, of: str) -> list[Json]:
    """Return the objects in the response of an edge.

    Raises:
        ToolError: the response has no list of objects.
    """
    found = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise _unexpected(of, "an object with `data`, a list of objects")
    return found


def identified(answer: Any, of: str) -> Json:
    """Return the response for an object after checking its ID.

    Raises:
        ToolError: the response has no ID.
    """
    if not isinstance(answer, dict) or not answer.get("id"):
        raise _unexpected(of, "an object with `id`")
    return answer


def _unexpected(of: str, expected: str) -> ToolError:
    return ToolError(
        f"Meta's response for {of} is not of a documented form; expected {expected}.\n"
        "hint: this does not mean that there is no data; try again in a moment."
    )


async def post(node: str, edge: str = "", **form: Any) -> Json:
    """Change an object, or create one at its edge. Lists and objects in the form are sent as JSON."""
    return await _send("POST", node, edge, form)


async def delete(node: str) -> Json:
    """Delete an object."""
    return await _send("DELETE", node, "", {})


async def pages(node: str, edge: str, most: int, **query: Any) -> tuple[list[Json], str]:
    """Read up to `most` items of an edge, page by page. A repeated page or cursor ends the list.

    Returns:
        The items, and the cursor of the next page, or "".
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
    """Return the cursor of the next page, or ""."""
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
    """Return a request for `batch`. Lists and objects are sent as JSON."""
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
    """Send requests in batches of fifty.

    Returns:
        The response or error of each request, in order.
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
    """Return the response or error in an entry of a batch response; null means that Meta did not process the request."""
    if not isinstance(entry, dict):
        return GraphError("Meta did not process this request in time", transient=True)
    try:
        value = json.loads(entry.get("body") or "{}")
    except (ValueError, RecursionError):
        value = None
    if _status(entry) >= 400:
        return read_error(value) or GraphError(f"Meta returned HTTP {entry.get('code')}")
    return value if isinstance(value, dict) else {"result": value}


def _status(entry: Json) -> int:
    code = entry.get("code")
    return code if isinstance(code, int) else 0
