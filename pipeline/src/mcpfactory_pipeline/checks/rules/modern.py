"""Rules over the per-request lifecycle (`server/discover`, metadata on every request)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import CACHEABLE, FIRST_MODERN, META, MODERNS, VERSION, WireExchange
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, first_each, not_applicable, rule_outcome
from mcpfactory_pipeline.checks.rules.legacy import (
    describe_answer,
    era_or_reason,
    expects_error,
    probe_check,
    unknown_method,
)
from mcpfactory_runtime.protocol.errors import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_VERSION,
    URL_ELICITATION_REQUIRED,
)
from mcpfactory_runtime.revisions import LATEST

_MODERN_CODES: Final = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION)


def _discover(evidence: Evidence) -> RuleOutcome:
    return era_or_reason(evidence, "modern") or RuleOutcome(tuple(_discover_faults(evidence.discover)))


def _discover_faults(exchange: WireExchange | None) -> Iterator[Fault]:
    result = exchange.result if exchange else None
    if result is None:
        yield Fault("server/discover has no result", "server/discover", exchange)
        return
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
        yield Fault("supportedVersions is not a list of strings", "server/discover", exchange)
    elif not set(versions) & set(MODERNS):
        yield Fault(
            f"supportedVersions {versions} has no per-request revision, but the server answered one",
            "server/discover",
            exchange,
        )
    if not isinstance(result.get("capabilities"), dict):
        yield Fault("the result has no capabilities object", "server/discover", exchange)


def _modern_results(evidence: Evidence) -> list[WireExchange]:
    return [exchange for exchange in evidence.traffic if exchange.result is not None and is_modern(exchange)]


def is_modern(exchange: WireExchange) -> bool:
    """Return True if the request has per-request metadata of a known revision; only such answers are judged."""
    params = exchange.sent.get("params") if isinstance(exchange.sent, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and meta.get(VERSION) in MODERNS


def _result_type(evidence: Evidence) -> RuleOutcome:
    results = _modern_results(evidence)
    faults = (
        Fault(f"resultType is {exchange.result.get('resultType')!r}", _method(exchange), exchange)
        for exchange in results
        if exchange.result is not None and not isinstance(exchange.result.get("resultType"), str)
    )
    return era_or_reason(evidence, "modern") or rule_outcome(
        len({_method(exchange) for exchange in results}), first_each(faults)
    )


def _known_types(evidence: Evidence) -> RuleOutcome:
    results = _modern_results(evidence)
    faults = (
        Fault(f"resultType is {kind!r}", _method(exchange), exchange)
        for exchange in results
        if isinstance(kind := (exchange.result or {}).get("resultType"), str)
        and kind not in ("complete", "input_required")
    )
    return era_or_reason(evidence, "modern") or rule_outcome(len(results), first_each(faults))


def _input_required(evidence: Evidence) -> RuleOutcome:
    asking = [
        exchange
        for exchange in _modern_results(evidence)
        if (exchange.result or {}).get("resultType") == "input_required"
    ]
    if not era_or_reason(evidence, "modern") and not asking:
        return not_applicable("no result asked for input")
    return era_or_reason(evidence, "modern") or rule_outcome(
        len({_method(exchange) for exchange in asking}), first_each(_asking(asking))
    )


def _asking(results: list[WireExchange]) -> Iterator[Fault]:
    for exchange in results:
        result, method = exchange.result or {}, _method(exchange)
        requests = result.get("inputRequests")
        if method not in LATEST.input_requests:
            yield Fault(f"{method} must not ask for input", method, exchange)
        elif requests is None and not isinstance(result.get("requestState"), str):
            yield Fault("inputRequests and requestState are both missing", method, exchange)
        elif requests:
            yield Fault(
                "the server asks the client for input, but the client declared no capability for it", method, exchange
            )


def _error_codes(evidence: Evidence) -> RuleOutcome:
    failed = [exchange for exchange in evidence.traffic if exchange.code is not None and is_modern(exchange)]
    faults = (
        Fault(f"error {exchange.code} is not one of the revision's codes", _method(exchange), exchange)
        for exchange in failed
        if exchange.code in (RESOURCE_NOT_FOUND, URL_ELICITATION_REQUIRED)
        or (-32099 <= (exchange.code or 0) <= -32020 and exchange.code not in _MODERN_CODES)
    )
    return era_or_reason(evidence, "modern") or rule_outcome(len(failed), first_each(faults))


def _named(evidence: Evidence) -> RuleOutcome:
    results = _modern_results(evidence)
    faults = (
        Fault("the result's metadata has no serverInfo", "serverInfo", exchange)
        for exchange in results
        if not isinstance((exchange.result or {}).get("_meta"), dict)
        or META + "serverInfo" not in (exchange.result or {})["_meta"]
    )
    return era_or_reason(evidence, "modern") or rule_outcome(len(results), first_each(faults))


def _cache_pages(evidence: Evidence) -> RuleOutcome:
    lists = [listing for listing in evidence.lists.values() if any(map(is_modern, listing.exchanges))]
    faults = (
        Fault(f"the pages have different scopes: {', '.join(map(str, scopes))}", listing.method, listing.exchanges[-1])
        for listing in lists
        if len(scopes := sorted({str((page.result or {}).get("cacheScope")) for page in listing.exchanges})) > 1
    )
    return era_or_reason(evidence, "modern") or rule_outcome(len(lists), faults)


def _cacheable(evidence: Evidence) -> RuleOutcome:
    results = [exchange for exchange in _modern_results(evidence) if _method(exchange) in CACHEABLE]
    faults = (fault for exchange in results for fault in _cache_faults(exchange))
    return era_or_reason(evidence, "modern") or rule_outcome(
        len({_method(exchange) for exchange in results}), first_each(faults)
    )


def _cache_faults(exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result or {}
    if result.get("resultType") == "input_required":
        return
    lifetime = result.get("ttlMs")
    if not isinstance(lifetime, int) or isinstance(lifetime, bool) or lifetime < 0:
        yield Fault(f"ttlMs is {lifetime!r}, not a number of milliseconds", _method(exchange), exchange)
    elif result.get("cacheScope") not in ("public", "private"):
        yield Fault(
            f"cacheScope is {result.get('cacheScope')!r}, neither public nor private", _method(exchange), exchange
        )


def _unknown_version(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != UNSUPPORTED_VERSION:
        yield Fault(
            f"expected error {UNSUPPORTED_VERSION}, got {describe_answer(exchange)}", "unknown revision", exchange
        )
        return
    data = (exchange.error or {}).get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or not set(map(str, supported)) & set(MODERNS):
        yield Fault(
            "the error's data.supported does not list the revisions that the server supports",
            "unknown revision",
            exchange,
        )


def _method(exchange: WireExchange) -> str:
    return str(exchange.sent.get("method")) if isinstance(exchange.sent, dict) else ""


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="modern.discover", severity=5, gate=True, since=FIRST_MODERN, check=_discover,
        statement="server/discover lists the supported revisions and the capabilities.",
        source="MCP server/discover",
        hint="return supportedVersions and capabilities",
    ),
    Rule(
        id="modern.result-type", severity=5, gate=True, since=FIRST_MODERN, check=_result_type,
        statement="Every result has a resultType.",
        source="MCP basic/index, Responses: resultType is required",
        hint='add "resultType": "complete"',
    ),
    Rule(
        id="modern.cacheable", severity=3, since=FIRST_MODERN, check=_cacheable,
        statement="Results of discover, lists and resources/read have ttlMs and cacheScope.",
        source="MCP server/utilities/caching",
        hint='add "ttlMs": 0 and "cacheScope": "private" if the result must not be cached',
    ),
    Rule(
        id="modern.metadata", severity=3, check=probe_check("modern-no-capabilities", expects_error(INVALID_PARAMS, "request metadata"), era="modern"),
        statement=f"A request without the client's capabilities in its metadata is answered with error {INVALID_PARAMS}.",
        source="MCP basic/index, Per-request metadata: protocolVersion and clientCapabilities are required",
        hint="check _meta before you run the method", since=FIRST_MODERN,
    ),
    Rule(
        id="modern.unknown-version", severity=3, since=FIRST_MODERN,
        check=probe_check("modern-unknown-version", _unknown_version, era="modern"),
        statement=f"An unsupported revision is answered with error {UNSUPPORTED_VERSION} and data.supported.",
        source="MCP basic/versioning, Unsupported versions",
        hint="list the supported revisions: a client selects one of them for its next request",
    ),
    Rule(
        id="modern.unknown-method", severity=3, since=FIRST_MODERN,
        check=probe_check("modern-unknown-method", unknown_method, era="modern"),
        statement=f"An unknown method is answered with error {METHOD_NOT_FOUND}.",
        source="JSON-RPC 2.0 §5.1",
        hint="answer unknown methods instead of dropping them: without an answer a client waits",
    ),
    Rule(
        id="modern.retired", severity=3, gate=True, check=probe_check("modern-retired", unknown_method, era="modern"),
        statement=f"ping, which the per-request revisions removed, is answered with error {METHOD_NOT_FOUND}.",
        source="MCP changelog, removed methods; basic/versioning: each request is served in the version that it names",
        hint="look up methods in the revision of the request, not in one table for all revisions", since=FIRST_MODERN,
    ),
    Rule(
        id="modern.known-types", severity=3, gate=True, since=FIRST_MODERN, check=_known_types,
        statement="resultType is complete or input_required if the client declares no extension.",
        source="MCP basic/index, Responses",
        hint="use other values only for extensions that the client declared",
    ),
    Rule(
        id="modern.input-required", severity=3, gate=True, since=FIRST_MODERN, check=_input_required,
        statement=("Only tools/call, prompts/get and resources/read ask for input, and only for kinds that the client "
                   "declared."),
        source="MCP basic/patterns/mrtr",
        hint="check the client's capabilities in the request's metadata before you ask",
    ),
    Rule(
        id="modern.error-codes", severity=3, gate=True, since=FIRST_MODERN, check=_error_codes,
        statement="Errors use no retired code, and only the revision's own codes from the reserved range.",
        source="MCP basic/index, Error Codes",
        hint="choose custom codes outside -32768 to -32000",
    ),
    Rule(
        id="modern.named", severity=1, since=FIRST_MODERN, check=_named,
        statement="Each result names the server in its metadata.",
        source="MCP basic/index, Result metadata: servers should include serverInfo",
        hint="add _meta with io.modelcontextprotocol/serverInfo",
    ),
    Rule(
        id="modern.cache-pages", severity=3, gate=True, since=FIRST_MODERN, check=_cache_pages,
        statement="All pages of a list have the same cacheScope.",
        source="MCP server/utilities/caching",
        hint="choose cacheScope per list, not per page",
    ),
)  # fmt: skip
