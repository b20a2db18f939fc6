"""Models behind an OpenAI-compatible endpoint (chat completions with tools), through OpenAI's client library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import openai

from mcpfactory_pipeline.checks.evaluation.model_endpoint import ModelCall, ModelChat, ModelTurn, TokenUsage, ToolAnswer


class OpenAIChat(ModelChat):
    """One conversation with the model."""

    client = openai.AsyncOpenAI
    status_error = openai.APIStatusError
    errors = (openai.OpenAIError, httpx2.HTTPError)  # HTTPError means that the connection broke during a response
    final = (400, 401, 403, 404, 405, 422)

    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        messages = [{"role": "system", "content": self._system}, *asked.pop("messages")]
        answer = await self._client.chat.completions.create(**asked, messages=messages)
        return dict(answer.model_dump())

    @staticmethod
    def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
        about = {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["inputSchema"]}
        return {"type": "function", "function": about}

    @staticmethod
    def _read(answer: Mapping[str, Any]) -> tuple[ModelTurn, list[dict[str, Any]]]:
        choice = answer["choices"][0]
        message, reason, calls = choice["message"], choice.get("finish_reason"), []
        for number, one in enumerate(message.get("tool_calls") or []):
            wanted = one["function"]
            arguments = wanted.get("arguments")
            text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
            calls.append(ModelCall(str(one.get("id") or f"call_{number}"), str(wanted["name"]), text))
        kept: dict[str, Any] = {"role": "assistant", "content": message.get("content")}
        if calls:
            kept["tool_calls"] = [
                {"id": one.id, "type": "function", "function": {"name": one.tool, "arguments": one.text}}
                for one in calls
            ]
        refused = bool(message.get("refusal")) or reason == "content_filter"
        words, usage = str(message.get("content") or message.get("refusal") or ""), _usage(answer.get("usage"))
        return ModelTurn(words, tuple(calls), refused, reason == "length", usage), [kept]

    @staticmethod
    def _answers(answers: Sequence[ToolAnswer]) -> list[dict[str, Any]]:
        return [{"role": "tool", "tool_call_id": one.call.id, "content": one.text} for one in answers]


def _usage(found: Any) -> TokenUsage:
    if not isinstance(found, Mapping):
        return TokenUsage()
    cached = (found.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return TokenUsage(int(found.get("prompt_tokens") or 0), int(cached), int(found.get("completion_tokens") or 0))
