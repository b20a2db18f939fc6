"""Data model of a protocol revision, and its definition as a delta to the previous one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from mcpfactory_runtime.protocol.methods import METHODS

Names = frozenset[str]

# The sets of a revision that name rows of `METHODS`.
_METHOD_SETS: Final = ("methods", "client_requests", "notifications", "client_notifications")


@dataclass(frozen=True, eq=False)  # no slots: cached properties
class Revision:
    """One released revision. Names missing from a set *are* the version gate, the only one.

    Fields, each from the revision's schema unless a section is named:
        name: the string on the wire.
        modern: the lifecycle: False is the handshake (`initialize`), True is metadata on every request.
        requests: methods a client may request.
        extensions: identifier of an extension → the methods that it lets a client request; they are in no schema of
            the revision, and exist on servers that advertise the extension.
        client_requests: methods a server may request (in the modern lifecycle: inside `inputRequests`).
        notifications: notifications a server may send.
        client_notifications: notifications a client may send.
        fields: wire type → names of its fields.
        content: content block types of tool results and prompts.
        cacheable: methods whose complete results carry `ttlMs` and `cacheScope`.
        input_required: calls of methods whose row permits it may end with `resultType: input_required`
            (basic/patterns/mrtr).
        client_capabilities: capability names that a client may declare.
        elicitation_modes: `form`, `url`.
        batches: JSON-RPC arrays must be accepted (basic/index, Batching).
        structured_any: structured content and output schemas may be other than objects.
        result_type: every result carries `resultType`.
        null_id: an error without a request ID has `"id": null`; otherwise the member is left out.
        version_header: HTTP requests carry `MCP-Protocol-Version` (basic/transports).
        priming: an SSE stream begins with an event that has an ID and empty data (basic/transports, polling).
        resource_not_found: the error code of `resources/read` for an unknown URI (server/resources).
        form_fields: kind of field of an elicitation form → its keywords; a missing kind cannot be asked
            (client/elicitation, Requested Schema).
        wire_names: row of `METHODS` → its name on the wire in this revision, if it differs from the row's name.
        method_header: HTTP requests carry `Mcp-Method` and `Mcp-Name`; those of tools with `x-mcp-header`
            `Mcp-Param-*`.
    """

    name: str
    modern: bool
    requests: Names
    client_requests: Names
    notifications: Names
    client_notifications: Names
    fields: Mapping[str, Names]
    content: Names
    cacheable: Names = frozenset()
    input_required: bool = False
    client_capabilities: Names = frozenset()
    elicitation_modes: Names = frozenset()
    batches: bool = False
    structured_any: bool = False
    result_type: bool = False
    null_id: bool = True
    version_header: bool = False
    priming: bool = False
    resource_not_found: int = -32002
    method_header: bool = False
    extensions: Mapping[str, Names] = field(default_factory=dict)
    form_fields: Mapping[str, Names] = field(default_factory=dict)
    wire_names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check that every method is a row of the table.

        Raises:
            ValueError: one is not.
        """
        named = self.methods.union(self.client_requests, self.notifications, self.client_notifications, self.cacheable)
        if unknown := named.union(self.wire_names).difference(METHODS):
            raise ValueError(
                f"revision {self.name} names {', '.join(sorted(unknown))}, which the table of methods does not have; "
                "hint: add a row to protocol/methods.py, or correct the name"
            )

    @cached_property
    def methods(self) -> Names:
        """Everything that a client may request: `requests` and the methods of extensions."""
        return self.requests.union(*self.extensions.values())

    @cached_property
    def input_requests(self) -> Names:
        """Methods that may end with `resultType: input_required`."""
        return frozenset(name for name in self.methods if self.input_required and METHODS[name].input_required)

    @cached_property
    def rows(self) -> Mapping[str, Mapping[str, str]]:
        """Set of methods (`methods`, `client_requests`, …) → name on the wire → row of `METHODS`."""
        return {kind: {self.wire_names.get(row, row): row for row in getattr(self, kind)} for kind in _METHOD_SETS}

    def wire(self, row: str) -> str:
        """Return the name of a row of `METHODS` on the wire in this revision."""
        return self.wire_names.get(row, row)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<revision {self.name}>"


def successor(
    before: Revision,
    name: str,
    *,
    add: Mapping[str, Iterable[str]] | None = None,
    drop: Mapping[str, Iterable[str]] | None = None,
    add_fields: Mapping[str, str] | None = None,
    drop_fields: Mapping[str, str] | None = None,
    **changes: Any,
) -> Revision:
    """Return the revision after `before`.

    Args:
        before: the revision from which this one differs.
        name: the new revision's name.
        add: attribute → members that the set gains.
        drop: attribute → members that the set loses; dropping a missing member is an error (AssertionError).
        add_fields: wire type → new fields, separated by blanks.
        drop_fields: wire type → lost fields, separated by blanks.
        changes: attributes with new values.
    """
    sets: dict[str, Names] = {}
    for attribute, members in (add or {}).items():
        sets[attribute] = getattr(before, attribute) | frozenset(members)
    for attribute, members in (drop or {}).items():
        old: Names = sets.get(attribute, getattr(before, attribute))
        assert old.issuperset(members), f"{name}: {attribute} never had {set(members) - old}"
        sets[attribute] = old - frozenset(members)
    fields = dict(before.fields)
    for wire_type, names in (add_fields or {}).items():
        fields[wire_type] = fields.get(wire_type, frozenset()) | frozenset(names.split())
    for wire_type, names in (drop_fields or {}).items():
        assert fields[wire_type].issuperset(names.split()), f"{name}: {wire_type} never had all of {names}"
        fields[wire_type] -= frozenset(names.split())
    changes.update(sets)
    return replace(before, name=name, fields=fields, **changes)
