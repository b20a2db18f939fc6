"""A model behind an OpenAI-compatible endpoint (chat completions with tools), by the vendor's own client."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx2
import openai

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

_OPENAI_FINAL: Final = (400, 401, 403, 404, 405, 422)  # asked again, the answer is the same


class OpenAIEndpoint:
    """Connections to one endpoint, for many conversations."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        self._endpoint = endpoint
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key,
            base_url=endpoint.url or None,
            timeout=endpoint.timeout,
            max_retries=endpoint.attempts - 1,
        )

    def chat(self, system: str, question: str, tools: Sequence[Mapping[str, Any]]) -> OpenAIChat:
        """Begin a conversation about a question."""
        return OpenAIChat(self._endpoint, self._client, system, question, tools)

    async def close(self) -> None:
        """End the connections."""
        await self._client.close()


class OpenAIChat:
    """One conversation."""

    def __init__(
        self, endpoint: ModelEndpoint, client: Any, system: str, question: str, tools: Sequence[Mapping[str, Any]]
    ) -> None:
        self._endpoint, self._client = endpoint, client
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": system},
            {"role": "user", "content": question},
        ]
        self._tools = [{"type": "function", "function": _function(tool)} for tool in tools]

    async def turn(self) -> ModelTurn:
        """Ask for what comes next."""
        asked = {"model": self._endpoint.model, "messages": self._messages}
        if self._tools:
            asked["tools"] = self._tools
        try:
            async with asyncio.timeout(self._endpoint.patience):
                turn, kept = _read_message(*await self._answered(asked))
        except openai.APIStatusError as error:
            kind = ModelUnreachableError if error.status_code in _OPENAI_FINAL else EndpointError
            raise kind(self._endpoint.hide(f"{self._endpoint.name}: {error.status_code}: {error.message}")) from None
        except TimeoutError:
            raise EndpointError(f"{self._endpoint.name}: request timed out") from None
        except (openai.OpenAIError, httpx2.HTTPError) as error:  # the latter: a connection that breaks off
            raise EndpointError(self._endpoint.hide(f"{self._endpoint.name}: {error}")) from None
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise EndpointError(f"{self._endpoint.name}: unexpected response (not a model message)") from error
        self._messages.append(kept)
        return without_key(turn, self._endpoint)

    async def _answered(self, asked: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any, Any]:
        answer = (await self._client.chat.completions.create(**asked)).model_dump()
        choice = answer["choices"][0]
        return choice["message"], choice.get("finish_reason"), answer.get("usage")

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Tell the model what its calls came to."""
        self._messages += [{"role": "tool", "tool_call_id": one.call.id, "content": one.text} for one in answers]


def _function(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["inputSchema"]}


def _read_message(message: Mapping[str, Any], reason: Any, usage: Any) -> tuple[ModelTurn, dict[str, Any]]:
    calls = []
    for number, one in enumerate(message.get("tool_calls") or []):
        wanted = one["function"]
        arguments = wanted.get("arguments")
        text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        calls.append(ModelCall(str(one.get("id") or f"call_{number}"), str(wanted["name"]), text))
    kept: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
    if calls:
        kept["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.tool, "arguments": one.text}} for one in calls
        ]
    refused = bool(message.get("refusal")) or reason == "content_filter"
    words = str(message.get("content") or message.get("refusal") or "")
    return ModelTurn(words, tuple(calls), refused, reason == "length", _usage(usage)), kept


def _usage(found: Any) -> TokenUsage:
    if not isinstance(found, Mapping):
        return TokenUsage()
    cached = (found.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return TokenUsage(int(found.get("prompt_tokens") or 0), int(cached), int(found.get("completion_tokens") or 0))
