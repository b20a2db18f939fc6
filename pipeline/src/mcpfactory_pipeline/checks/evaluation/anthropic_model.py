"""Models behind an Anthropic endpoint (messages with tools), through Anthropic's client library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import anthropic
import httpx2

from mcpfactory_pipeline.checks.evaluation.model_endpoint import ModelCall, ModelChat, ModelTurn, TokenUsage, ToolAnswer

_WRITTEN: Final = 4096  # maximum tokens of an answer; the API requires this setting


class AnthropicChat(ModelChat):
    """One conversation with the model."""

    client = anthropic.AsyncAnthropic
    status_error = anthropic.APIStatusError
    errors = (anthropic.AnthropicError, httpx2.HTTPError)  # HTTPError means that the connection broke during a response
    final = (400, 401, 403, 404, 405, 413, 422)

    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        answer = await self._client.messages.create(**asked, system=self._system, max_tokens=_WRITTEN)
        return dict(answer.model_dump())

    @staticmethod
    def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
        return {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}

    @staticmethod
    def _read(answer: Mapping[str, Any]) -> tuple[ModelTurn, list[dict[str, Any]]]:
        blocks = answer["content"]
        kept = [{"role": "assistant", "content": [_sent_back(one) for one in blocks]}] if blocks else []
        return _read_blocks(answer), kept

    @staticmethod
    def _answers(answers: Sequence[ToolAnswer]) -> list[dict[str, Any]]:
        """Return all answers in one message, as the API requires."""
        blocks = [
            {"type": "tool_result", "tool_use_id": one.call.id, "content": one.text, "is_error": one.failed}
            for one in answers
        ]
        return [{"role": "user", "content": blocks}]


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
