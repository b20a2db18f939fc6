"""Vendor-neutral endpoint for a model's conversations with tools: requests, responses and errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.base.errors import ConfigError, JsonRecord, PipelineError
from mcpfactory_pipeline.workspace.settings import EndpointSettings
from mcpfactory_runtime.urls import split_web_url

KINDS: Final[Mapping[str, str]] = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
"""Kind of endpoint → environment variable that holds the key; settings may name another variable."""

_NO_KEY: Final = "none"  # placeholder for self-hosted endpoints that need no key
# Minimum number of characters; a shorter key is not masked, because it may be an ordinary word such as `none`.
_SHORTEST: Final = 8


class EndpointError(Exception):
    """Error for an endpoint that did not answer a question; later questions may succeed."""


class ModelUnreachableError(PipelineError):
    """Error for an endpoint that is unreachable, or rejects the key, the model or every request."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """Endpoint of a model. The key is never shown; `hide` removes it from other texts.

    Attributes:
        kind: a key of `KINDS`.
        model: the model's name at the endpoint.
        url: the address; "" for the vendor's default.
        key: the secret.
        timeout: maximum seconds between two bytes of an answer.
        attempts: maximum attempts for one request, if the endpoint refuses temporarily.
    """

    kind: str
    model: str
    url: str = ""
    key: str = field(default="", repr=False)
    timeout: float = 60.0
    attempts: int = 5

    @property
    def name(self) -> str:
        """Return `KIND:MODEL`, the name that users type and reports show."""
        return f"{self.kind}:{self.model}"

    @property
    def patience(self) -> float:
        """Maximum seconds for an answer, over all attempts; unlike `timeout`, this limit also ends slow answers."""
        return self.timeout * self.attempts

    @property
    def place(self) -> str:
        """The address without parts that may be secret; "" for the vendor's own address."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if self.url else ""

    def hide(self, text: str) -> str:
        """Return the text without the key."""
        return text.replace(self.key, "***") if len(self.key) >= _SHORTEST else text


@dataclass(frozen=True, slots=True)
class ModelCall:
    """A call that a model requests.

    `text` has the arguments exactly as the model wrote them; the JSON may be invalid.
    """

    id: str
    tool: str
    text: str

    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments; None if the text is not a JSON object."""
        try:
            found = json.loads(self.text) if self.text.strip() else {}
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


@dataclass(frozen=True, slots=True)
class TokenUsage(JsonRecord):
    """Numbers of tokens. `read` includes the `cached` tokens."""

    read: int = 0
    cached: int = 0
    written: int = 0

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(self.read + other.read, self.cached + other.cached, self.written + other.written)


NO_TOKENS: Final = TokenUsage()


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One turn of a model: text, parallel calls, a refusal, or a truncated answer."""

    text: str = ""
    calls: tuple[ModelCall, ...] = ()
    refused: bool = False
    cut: bool = False
    usage: TokenUsage = NO_TOKENS


def redact_endpoint_key(turn: ModelTurn, endpoint: ModelEndpoint) -> ModelTurn:
    """Return a model's turn without the endpoint's key, so that reports and tools cannot receive the key."""
    calls = tuple(ModelCall(one.id, endpoint.hide(one.tool), endpoint.hide(one.text)) for one in turn.calls)
    return replace(turn, text=endpoint.hide(turn.text), calls=calls)


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Result of a call, as text for the model."""

    call: ModelCall
    text: str
    failed: bool = False


class ModelChat(ABC):
    """One conversation through a vendor's client library.

    The conversation keeps its messages in the endpoint's format.
    """

    client: ClassVar[type[Any]]
    status_error: ClassVar[type[Exception]]
    errors: ClassVar[tuple[type[Exception], ...]]
    """Errors that the library raises in addition to `status_error`."""
    final: ClassVar[Collection[int]]
    """HTTP statuses that are not retried, because a retry would get the same status."""

    def __init__(
        self, endpoint: ModelEndpoint, client: Any, system: str, question: str, tools: Sequence[Mapping[str, Any]]
    ) -> None:
        self._endpoint, self._client, self._system = endpoint, client, system
        self._messages: list[dict[str, Any]] = [{"role": "user", "content": question}]
        self._tools = [self._tool(tool) for tool in tools]

    async def turn(self) -> ModelTurn:
        """Request the model's next turn.

        Raises:
            EndpointError: every attempt failed to return a usable answer.
            ModelUnreachableError: the endpoint cannot answer any question.
        """
        endpoint, name = self._endpoint, self._endpoint.name
        asked = {"model": endpoint.model, "messages": self._messages, **({"tools": self._tools} if self._tools else {})}
        try:
            async with asyncio.timeout(endpoint.patience):
                turn, kept = self._read(await self._ask(asked))
        except self.status_error as error:
            status, words = getattr(error, "status_code", 0), getattr(error, "message", "")
            kind = ModelUnreachableError if status in self.final else EndpointError
            raise kind(endpoint.hide(f"{name}: {status}: {words}")) from None
        except TimeoutError:
            raise EndpointError(f"{name}: request timed out") from None
        except self.errors as error:
            raise EndpointError(endpoint.hide(f"{name}: {error}")) from None
        except (ValueError, LookupError, TypeError, AttributeError, AssertionError) as error:
            raise EndpointError(f"{name}: unexpected response (not a model message)") from error
        self._messages += kept
        return redact_endpoint_key(turn, endpoint)

    def answer(self, answers: Sequence[ToolAnswer]) -> None:
        """Send the model the results of all calls that its last turn requested."""
        self._messages += self._answers(answers)

    @abstractmethod
    async def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the endpoint's response as plain data."""

    @staticmethod
    @abstractmethod
    def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
        """Return a tool in the endpoint's format."""

    @staticmethod
    @abstractmethod
    def _read(answer: Mapping[str, Any]) -> tuple[ModelTurn, list[dict[str, Any]]]:
        """Return the turn in a response, and the messages to append to the conversation."""

    @staticmethod
    @abstractmethod
    def _answers(answers: Sequence[ToolAnswer]) -> list[dict[str, Any]]:
        """Return the messages with the results of calls."""


class ModelConnection:
    """Connections to one endpoint for many conversations."""

    def __init__(self, endpoint: ModelEndpoint, chats: type[ModelChat]) -> None:
        self._endpoint, self._chats = endpoint, chats
        self._client = chats.client(
            api_key=endpoint.key,
            base_url=endpoint.url or None,
            timeout=endpoint.timeout,
            max_retries=endpoint.attempts - 1,
        )

    def chat(self, system: str, question: str, tools: Sequence[Mapping[str, Any]]) -> ModelChat:
        """Start a conversation about a question."""
        return self._chats(self._endpoint, self._client, system, question, tools)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


_NAME: Final = re.compile(r"([a-z]+):(\S+)")


def find_endpoint(name: str, settings: EndpointSettings, *, environ: Mapping[str, str] | None = None) -> ModelEndpoint:
    """Return the endpoint of a model from its name (`openai:NAME`, `anthropic:NAME`).

    Args:
        name: the name as typed by the user.
        settings: the workspace's settings for the model.
        environ: the variables that include the key; default: the environment of this process.

    Raises:
        ConfigError: the kind in the name is unknown, or the key for a vendor's endpoint is missing.
    """
    found = _NAME.fullmatch(name)
    if found is None or found[1] not in KINDS:
        raise ConfigError(
            f"{name!r} is not a valid model name", hint=f"write {' or '.join(f'{kind}:NAME' for kind in KINDS)}"
        )
    url = settings.url
    if url and split_web_url(url) is None:
        raise ConfigError(
            f"the endpoint {url!r} is not a valid http or https URL",
            hint=f'url = "https://HOST/v1" in [pipeline.evaluation.endpoints."{name}"]',
        )
    variable = settings.key or KINDS[found[1]]
    key = (os.environ if environ is None else environ).get(variable, "")
    if not key and not url:
        raise ConfigError(f"{name} needs an API key, but {variable} is not set", hint=f"export {variable}=…")
    return ModelEndpoint(found[1], found[2], url, key or _NO_KEY)
