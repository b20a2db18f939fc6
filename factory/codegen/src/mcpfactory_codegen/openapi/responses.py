"""Responses: each status with one media type; those of success first."""

from __future__ import annotations

import re
from typing import Any, Final

from mcpfactory_codegen.ir import Response
from mcpfactory_codegen.openapi import swagger2
from mcpfactory_codegen.openapi.media import choose, read_media
from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import Place, Target

__all__ = ["read_responses"]

_STATUS: Final = re.compile(r"[1-5](?:[0-9][0-9]|XX)\Z")


def read_responses(reading: Reading, operation: Target) -> tuple[Response, ...]:
    """All documented responses: 2xx by number, 2XX, default, then the others."""
    node, place = reading.references.mapping(operation.node.get("responses"), operation.place.down("responses"))
    if node is None:
        return ()
    if not isinstance(node, dict):
        reading.report("response-invalid", place, "`responses` has to be an object; ignored")
        return ()
    produces = swagger2.media_types(reading, operation.node, "produces") if reading.dialect.shape == "2" else []
    found: dict[str, Response] = {}
    for key, one in node.items():
        status = key if key == "default" else key.upper()
        if status.startswith("X-"):
            continue
        if status != "default" and not _STATUS.match(status):
            message = f"{key[:40]!r} is no status; ignored"
            reading.report("response-invalid", place.down(key), message, "write 200, 2XX or default")
            continue
        found.setdefault(status, _read(reading, status, one, place.down(key), produces))
    return tuple(sorted(found.values(), key=_order))


def _order(response: Response) -> tuple[int, str]:
    status = response.status
    if status == "default":
        return 1, status
    return (0 if status.startswith("2") else 2), status  # "X" sorts after the digits


def _read(reading: Reading, status: str, written: Any, place: Place, produces: list[str]) -> Response:
    target = reading.follow(written, place)
    if target is None:
        return Response(status)
    node, place = target
    if not isinstance(node, dict):
        reading.report("response-invalid", place, "a response has to be an object; nothing is known of it")
        return Response(status)
    known = reading.responses.get(place)
    if known is None or known.status != status:
        known = reading.responses[place] = _described(reading, status, node, place, produces)
    return known


def _described(reading: Reading, status: str, node: dict[str, Any], place: Place, produces: list[str]) -> Response:
    description = reading.text(node.get("description"), place.down("description"))
    if reading.dialect.shape == "2":
        content = swagger2.response_content(node, produces)
        name = next(iter(content), "")
        schema = (
            reading.schemas.translate(node["schema"], place.down("schema"), "response") if "schema" in node else None
        )
        example = content[name].get("example") if name else None
        return Response(status, description, name, schema, example, _headers(node))
    media = choose(reading, node.get("content"), place.down("content"))
    if media is None:
        return Response(status, description, headers=_headers(node))
    schema = read_media(reading, media, "response")
    example = reading.example(media.node, media.place)
    return Response(status, description, media.content_type, schema, example, _headers(node))


def _headers(node: dict[str, Any]) -> tuple[str, ...]:
    headers = node.get("headers")
    return tuple(sorted(name.lower() for name in headers)) if isinstance(headers, dict) else ()
