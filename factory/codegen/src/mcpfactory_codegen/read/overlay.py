"""OpenAPI Overlays 1.0 and 1.1: a user's changes to an API document, stored separately and applied on each read.

An overlay is a list of actions, each with a JSONPath target (RFC 9535). An action that is invalid or matches nothing is
skipped and reported with its location in the overlay.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcpfactory_codegen.ir import ProblemCollector
from mcpfactory_codegen.read.document import MAX_BYTES, Document, DocumentError, DocumentFile
from mcpfactory_codegen.read.parse import ParseError, parse
from mcpfactory_codegen.sources.postman_secrets import overlay_of_postman_environment

_VERSIONS: Final = re.compile(r"1\.[01](\.\d+)?\Z")
_NO_CHANGE: Final = object()


@dataclass(frozen=True, slots=True)
class Overlay:
    """An overlay, with its name for messages and its file."""

    name: str
    part: DocumentFile

    @property
    def data(self) -> dict[str, Any]:
        """Return the content, an object with a list of actions."""
        assert isinstance(self.part.data, dict)
        return self.part.data


def load_overlay(path: Path, name: str = "") -> Overlay:
    """Read an overlay from a JSON or YAML file, or raise a DocumentError.

    A Postman environment becomes an overlay without values of credentials.
    """
    name = name or path.name
    try:
        if path.stat().st_size > MAX_BYTES:
            message = f"the overlay {path} is larger than {MAX_BYTES // 1_000_000} MB"
            raise DocumentError(message, "check that it is the right file")
        raw = path.read_bytes()
        data, form = parse(raw, ProblemCollector(), f"{name}#")
    except OSError as error:
        raise DocumentError(f"the overlay {path} cannot be read: {error.strerror}", "check the path") from None
    except ParseError as error:
        raise DocumentError(f"{path} is not an overlay: {error}", error.hint) from None
    if (environment := overlay_of_postman_environment(data)) is not None:
        data, raw = environment, f"{json.dumps(environment, indent=2, ensure_ascii=False)}\n".encode()
    if not isinstance(data, dict) or not isinstance(data.get("actions"), list):
        hint = "an overlay has `overlay: 1.0.0`, `info` and `actions`"
        raise DocumentError(f"{path} is not an overlay: the list of actions is missing", hint)
    return Overlay(name, DocumentFile(data, raw, form))


def apply_overlays(document: Document, overlays: Sequence[Overlay]) -> Document:
    """Apply the overlays in order to the document's data, but not to its bytes."""
    if not overlays:
        return document
    problems = ProblemCollector()
    problems.extend(document.problems)
    data = _copied(document.data)  # YAML aliases share one value, but an action must change only the selected place
    for overlay in overlays:
        data = _apply(data, overlay, problems)
    parts = dict(document.parts)
    if document.main in parts:
        parts[document.main] = dataclasses.replace(parts[document.main], data=data)
    files = {overlay.name: overlay.part for overlay in overlays}
    return dataclasses.replace(document, data=data, parts=parts, overlays=files, problems=problems.all())


def _apply(data: dict[str, Any], overlay: Overlay, problems: ProblemCollector) -> dict[str, Any]:
    version = str(overlay.data.get("overlay", ""))
    if not _VERSIONS.match(version):
        message = f"unknown version {version!r} of the overlay; read as 1.1"
        problems.add("overlay-invalid", f"{overlay.name}#/overlay", message, "write `overlay: 1.1.0`")
    root = {"": data}  # an artificial parent allows an action to replace the root
    for number, action in enumerate(overlay.data["actions"]):
        location = f"{overlay.name}#/actions/{number}"
        try:
            found = _act(root, action)
        except _WrongActionError as error:
            problems.add("overlay-invalid", location + error.field, f"{error}; the action was skipped", error.hint)
        else:
            if not found:
                what = action.get("description") or action["target"]
                message = f"the action {what!r} matches nothing in the document"
                hint = "check that the overlay is for this document, and the spelling of the target"
                problems.add("overlay-unmatched", f"{location}/target", message, hint)
    return root[""]


class _WrongActionError(Exception):
    """Error for an invalid action. `field` is the pointer from the action to its invalid part."""

    def __init__(self, message: str, field: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.field = field
        self.hint = hint


def _act(root: dict[str, Any], action: Any) -> bool:
    if not isinstance(action, dict) or not isinstance(action.get("target"), str):
        raise _WrongActionError("an action must be an object with a `target`", "", "see the Overlay Specification")
    targets = _find(root[""], action["target"], "target")
    if action.get("remove") is True:
        for parent, key in _containers(root, targets, backwards=True):
            if parent is root:
                raise _WrongActionError("the whole document cannot be removed", "/target")
            del parent[key]
        return bool(targets)
    value = _value(root[""], action)
    kinds = {_kind(parent[key]) for parent, key in _containers(root, targets)}
    if len(kinds) > 1:
        raise _WrongActionError(
            "the target selects nodes of different kinds, such as objects and arrays", "/target", "narrow it"
        )
    # if an action cannot be applied to one of its targets, the action changes no target
    merged = [_merged(parent[key], value) for parent, key in _containers(root, targets)]
    for (parent, key), new in zip(_containers(root, targets), merged, strict=True):
        parent[key] = new
    return bool(targets)


def _value(data: Any, action: dict[str, Any]) -> Any:
    """Return the value to merge: the value of `update`, or a copy of the node at the path `copy` (1.1)."""
    update, copy = action.get("update", _NO_CHANGE), action.get("copy")
    if (update is _NO_CHANGE) == (copy is None):
        raise _WrongActionError("an action must have `update`, `copy` or `remove: true`")
    if copy is None:
        return update
    if not isinstance(copy, str):
        raise _WrongActionError("`copy` must be a JSONPath", "/copy")
    found = _find(data, copy, "copy")
    if len(found) != 1:
        raise _WrongActionError(f"`copy` must select one node, but selects {len(found)} nodes", "/copy", "narrow it")
    node = data
    for step in found[0]:
        node = node[step]
    return node


def _find(data: Any, path: str, field: str) -> list[tuple[Any, ...]]:
    try:
        return [location for location, _ in find_by_json_path(data, path)]
    except JsonPathError as error:
        raise _WrongActionError(str(error), f"/{field}", error.hint) from None


def _containers(
    root: dict[str, Any], targets: list[tuple[Any, ...]], *, backwards: bool = False
) -> list[tuple[Any, Any]]:
    """Return the container and the key of each target.

    `backwards` sorts inner and later targets first, so that they can be removed in this order.
    """
    if backwards:
        targets = sorted(
            set(targets), key=lambda steps: [(isinstance(step, int), step) for step in steps], reverse=True
        )
    found = []
    for steps in targets:
        parent, key = root, ""
        for step in steps:
            parent, key = parent[key], step
        found.append((parent, key))
    return found


def _kind(node: Any) -> str:
    return "an object" if isinstance(node, dict) else "an array" if isinstance(node, list) else "a value"


def _merged(target: Any, value: Any) -> Any:
    if isinstance(target, list):
        return [*target, *(_copied(value) if isinstance(value, list) else [_copied(value)])]
    if _kind(target) != _kind(value):
        raise _WrongActionError(f"{_kind(value)} cannot be merged into {_kind(target)}", "/update")
    if not isinstance(target, dict):
        return value
    new = dict(target)
    for key, item in value.items():
        if key not in new:
            new[key] = _copied(item)
        elif isinstance(new[key], list) and not isinstance(item, list):
            raise _WrongActionError(f"{key!r} is an array, but the value to merge is not an array", "/update")
        else:
            new[key] = _merged(new[key], item)
    return new


def _copied(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(item) for item in node] if isinstance(node, list) else node


# --- JSONPath (RFC 9535) ---


MAX_MATCHED_NODES: Final = 200_000  # maximum number of nodes that one JSONPath may match


class JsonPathError(Exception):
    """Error for an invalid JSONPath, or for a JSONPath that finds too many nodes."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def find_by_json_path(data: Any, path: str) -> list[tuple[tuple[Any, ...], Any]]:
    """Return (keys and indexes, value) of each node in `data` that a JSONPath matches."""
    from jsonpath import JSONPathEnvironment, JSONPathError  # noqa: PLC0415 - the import takes 70 ms

    found: list[tuple[tuple[Any, ...], Any]] = []
    try:
        compiled = JSONPathEnvironment().compile(path)
        if not isinstance(data, dict | list):  # the library would parse a plain text as JSON
            return [((), data)] if path.strip() == "$" else []
        for match in compiled.finditer(data):
            found.append((tuple(match.parts), match.obj))
            if len(found) > MAX_MATCHED_NODES:
                raise JsonPathError(f"the path selects more than {MAX_MATCHED_NODES:,} nodes", "narrow it")
    except (JSONPathError, RecursionError) as error:
        reason = " ".join(str(error).partition("\n")[0].split())[:200] or type(error).__name__
        raise JsonPathError(f"{path[:200]!r} is not a valid JSONPath: {reason}", "see RFC 9535") from None
    return found
