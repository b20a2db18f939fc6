"""Micro documents: one kind of mistake each, in the files of `documents/`, as data.

kind       what is odd about the document
after      "2.0", "3.0" or "3.1": insert the usual beginning of such a document before `document`
document   the text; `encoding` (default utf-8) and `lines` (line end) set its bytes
tool, path the tool that is called, by its name or by its operation's path; default: the first one of the method in `sent`
with, wire its arguments: by name, or by place and name on the wire ("query filter[name]")
sent       method and target of the request that has to arrive; `headers`, `json`, `body` and `contains` (parts of the
           body) are also compared. Without `sent`, the document has no tool that a stub can serve.
base, own  the API's base URL as generated, and the server of the tool's operation
needs      the arguments that the tool's schema requires
environ    variables of the environment
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_FOLDER = Path(__file__).parent / "documents"
_SERVERS = "servers: [{url: https://api.test/v1}]\n"
_FRONT = {
    "2.0": 'swagger: "2.0"\ninfo: {title: T, version: "1"}\nhost: api.test\nbasePath: /v1\nschemes: [https]\n',
    "3.0": f'openapi: 3.0.3\ninfo: {{title: T, version: "1"}}\n{_SERVERS}',
    "3.1": f'openapi: 3.1.0\ninfo: {{title: T, version: "1"}}\n{_SERVERS}',
}


@dataclass(frozen=True)
class Micro:
    """One micro document, and its expected results."""

    kind: str
    raw: bytes
    tool: str = ""
    path: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    wire: dict[str, Any] = field(default_factory=dict)
    sent: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    json: Any = None
    body: str | None = None
    contains: tuple[str, ...] = ()
    base: str | None = None
    own: str = ""
    needs: tuple[str, ...] | None = None
    environ: dict[str, str] = field(default_factory=dict)


def _read(row: dict[str, Any]) -> Micro:
    text = _FRONT[row.pop("after")] + row.pop("document") if "after" in row else row.pop("document")
    raw = text.replace("\n", row.pop("lines", "\n")).encode(row.pop("encoding", "utf-8"))
    lists = {key: tuple(row.pop(key)) for key in ("contains", "needs") if key in row}
    return Micro(raw=raw, arguments=row.pop("with", {}), **lists, **row)


CASES = [_read(row) for path in sorted(_FOLDER.glob("*.yaml")) for row in yaml.safe_load(path.read_text("utf-8"))]
