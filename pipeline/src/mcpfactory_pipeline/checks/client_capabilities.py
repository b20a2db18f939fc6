"""Capabilities that the checks' client declares, and its answers to a server's requests for input.

The client accepts every form, opens no URL, and answers sampling requests with a fixed text. The client declares no
roots, because some servers replace their folders with the client's roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcpfactory_pipeline.checks.exchange import CAPABILITIES, WireExchange
from mcpfactory_pipeline.checks.samples import consent_form_values
from mcpfactory_runtime.revisions import LATEST
from mcpfactory_runtime.types import Json

FEATURES: Final[Json] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
# Features that need no stream outside of a call, because the client opens no such stream over HTTP.
FEATURES_IN_CALLS: Final[Json] = {"elicitation": FEATURES["elicitation"]}
MAX_ROUNDS: Final = 5  # maximum number of answers to one request for input
_NEEDED: Final = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
# Capability → member of the params, the member's value (None for any), and the part of the capability that it requires.
_PARTS: Final = {"elicitation": ("mode", "url", "url"), "sampling": ("tools", None, "tools")}
_MAX_ASKING: Final = 3  # maximum number of requests for input to repeat
_RETRY_KEYS: Final = ("inputResponses", "requestState")
_SAMPLED: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "Two words."},
    "model": "mcpfactory-validate",
    "stopReason": "endTurn",
}


def needed_client_capability(request: Any) -> str:
    """Return the capability that a request for input requires; "" for other requests."""
    return _NEEDED.get(str(request.get("method")), "") if isinstance(request, dict) else ""


def undeclared_client_capability(request: Any, capabilities: Any) -> str:
    """Return the undeclared capability that a request for input requires; "" if the capability is declared."""
    feature = needed_client_capability(request)
    if not feature or not isinstance(capabilities, dict) or feature not in capabilities:
        return feature
    params, declared = request.get("params"), capabilities[feature]
    key, value, part = _PARTS.get(feature, ("", None, ""))
    used = isinstance(params, dict) and key in params and value in (None, params[key])
    return f"{feature}.{part}" if used and isinstance(declared, dict) and part not in declared else ""


def answer_input_request(request: Json) -> Json:
    """Return the client's result for a request for input."""
    feature, params = needed_client_capability(request), request.get("params")
    schema = params.get("requestedSchema") if isinstance(params, dict) else None
    if feature == "roots":
        return {"roots": []}
    if feature == "sampling":
        return _SAMPLED
    if not isinstance(schema, dict):
        return {"action": "decline"}  # the question is a URL, and a test cannot open a URL
    return {"action": "accept", "content": consent_form_values(schema)}


def declared_client_capabilities(exchange: WireExchange) -> Json:
    """Return the capabilities in the metadata of a per-request message."""
    meta = exchange.params.get("_meta")
    found = meta.get(CAPABILITIES) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else {}


def asks_for_input(exchange: WireExchange) -> bool:
    """Return True if the result asks the client for input."""
    return (exchange.result or {}).get("resultType") == "input_required"


def input_requests(exchange: WireExchange) -> Mapping[str, Any]:
    """Return the requests for input in a result (key → request)."""
    found = (exchange.result or {}).get("inputRequests")
    return found if isinstance(found, dict) else {}


def request_state(exchange: WireExchange) -> str:
    """Return the `requestState` of a result; "" if it is missing."""
    state = (exchange.result or {}).get("requestState")
    return state if isinstance(state, str) else ""


def params_without_meta(request: Json | str) -> Json:
    """Return the params of a request without metadata, because a progress token is valid for one request only."""
    params = request.get("params") if isinstance(request, dict) else None
    return {key: value for key, value in params.items() if key != "_meta"} if isinstance(params, dict) else {}


def first_requests_by_target(requests: Iterable[Json | str]) -> list[tuple[str, Json]]:
    """Return (method, params) of the first request for each tool, prompt or resource."""
    found: dict[str, tuple[str, Json]] = {}
    for one in requests:
        method, params = str(one.get("method")) if isinstance(one, dict) else "", params_without_meta(one)
        if method in LATEST.input_requests:
            found.setdefault(f"{method} {params.get('name', params.get('uri'))}", (method, params))
    return list(found.values())[:_MAX_ASKING]


def input_retry_params(exchange: WireExchange, state: str = "") -> Json:
    """Return the params of a retry that answers a request for input; `state`, if given, replaces the server's state."""
    params = {key: value for key, value in params_without_meta(exchange.sent).items() if key not in _RETRY_KEYS}
    asked = {key: one for key, one in input_requests(exchange).items() if isinstance(one, dict)}
    answers = {"inputResponses": {key: answer_input_request(one) for key, one in asked.items()}} if asked else {}
    sent = state or request_state(exchange)
    return {**params, **answers, **({"requestState": sent} if sent else {})}
