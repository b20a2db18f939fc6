"""Repeat requests that need input from the client: without capabilities, and with a modified `requestState`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from mcpfactory_pipeline.checks.client_capabilities import (
    asks_for_input,
    first_requests_by_target,
    input_retry_params,
    request_state,
)
from mcpfactory_pipeline.checks.evidence import Evidence, ModifiedStateAnswer
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_runtime.types import Json


async def repeat_input_requests(
    evidence: Evidence, conversation: Conversation, requests: Requester, may_repeat: Callable[[Json | str], bool]
) -> None:
    """Repeat each permitted request of `dialogues`: without capabilities, then with a modified state."""
    asked = (rounds[0].sent for rounds in evidence.dialogues)
    for method, params in first_requests_by_target(filter(may_repeat, asked)):
        if requests.seconds_left() <= 0:
            return
        await requests.exchange(conversation, requests.message(method, params, features={}))
        first = await requests.exchange(conversation, requests.message(method, params))
        if not (state := request_state(first)):
            continue
        changed = input_retry_params(first, tamper_request_state(state))
        answer = await requests.exchange(conversation, requests.message(method, changed))
        if answer.failed or asks_for_input(answer):
            continue
        await requests.request(conversation, method, params)
        ends = (one[-1] for one in evidence.dialogues if one[0].params.get("name") == params.get("name"))
        evidence.modified_states.append(ModifiedStateAnswer(answer, tuple(ends)))


def tamper_request_state(state: str) -> str:
    """Return a modified state: JSON (plain or base64) with other values, or text with one other character."""
    padded = state + "=" * (-len(state) % 4)
    try:
        return json.dumps(_modified(json.loads(state)))
    except (ValueError, RecursionError):
        pass
    try:
        value = json.loads(base64.urlsafe_b64decode(padded.replace("+", "-").replace("/", "_")))
        encoded = base64.urlsafe_b64encode(json.dumps(_modified(value)).encode()).decode()
    except (ValueError, RecursionError):
        middle = len(state) // 2
        return f"{state[:middle]}{'b' if state[middle] == 'a' else 'a'}{state[middle + 1 :]}"
    return encoded if state.endswith("=") else encoded.rstrip("=")


def _modified(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _modified(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_modified(one) for one in value]
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"{value}a"
