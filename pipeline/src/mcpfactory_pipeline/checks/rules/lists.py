"""Rules about the lists that a server offers: tools, resources, templates, prompts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence, Listing
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.probes import NOTHING_TO_ASK
from mcpfactory_pipeline.checks.rule import (
    Fault,
    RuleOutcome,
    RuleSubjects,
    RuleTable,
    not_applicable,
    not_checked,
    rule_outcome,
)
from mcpfactory_pipeline.checks.rules.subjects import missing_lifecycle_outcome, probed
from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND

RULES: Final = RuleTable()
rule, row = RULES.rule, RULES.row


class ListScope:
    """A list of a server that declares the list's capability."""

    def __init__(self, method: str) -> None:
        self._method = method

    def __call__(self, evidence: Evidence) -> RuleSubjects[Listing] | RuleOutcome:
        """Return the list, or the outcome of the rule if no list exists."""
        if (reason := missing_lifecycle_outcome(evidence)) is not None:
            return reason
        capability = _capability(self._method)
        if capability not in evidence.capabilities:
            return not_applicable(f"the server declares no {capability}")
        listing = evidence.lists.get(self._method)
        return not_checked(evidence.missing_reason(self._method)) if listing is None else RuleSubjects([listing])

    def faults(self, listing: Listing) -> Iterator[Fault]:
        """Yield the fault of an incomplete list."""
        shown = listing.exchanges[-1] if listing.exchanges else None
        if listing.problem:
            no_method = shown is not None and shown.code == METHOD_NOT_FOUND
            tolerated = no_method and self._method == "resources/templates/list"
            yield Fault(listing.problem, self._method, shown, lesser=1 if tolerated else None)


def _capability(method: str) -> str:
    return method.split("/", maxsplit=1)[0]


row("lists.tools", 5, gate=True, over=ListScope("tools/list"),
    statement="A server that declares tools lists them, and the list has a last page.",
    source="MCP server/tools, Listing Tools; server/utilities/pagination",
    hint="answer tools/list; leave nextCursor out on the last page")  # fmt: skip

row("lists.resources", 3, gate=True, over=ListScope("resources/list"),
    statement="A server that declares resources lists them.",
    source="MCP server/resources, Listing Resources",
    hint="answer resources/list, with an empty list if there are none")  # fmt: skip

row("lists.templates", 3, over=ListScope("resources/templates/list"),
    statement="A server that declares resources lists its templates; a missing method is tolerated.",
    source=("MCP server/resources, Resource Templates: the specification does not require templates, and no capability "
            "announces them"),
    hint="answer resources/templates/list, with an empty list if there are none")  # fmt: skip

row("lists.prompts", 3, gate=True, over=ListScope("prompts/list"),
    statement="A server that declares prompts lists them.",
    source="MCP server/prompts, Listing Prompts",
    hint="answer prompts/list, with an empty list if there are none")  # fmt: skip


def _all_lists(evidence: Evidence) -> RuleSubjects[Listing] | RuleOutcome:
    lists = tuple(evidence.lists.values())
    return missing_lifecycle_outcome(evidence) or RuleSubjects(lists, max(len(lists), 1))


@rule("lists.declared", 3, gate=True, over=_all_lists,
      statement="A server declares a capability for each kind of entry that it lists.",
      source="MCP basic/lifecycle, Capability Negotiation: clients do not request undeclared lists",
      hint="declare the capability")  # fmt: skip
def _declared(listing: Listing, evidence: Evidence) -> Iterator[Fault]:
    if listing.items and _capability(listing.method) not in evidence.capabilities:
        words = f"{listing.method} has entries, but the capability is not declared"
        yield Fault(words, listing.method, listing.exchanges[0])


@rule("lists.stable", 1, over=probed("list-again"),
      statement="tools/list, called again in the same session, returns the same tools in the same order.",
      source=("MCP server/tools, Listing Tools: tools should be in a deterministic order; models read the list from "
              "a cache"),
      hint="sort by name, or keep the order of registration")  # fmt: skip
def _stable(exchange: WireExchange, evidence: Evidence) -> Iterator[Fault]:
    listing = evidence.lists.get("tools/list")
    first = (listing.exchanges[0].result or {}).get("tools") if listing and listing.exchanges else None
    again = (exchange.result or {}).get("tools")
    if isinstance(first, list) and isinstance(again, list) and _names(first) != _names(again):
        moved = "in another order" if sorted(_names(first)) == sorted(_names(again)) else "with other tools"
        words = f"tools/list, called twice in one session, answered {moved} the second time"
        yield Fault(words, "tools/list", exchange)


def _names(items: list[Any]) -> list[str]:
    return [str(item.get("name")) if isinstance(item, dict) else "" for item in items]


_EXPRESSION: Final = re.compile(r"\{[+#./;?&]?[\w.%]+(:\d+|\*)?(,[\w.%]+(:\d+|\*)?)*\}")


def _resources(evidence: Evidence) -> RuleSubjects[tuple[str, Any]] | RuleOutcome:
    found = [
        (key, item)
        for method, key in (("resources/list", "uri"), ("resources/templates/list", "uriTemplate"))
        if method in evidence.lists
        for item in evidence.lists[method].items
    ]
    return missing_lifecycle_outcome(evidence) or RuleSubjects(found)


@rule("lists.uris", 3, gate=True, over=_resources,
      statement="Resource URIs have a scheme and no spaces, and URI templates follow RFC 6570.",
      source="MCP server/resources: resources are identified by a URI (RFC 3986), templates by RFC 6570",
      hint="give a relative name a custom scheme: zoo://plan")  # fmt: skip
def _uris(resource: tuple[str, Any]) -> Iterator[Fault]:
    key, item = resource
    uri, template = item.get(key) if isinstance(item, dict) else None, key != "uri"
    if isinstance(uri, str) and not _is_uri(uri, template=template):
        yield Fault(f"{key} {uri!r} is not a valid {'URI template' if template else 'URI'}", f"resources, {key}")


def _is_uri(text: str, *, template: bool) -> bool:
    """Return True if the text has a scheme and no blanks (RFC 3986), and all its braces are expressions (RFC 6570)."""
    plain = _EXPRESSION.sub("x", text) if template else text
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", plain)
    return bool(scheme or (template and text.startswith("{"))) and not re.search(
        r"[\s{}]" if template else r"\s", plain
    )


@rule("lists.unique", 3,
      statement="No two resources have the same URI and no two prompts the same name.",
      source="MCP server/resources and server/prompts: the key must be unique",
      hint="list each entry once, and check that pages do not overlap")  # fmt: skip
def _unique(evidence: Evidence) -> RuleOutcome:
    lists = [("resources/list", "uri"), ("prompts/list", "name")]
    having = [(key, listing) for method, key in lists if (listing := evidence.lists.get(method)) and listing.items]
    return rule_outcome(len(having), (fault for key, listing in having for fault in _repeated(key, listing)))


def _repeated(key: str, listing: Listing) -> Iterator[Fault]:
    values = [str(item.get(key)) for item in listing.items if isinstance(item, dict)]
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        yield Fault(f"{key} listed more than once: {', '.join(twice[:5])}", listing.method, listing.exchanges[0])


def _readable(evidence: Evidence) -> RuleOutcome | None:
    listing = evidence.lists.get("resources/list")
    if listing is not None and not listing.items:
        return not_applicable("the server lists no resources")
    asked = evidence.probes.get("read-resource")
    uri = asked.params.get("uri") if asked is not None else None
    if isinstance(uri, str) and not _is_uri(uri, template=False):
        return not_applicable("the first resource has no valid URI (reported by lists.uris)")
    if listing is not None and evidence.missing.get("read-resource") == NOTHING_TO_ASK:
        return not_checked("it was not observed")  # the server offers no resource with a URI
    return None


@rule("lists.resource-readable", 3, over=probed("read-resource", given=_readable),
      statement="The first listed resource can be read.",
      source="MCP server/resources, Reading Resources",
      hint="list only readable resources; contents must have text or blob")  # fmt: skip
def _read(exchange: WireExchange) -> Iterator[Fault]:
    contents = (exchange.result or {}).get("contents")
    if exchange.result is None:
        yield Fault("the first listed resource cannot be read", "resources/read", exchange)
    elif not isinstance(contents, list) or not all(
        isinstance(item, dict) and ("text" in item or "blob" in item) for item in contents
    ):
        yield Fault("contents is not a list of objects with text or blob", "resources/read", exchange)
