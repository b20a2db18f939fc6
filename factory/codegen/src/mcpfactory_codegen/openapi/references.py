"""Locations in a document, and resolution of `$ref`. Pure.

A location consists of a part of the document and a JSON pointer into that part. References are never expanded, so that
references cannot make a document grow. Each distinct reference is resolved only once. A chain of references has at most
`MAX_HOPS` steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from mcpfactory_codegen.read.document import Document, join_reference
from mcpfactory_runtime.schemas.walk import DATA, escape, unescape
from mcpfactory_runtime.urls import has_web_scheme

MAX_HOPS: Final = 50


class Location(NamedTuple):
    """A part of the document ("" is the main file), and a JSON pointer in the part."""

    part: str
    pointer: str

    def down(self, *tokens: str | int) -> Location:
        """Return the location of a child."""
        pointer = self.pointer
        for token in tokens:  # a loop is faster than join, which matters because this method is called for each node
            pointer += f"/{escape(str(token))}"
        return Location(self.part, pointer)

    def __str__(self) -> str:
        """Return a bare pointer in the main file, or `file#pointer` in another part."""
        return f"{self.part}#{self.pointer}" if self.part else self.pointer


class LocatedNode(NamedTuple):
    """A node and its location."""

    node: Any
    location: Location

    def parts(self, *keywords: str) -> Iterator[LocatedNode]:
        """Yield the schemas in the lists under these keywords, without resolving references."""
        for keyword in keywords:
            listed = self.node.get(keyword) if isinstance(self.node, dict) else None
            for index, part in enumerate(listed if isinstance(listed, list) else ()):
                yield LocatedNode(part, self.location.down(keyword, index))


class UnresolvedError(Exception):
    """Error for a reference without a target, with a problem code."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def _cycle(reference: str) -> UnresolvedError:
    return UnresolvedError("reference-cycle", f"the reference {reference[:200]!r} points back to itself")


_NO_REFERENCES: Final = DATA | {"value"}
"""Keys of values in which `$ref` is not a reference."""


class References:
    """Resolver of the `$ref`s of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._parts = {("" if name == document.main else name): part.data for name, part in document.parts.items()}
        self._parts.setdefault("", document.data)
        self._found: dict[tuple[str, str], LocatedNode] = {}
        self._resolving: set[tuple[str, str]] = set()
        self._anchors: dict[str, dict[str, Location]] = {}
        self._ids: dict[str, Location] | None = None
        self.repaired: list[tuple[Location, str]] = []
        """Locations of repaired references, each with the assumption of the repair."""

    def follow(self, node: Any, location: Location) -> LocatedNode:
        """Return the node itself, or the node at the end of its `$ref` chain.

        Raise an UnresolvedError for a missing target or a cycle.
        """
        seen: set[Location] = set()
        while isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
            if location in seen or len(seen) >= MAX_HOPS:
                raise _cycle(reference)
            seen.add(location)
            node, location = self.resolve(reference, location)
        return LocatedNode(node, location)

    def mapping(self, node: Any, location: Location) -> LocatedNode:
        """Return the node, or the target of a reference that replaces a map of names (`properties: {$ref: …}`).

        A key "$ref" whose value is not a string is an entry of the map.
        """
        if isinstance(node, dict) and isinstance(node.get("$ref"), str):
            try:
                return self.follow(node, location)
            except UnresolvedError:
                pass  # the error is reported later, when "$ref" is read as an entry of the map
        return LocatedNode(node, location)

    def resolve(self, reference: str, at: Location) -> LocatedNode:
        """Return the target of one `$ref` located at `at`. The target can itself be a reference.

        Raise an UnresolvedError with the code reference-dangling, reference-refused or reference-cycle.
        """
        key = (at.part, reference)
        if (known := self._found.get(key)) is not None:
            return known
        if key in self._resolving or len(self._resolving) > MAX_HOPS:
            raise _cycle(reference)
        self._resolving.add(key)
        try:
            target = self._found[key] = self._direct(reference, at)
        except UnresolvedError as error:
            if error.code == "reference-dangling" and (nearby := self._nearby(reference, at)) is not None:
                return nearby  # the target is not cached, because targets depend on the location of the reference
            if error.code == "reference-cycle" or (target_ := self._repaired(reference, at)) is None:
                raise
            target = self._found[key] = target_
        finally:
            self._resolving.discard(key)
        return target

    def unresolved(self) -> Iterator[tuple[Location, UnresolvedError]]:
        """Yield the references of the main file that have no target, even in unused definitions."""
        stack: list[tuple[Any, Location]] = [(self._parts[""], Location("", ""))]
        while stack:
            node, location = stack.pop()
            if isinstance(node, dict) and isinstance(reference := node.get("$ref"), str):
                try:
                    self.resolve(reference, location)
                except UnresolvedError as error:
                    yield location.down("$ref"), error
            pairs = node.items() if isinstance(node, dict) else enumerate(node)
            stack += [
                (value, location.down(key))
                for key, value in reversed([*pairs])
                if isinstance(value, dict | list) and key not in _NO_REFERENCES and not str(key).startswith("x-")
            ]

    def _direct(self, reference: str, at: Location) -> LocatedNode:
        name, _, fragment = reference.strip().partition("#")
        base = self._base(name, reference, at) if name else Location(at.part, "")
        if not fragment:
            return self._descend(base, [], reference)
        if not fragment.startswith("/"):
            if (location := self._anchor(base.part, unquote(fragment))) is None:
                message = f"the reference {reference[:200]!r} points to an unknown anchor"
                raise UnresolvedError("reference-dangling", message)
            return self._descend(location, [], reference)
        try:
            return self._descend(base, _tokens(unquote(fragment)), reference)
        except UnresolvedError:
            if "%" not in fragment:
                raise
            return self._descend(base, _tokens(fragment), reference)  # the key contains a literal "%"

    def _base(self, name: str, reference: str, at: Location) -> Location:
        """Return the location of the part or schema that the file name or URL of a reference identifies."""
        whole = join_reference(at.part or self._document.main, name)
        if whole == self._document.main:
            return Location("", "")
        if whole in self._parts:
            return Location(whole, "")
        if (location := self._identified(name, whole)) is not None:
            return location
        reason = self._document.refused.get(whole, "it was not loaded")
        if reason == "there is no such file":
            message = f"the reference {reference[:200]!r} points to a missing file"
            raise UnresolvedError("reference-dangling", message, "check the path")
        message = f"the reference {reference[:200]!r} was not followed: {reason[:200]}"
        web = has_web_scheme(whole)
        hint = "save it next to the document, or allow its host" if web else "move it below the folder of the document"
        raise UnresolvedError("reference-refused", message, hint)

    def _descend(self, base: Location, tokens: list[str], reference: str) -> LocatedNode:
        """Resolve a pointer and the references on its path, as in `#/paths/~1a/get/parameters/0/schema`."""
        location, node = Location(base.part, ""), self._parts[base.part]
        hops = 0
        for token in [*_tokens(base.pointer), *tokens]:
            while isinstance(node, dict) and token not in node and isinstance(node.get("$ref"), str):
                hops += 1
                if hops > MAX_HOPS:
                    raise _cycle(reference)
                node, location = self.resolve(node["$ref"], location)
            if isinstance(node, dict) and token in node:
                node = node[token]
            elif isinstance(node, list) and re.fullmatch(r"[0-9]{1,8}", token) and int(token) < len(node):
                node = node[int(token)]
            else:
                place = str(location) or "the document"
                message = f"the reference {reference[:200]!r} has no target: {token[:80]!r} is missing in {place}"
                raise UnresolvedError("reference-dangling", message, "correct the reference, or add its target")
            location = location.down(token)
        return LocatedNode(node, location)

    def _nearby(self, reference: str, at: Location) -> LocatedNode | None:
        """Return the target of `#/$defs/x` in the nearest enclosing schema that has this definition.

        Authors often paste schemas into a document together with their definitions.
        """
        if not reference.startswith(("#/$defs/", "#/definitions/")):
            return None
        tokens = _tokens(unquote(reference[1:]))
        above = _tokens(at.pointer)
        for length in range(len(above), 0, -1):
            base = Location(at.part, "".join(f"/{escape(token)}" for token in above[:length]))
            try:
                return self._descend(base, tokens, reference)
            except UnresolvedError:
                continue
        return None

    def _repaired(self, reference: str, at: Location) -> LocatedNode | None:
        """Return the probable target of a broken reference.

        Typical mistakes are a missing `#`, a path of another version of OpenAPI, and wrong capitalization.
        """
        for tokens in suggest_targets(reference, self._parts[at.part]):
            with suppress(UnresolvedError):
                parent = self._descend(Location(at.part, ""), tokens[:-1], reference).node
                names = list(parent) if isinstance(parent, dict) else []
                near = [name for name in names if name.casefold() == tokens[-1].casefold()]
                name = tokens[-1] if tokens[-1] in names else near[0] if len(near) == 1 else ""
                if name:
                    target = self._descend(Location(at.part, ""), [*tokens[:-1], name], reference)
                    read_as = f"read as '#{target.location.pointer}'"
                    self.repaired.append((at, f"the reference {reference[:200]!r} has no target; {read_as}"))
                    return target
        return None

    def _anchor(self, part: str, name: str) -> Location | None:
        if part not in self._anchors:
            self._anchors[part] = self._named(part, "$anchor", "$dynamicAnchor")
        return self._anchors[part].get(name)

    def _identified(self, name: str, whole: str) -> Location | None:
        if self._ids is None:
            self._ids = {}
            for part in self._parts:
                for known, location in self._named(part, "$id", "$self").items():
                    self._ids.setdefault(known.rstrip("#"), location)
        return self._ids.get(name) or self._ids.get(whole)

    def _named(self, part: str, *keywords: str) -> dict[str, Location]:
        """Return the locations of the objects with an ID in one of these keywords, by ID."""
        found: dict[str, Location] = {}
        stack: list[tuple[Any, Location]] = [(self._parts[part], Location(part, ""))]
        while stack:
            node, at = stack.pop()
            if isinstance(node, dict):
                for keyword in keywords:
                    if isinstance(node.get(keyword), str):
                        found.setdefault(node[keyword], at)
                stack.extend((value, at.down(key)) for key, value in node.items())
            elif isinstance(node, list):
                stack.extend((value, at.down(index)) for index, value in enumerate(node))
        return found


def _tokens(pointer: str) -> list[str]:
    return [unescape(token) for token in pointer.split("/")[1:]]


# --- probable targets of broken references ---


_GROUP: Final = "schemas|parameters|responses|requestBodies|headers|securitySchemes|examples|pathItems"
_TARGET: Final = re.compile(
    rf"#?/?((?:components/(?:{_GROUP})|definitions|parameters|responses|securityDefinitions)/.+)"
)
_BARE: Final = re.compile(r"#?/?[\w.-]+(?<!\.json)(?<!\.yaml)(?<!\.yml)")
_OLD: Final = {"definitions": "schemas", "parameters": "parameters", "responses": "responses"}


def suggest_targets(reference: str, data: Any) -> Iterator[list[str]]:
    """Yield probable targets of a broken reference, each as the tokens of a JSON pointer."""
    text = reference.strip()
    old = isinstance(data, dict) and "swagger" in data
    if _BARE.fullmatch(text) and text != "#":
        name = text.lstrip("#/")
        yield ["definitions", name] if old else ["components", "schemas", name]
    match = _TARGET.fullmatch(text)
    if match is None:
        return
    tokens = [unescape(token) for token in unquote(match[1]).split("/")]
    yield tokens
    if tokens[0] == "components" and len(tokens) > 2:
        group = next((key for key, value in _OLD.items() if value == tokens[1]), tokens[1])
        yield [group, *tokens[2:]]
    elif tokens[0] in _OLD:
        yield ["components", _OLD[tokens[0]], *tokens[1:]]


_LEVELS: Final = 8  # maximum levels of references and combinations to search for properties


def composed(references: References, schema: LocatedNode, *keywords: str) -> Iterator[LocatedNode]:
    """Yield the resolved object schema, then the schemas in its lists under `keywords`.

    The order is depth first, without duplicates.
    """
    waiting = [(schema, _LEVELS)]
    seen: set[Location] = set()
    while waiting:
        one, levels = waiting.pop()
        with suppress(UnresolvedError):  # the error is reported when the schema is translated
            one = references.follow(*one)
            if isinstance(one.node, dict) and levels and one.location not in seen:
                seen.add(one.location)
                yield one
                waiting += [(part, levels - 1) for part in reversed([*one.parts(*keywords)])]
