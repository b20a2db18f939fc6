"""A model behind an Anthropic endpoint (messages with tools), by the vendor's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anthropic
import httpx2

from mcpfactory_pipeline.checks.evaluation.model import (
    EndpointError,
    ModelCall,
    ModelEndpoint,
    ModelTurn,
    ModelUnreachableError,
    TokenUsage,
    ToolAnswer,
    without_key,
)

_ANTHROPIC_FINAL: Final = (400, 401, 403, 404, 405, 413, 422)
_WRITTEN: Final = 4096  # tokens that one answer may have; the API wants a bound


class AnthropicEndpoint:
    """Connections to one endpoint, for many conversations."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self._endpoint = endpoint
        self._client = anthropic.AsyncAnthropic(
            api_key=endpoint.key,
            base_url=endpoint.url or None,
            timeout=endpoint.timeout,
            max_retries=endpoint.attempts - 1,
        )

    def chat(self, system: str, question: str, tools: Sequence[Mapping[str, Any]]) -> AnthropicChat:
        """Begin a conversation about a question."""
        return AnthropicChat(self._endpoint, self._client, system, question, tools)

    async def close(self) -> None:
        """End the connections."""
        await self._client.close()


class AnthropicChat:
    """One conversation."""

    def __init__(
        self, endpoint: ModelEndpoint, client: Any, system: str, question: str, tools: Sequence[Mapping[str, Any]]
    ) -> None:
        self._endpoint, self._client, self._system = endpoint, client, system
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        self._tools = [
            {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
            for tool in tools
        ]

    async def turn(self) -> ModelTurn:
        """Ask for what comes next."""
        asked: dict[str, Any] = {
            "model": self._endpoint.model,
            "system": self._system,
            "messages": self._messages,
            "max_tokens": _WRITTEN,
        }
        if self._tools:
            asked["tools"] = self._tools
        try:
            async with asyncio.timeout(self._endpoint.patience):
                answer = await self._answered(asked)
            turn = _read_blocks(answer)
        except anthropic.APIStatusError as error:
            kind = ModelUnreachableError if error.status_code in _ANTHROPIC_FINAL else EndpointError
            raise kind(self._endpoint.hide(f"{self._endpoint.name}: {error.status_code}: {error.message}")) from None
        except TimeoutError:
            raise EndpointError(f"{self._endpoint.name}: request timed out") from None
        except (anthropic.AnthropicError, httpx2.HTTPError) as error:  # the latter: a connection that breaks off
            raise EndpointError(self._endpoint.hide(f"{self._endpoint.name}: {error}")) from None
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            raise EndpointError(f"{self._endpoint.name}: unexpected response (not a model message)") from error
        if answer["content"]:
            self._messages.append({"role": "assistant", "content": [_sent_back(one) for one in answer["content"]]})
        return without_key(turn, self._endpoint)

    async def _answered(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return dict((await self._client.messages.create(**asked)).model_dump())

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Tell the model what its calls came to, in one message, as the API wants it."""
        blocks = [
            {"type": "tool_result", "tool_use_id": one.call.id, "content": one.text, "is_error": one.failed}
            for one in answers
        ]
        self._messages.append({"role": "user", "content": blocks})


def _read_blocks(answer: Mapping[str, Any]) -> ModelTurn:
    blocks, usage = answer["content"], answer.get("usage") or {}
    calls = [
        ModelCall(str(one["id"]), str(one["name"]), json.dumps(one.get("input") or {}))
        for one in blocks
        if one["type"] == "tool_use"
    ]
    text = "\n".join(str(one["text"]) for one in blocks if one["type"] == "text")
    cached = int(usage.get("cache_read_input_tokens") or 0)
    read = int(usage.get("input_tokens") or 0) + cached + int(usage.get("cache_creation_input_tokens") or 0)
    if (reason := answer.get("stop_reason")) is None:
        raise ValueError("an incomplete answer")
    written = TokenUsage(read, cached, int(usage.get("output_tokens") or 0))
    return ModelTurn(text, tuple(calls), reason == "refusal", reason == "max_tokens", written)


def _sent_back(block: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not None and key not in {"parsed_output", "caller"}}
