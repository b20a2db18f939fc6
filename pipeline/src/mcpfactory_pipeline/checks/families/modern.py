"""Rules over the per-request lifecycle (`server/discover`, metadata on every request)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcpfactory_pipeline.checks import eras
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import WireExchange
from mcpfactory_pipeline.checks.families.legacy import describe_answer, era_or_reason, probe_check, unknown_method
from mcpfactory_pipeline.checks.rule import Fault, Rule, RuleOutcome, rule_outcome
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND, UNSUPPORTED_VERSION

__all__ = ["RULES"]


def _discover(evidence: Evidence) -> RuleOutcome:
    return era_or_reason(evidence, "modern") or RuleOutcome(tuple(_discover_faults(evidence.discover)))


def _discover_faults(exchange: WireExchange | None) -> Iterator[Fault]:
    result = exchange.result if exchange else None
    if result is None:
        yield Fault("server/discover has no result", "server/discover", exchange)
        return
    versions = result.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(version, str) for version in versions):
        yield Fault("supportedVersions is no list of texts", "server/discover", exchange)
    elif not set(versions) & set(eras.MODERNS):
        yield Fault(
            f"supportedVersions {versions} names no per-request revision, yet one was answered",
            "server/discover",
            exchange,
        )
    if not isinstance(result.get("capabilities"), dict):
        yield Fault("the result has no capabilities object", "server/discover", exchange)


def _modern_results(evidence: Evidence) -> list[WireExchange]:
    return [exchange for exchange in evidence.traffic if exchange.result is not None and is_modern(exchange)]


def is_modern(exchange: WireExchange) -> bool:
    """Whether the request carries per-request metadata."""
    params = exchange.sent.get("params") if isinstance(exchange.sent, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and eras.VERSION in meta


def _result_type(evidence: Evidence) -> RuleOutcome:
    results = _modern_results(evidence)
    faults = (
        Fault(f"resultType is {exchange.result.get('resultType')!r}", _method(exchange), exchange)
        for exchange in results
        if exchange.result is not None and not isinstance(exchange.result.get("resultType"), str)
    )
    return era_or_reason(evidence, "modern") or rule_outcome(
        len({_method(exchange) for exchange in results}), _first_each(faults)
    )


def _cacheable(evidence: Evidence) -> RuleOutcome:
    results = [exchange for exchange in _modern_results(evidence) if _method(exchange) in eras.CACHEABLE]
    faults = (fault for exchange in results for fault in _cache_faults(exchange))
    return era_or_reason(evidence, "modern") or rule_outcome(
        len({_method(exchange) for exchange in results}), _first_each(faults)
    )


def _cache_faults(exchange: WireExchange) -> Iterator[Fault]:
    result = exchange.result or {}
    if result.get("resultType") == "input_required":
        return
    lifetime = result.get("ttlMs")
    if not isinstance(lifetime, int) or isinstance(lifetime, bool) or lifetime < 0:
        yield Fault(f"ttlMs is {lifetime!r}, not a count of milliseconds", _method(exchange), exchange)
    elif result.get("cacheScope") not in ("public", "private"):
        yield Fault(
            f"cacheScope is {result.get('cacheScope')!r}, neither public nor private", _method(exchange), exchange
        )


def _no_capabilities(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != INVALID_PARAMS:
        yield Fault(f"expected error {INVALID_PARAMS}, got {describe_answer(exchange)}", "request metadata", exchange)


def _unknown_version(exchange: WireExchange) -> Iterator[Fault]:
    if exchange.code != UNSUPPORTED_VERSION:
        yield Fault(
            f"expected error {UNSUPPORTED_VERSION}, got {describe_answer(exchange)}", "unknown revision", exchange
        )
        return
    data = (exchange.error or {}).get("data")
    supported = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(supported, list) or not set(map(str, supported)) & set(eras.MODERNS):
        yield Fault("the error's data.supported does not list what the server speaks", "unknown revision", exchange)


def _method(exchange: WireExchange) -> str:
    return str(exchange.sent.get("method")) if isinstance(exchange.sent, dict) else ""


def _first_each(faults: Iterator[Fault]) -> Iterator[Fault]:
    """Yield the first fault of each place: twenty calls without resultType are one finding."""
    seen: set[str] = set()
    for fault in faults:
        if fault.where not in seen:
            seen.add(fault.where)
            yield fault


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        id="modern.discover", family="modern", severity=5, gate=True, check=_discover,
        statement="server/discover lists the supported revisions and the capabilities.",
        source="MCP server/discover",
        hint="return supportedVersions and capabilities",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.result-type", family="modern", severity=5, gate=True, check=_result_type,
        statement="Every result says its resultType.",
        source="MCP basic/index, Responses: resultType is required",
        hint='add "resultType": "complete"',
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.cacheable", family="modern", severity=3, gate=False, check=_cacheable,
        statement="Results of discover, lists and resources/read say ttlMs and cacheScope.",
        source="MCP server/utilities/caching",
        hint='add "ttlMs": 0 and "cacheScope": "private" when nothing may be kept',
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.metadata", family="modern", severity=3, gate=False, check=probe_check("modern-no-capabilities", _no_capabilities, era="modern"),
        statement=f"A request whose metadata lacks the client's capabilities is answered with error {INVALID_PARAMS}.",
        source="MCP basic/index, Per-request metadata: protocolVersion and clientCapabilities are required",
        hint="check _meta before the method is run",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.unknown-version", family="modern", severity=3, gate=False, check=probe_check("modern-unknown-version", _unknown_version, era="modern"),
        statement=f"A revision that the server does not speak is answered with error {UNSUPPORTED_VERSION} and data.supported.",
        source="MCP basic/versioning, Unsupported versions",
        hint="list the supported revisions: a client picks its next try from them",
        since=eras.FIRST_MODERN,
    ),
    Rule(
        id="modern.unknown-method", family="modern", severity=3, gate=False, check=probe_check("modern-unknown-method", unknown_method, era="modern"),
        statement=f"A method that the server does not have is answered with error {METHOD_NOT_FOUND}.",
        source="JSON-RPC 2.0 §5.1",
        hint="answer unknown methods instead of dropping them; a client waits",
        since=eras.FIRST_MODERN,
    ),
)  # fmt: skip
