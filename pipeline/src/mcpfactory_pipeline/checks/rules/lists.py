"""Rules over the lists that a server offers: tools, resources, templates, prompts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from mcpfactory_pipeline.checks.evidence import Evidence, Listing
from mcpfactory_pipeline.checks.exchange import WireExchange, has_member
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, not_applicable, not_checked, rule_outcome
from mcpfactory_pipeline.checks.rules.legacy import era_or_reason, probe_check
from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND


def _readable(method: str, keys: tuple[str, ...]) -> Callable[[Evidence], RuleOutcome]:
    """Return a check that a list could be read to its end and that its entries have `keys`."""
    capability = method.split("/", maxsplit=1)[0]

    def check(evidence: Evidence) -> RuleOutcome:
        if (reason := era_or_reason(evidence)) is not None:
            return reason
        if capability not in evidence.capabilities:
            return not_applicable(f"the server declares no {capability}")
        listing = evidence.lists.get(method)
        if listing is None:
            return not_checked(evidence.why_missing(method))
        return RuleOutcome(tuple(_faults(method, listing, keys)))

    return check


def _faults(method: str, listing: Listing, keys: tuple[str, ...]) -> Iterator[Fault]:
    shown = listing.exchanges[-1] if listing.exchanges else None
    if listing.problem:
        without = method == "resources/templates/list" and shown is not None and shown.code == METHOD_NOT_FOUND
        yield Fault(listing.problem, method, shown, lesser=1 if without else None)
    bad = [
        index
        for index, item in enumerate(listing.items)
        if not isinstance(item, dict) or not all(isinstance(item.get(key), str) and item[key] for key in keys)
    ]
    if bad:
        yield Fault(
            f"{len(bad)} entries have no {' or '.join(keys)} that is a string; the first is entry {bad[0]}",
            method,
            shown,
        )


def _declared(evidence: Evidence) -> RuleOutcome:
    undeclared = [method for method in evidence.lists if method.split("/", maxsplit=1)[0] not in evidence.capabilities]
    return era_or_reason(evidence) or rule_outcome(
        max(len(evidence.lists), 1),
        (
            Fault(
                f"{method} has entries, but the capability is not declared", method, evidence.lists[method].exchanges[0]
            )
            for method in undeclared
            if evidence.lists[method].items
        ),
    )


def _unique(evidence: Evidence) -> RuleOutcome:
    lists = [("resources/list", "uri"), ("prompts/list", "name")]
    having = [
        (method, key, evidence.lists[method])
        for method, key in lists
        if method in evidence.lists and evidence.lists[method].items
    ]
    return rule_outcome(
        len(having), (fault for method, key, listing in having for fault in _repeated(method, key, listing))
    )


def _repeated(method: str, key: str, listing: Listing) -> Iterator[Fault]:
    values = [str(item.get(key)) for item in listing.items if isinstance(item, dict)]
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        yield Fault(f"{key} listed more than once: {', '.join(twice[:5])}", method, listing.exchanges[0])


def _stable(exchange: WireExchange, evidence: Evidence) -> Iterator[Fault]:
    listing = evidence.lists.get("tools/list")
    first = (listing.exchanges[0].result or {}).get("tools") if listing and listing.exchanges else None
    again = (exchange.result or {}).get("tools")
    if isinstance(first, list) and isinstance(again, list) and _names(first) != _names(again):
        moved = "in another order" if sorted(_names(first)) == sorted(_names(again)) else "with other tools"
        yield Fault(
            f"tools/list, called twice in one session, answered {moved} the second time", "tools/list", exchange
        )


def _names(items: list[Any]) -> list[str]:
    return [str(item.get("name")) if isinstance(item, dict) else "" for item in items]


def _listed_again(evidence: Evidence) -> RuleOutcome:
    return probe_check("list-again", lambda exchange: _stable(exchange, evidence), era="", capability="tools")(evidence)


# Optional members, and the check of their values.
_OPTIONAL: Final[dict[str, Callable[[Any], bool]]] = {
    "title": lambda value: isinstance(value, str),
    "description": lambda value: isinstance(value, str),
    "mimeType": lambda value: isinstance(value, str),
    "size": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value >= 0,
    "icons": lambda value: (
        isinstance(value, list) and all(isinstance(icon, dict) and isinstance(icon.get("src"), str) for icon in value)
    ),
    "arguments": lambda value: (
        isinstance(value, list) and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in value)
    ),
}


def _members(evidence: Evidence) -> RuleOutcome:
    entries = [
        (listing.method, item, listing)
        for listing in evidence.lists.values()
        if listing.method != "tools/list"
        for item in listing.items
        if isinstance(item, dict)
    ]
    faults = (
        Fault(f"{key} of an entry is {item[key]!r}"[:200], method, listing.exchanges[0])
        for method, item, listing in entries
        for key, fits in _OPTIONAL.items()
        if key in item and has_member(key, evidence.revisions) and not fits(item[key])
    )
    return era_or_reason(evidence) or rule_outcome(len({method for method, _, _ in entries}), faults)


_EXPRESSION: Final = re.compile(r"\{[+#./;?&]?[\w.%]+(:\d+|\*)?(,[\w.%]+(:\d+|\*)?)*\}")


def _uris(evidence: Evidence) -> RuleOutcome:
    resources, templates = evidence.lists.get("resources/list"), evidence.lists.get("resources/templates/list")
    uris = [(one, "uri") for one in (resources.items if resources else ())]
    uris += [(one, "uriTemplate") for one in (templates.items if templates else ())]
    faults = (
        Fault(f"{key} {one[key]!r} is not a valid {('URI' if key == 'uri' else 'URI template')}", f"resources, {key}")
        for one, key in uris
        if isinstance(one, dict) and isinstance(one.get(key), str) and not _is_uri(one[key], template=key != "uri")
    )
    return era_or_reason(evidence) or rule_outcome(len(uris), faults)


def _is_uri(text: str, *, template: bool) -> bool:
    """Return True if a text has a scheme and no blanks (RFC 3986), and all braces are expressions (RFC 6570)."""
    plain = _EXPRESSION.sub("x", text) if template else text
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", plain)
    return bool(scheme or (template and text.startswith("{"))) and not re.search(
        r"[\s{}]" if template else r"\s", plain
    )


def _read(exchange: WireExchange) -> Iterator[Fault]:
    contents = (exchange.result or {}).get("contents")
    if exchange.result is None:
        yield Fault("the first listed resource cannot be read", "resources/read", exchange)
    elif not isinstance(contents, list) or not all(
        isinstance(item, dict) and ("text" in item or "blob" in item) for item in contents
    ):
        yield Fault("contents is not a list of objects with text or blob", "resources/read", exchange)


def _first_read(evidence: Evidence) -> RuleOutcome:
    listing = evidence.lists.get("resources/list")
    if listing is not None and not listing.items:
        return not_applicable("the server lists no resources")
    asked = evidence.probes.get("read-resource")
    uri = asked.sent["params"].get("uri") if asked is not None and isinstance(asked.sent, dict) else None
    if isinstance(uri, str) and not _is_uri(uri, template=False):
        return not_applicable("the first resource has no URI that a client could ask for: lists.uris says so")
    return probe_check("read-resource", _read, era="", capability="resources")(evidence)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="lists.tools", severity=5, gate=True, check=_readable("tools/list", ("name",)),
        statement="A server that declares tools lists them, and the list has a last page.",
        source="MCP server/tools, Listing Tools; server/utilities/pagination",
        hint="answer tools/list; leave nextCursor out on the last page",
    ),
    Rule(
        id="lists.resources", severity=3, check=_readable("resources/list", ("uri", "name")),
        statement="A server that declares resources lists them, each with uri and name.",
        source="MCP server/resources, Listing Resources",
        hint="answer resources/list, with an empty list if there are none",
    ),
    Rule(
        id="lists.templates", severity=3, check=_readable("resources/templates/list", ("uriTemplate", "name")),
        statement=("A server that declares resources lists its templates, each with uriTemplate and name (a missing "
                   "method is tolerated)."),
        source=("MCP server/resources, Resource Templates: no sentence demands them, and no capability says that "
                "there are some"),
        hint="answer resources/templates/list, with an empty list if there are none",
    ),
    Rule(
        id="lists.prompts", severity=3, check=_readable("prompts/list", ("name",)),
        statement="A server that declares prompts lists them, each with a name.",
        source="MCP server/prompts, Listing Prompts",
        hint="answer prompts/list, with an empty list if there are none",
    ),
    Rule(
        id="lists.declared", severity=3, check=_declared,
        statement="A server declares a capability for each kind of entry that it lists.",
        source="MCP basic/lifecycle, Capability Negotiation: clients do not ask for what is not declared",
        hint="declare the capability",
    ),
    Rule(
        id="lists.stable", severity=1, check=_listed_again,
        statement="tools/list, called again in the same session, returns the same tools in the same order.",
        source=("MCP server/tools, Listing Tools: tools should be in a deterministic order; models read the list from "
                "a cache"),
        hint="sort by name, or keep the order of registration",
    ),
    Rule(
        id="lists.members", severity=3, gate=True, check=_members,
        statement="Titles, descriptions, sizes, icons and arguments of listed entries match the schema.",
        source="MCP schema, Resource, ResourceTemplate, Prompt, Icon",
        hint="leave out unknown values; clients refuse a list because of one invalid member",
    ),
    Rule(
        id="lists.uris", severity=3, gate=True, check=_uris,
        statement="Resource URIs have a scheme and no spaces, and URI templates follow RFC 6570.",
        source="MCP server/resources: resources are identified by a URI (RFC 3986), templates by RFC 6570",
        hint="give a relative name a custom scheme: zoo://plan",
    ),
    Rule(
        id="lists.unique", severity=3, check=_unique,
        statement="No two resources have the same URI and no two prompts the same name.",
        source="MCP server/resources and server/prompts: the key must be unique",
        hint="list each once; check that pages do not overlap",
    ),
    Rule(
        id="lists.read", severity=3, check=_first_read,
        statement="The first listed resource can be read.",
        source="MCP server/resources, Reading Resources",
        hint="list only readable resources; contents must have text or blob",
    ),
)  # fmt: skip
