"""Requests to the client: elicitation, sampling, roots; and argument completion.

A question knows its method and parameters, which client capability it needs, and how to read and check the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar

from mcpfactory_runtime.protocol.connection import Peer
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, McpError
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.revisions.projection import FormError, project, project_form, read_form
from mcpfactory_runtime.schemas.walk import properties_of, required_of
from mcpfactory_runtime.server.results import Content, Message, content_blocks
from mcpfactory_runtime.types import Json

Reading = TypeVar("Reading")

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class Elicited:
    """The user's answer to an elicitation.

    Attributes:
        action: `accept`, `decline` or `cancel`.
        content: the form's values when accepted: a dict, or an instance of the model that was given as schema.
    """

    __slots__ = ("action", "content")

    def __init__(self, action: str, content: Any) -> None:
        self.action = action
        self.content = content

    @property
    def accepted(self) -> bool:
        """Return True if the user agreed."""
        return self.action == "accept"

    def __repr__(self) -> str:
        return f"Elicited({self.action!r}, {self.content!r})"


class Sampled:
    """A response of the client's model.

    Attributes:
        role: `assistant`, usually.
        content: content blocks in wire format.
        model: the model's name.
        stop_reason: reason for stopping, if the client supplies it.
    """

    __slots__ = ("content", "model", "role", "stop_reason")

    def __init__(self, role: str, content: list[Json], model: str, stop_reason: str | None) -> None:
        self.role, self.content, self.model, self.stop_reason = role, content, model, stop_reason

    @property
    def text(self) -> str:
        """The text blocks, joined."""
        return "\n".join(str(block.get("text", "")) for block in self.content if block.get("type") == "text")

    def __repr__(self) -> str:
        return f"Sampled({self.content!r}, model={self.model!r})"


class Root:
    """A folder or another place that the client lets the server work in."""

    __slots__ = ("name", "uri")

    def __init__(self, uri: str, name: str | None = None) -> None:
        self.uri, self.name = uri, name

    def __repr__(self) -> str:
        return f"Root({self.uri!r}, {self.name!r})"


class Question(Generic[Reading]):
    """Base of what can be asked; `Reading` is what the handler gets."""

    method: str
    kind: str
    unasked: bool = False

    def params(self, peer: Peer) -> Json:
        """Return the request's parameters as the peer knows them.

        Raises:
            McpError: INVALID_REQUEST when the peer's revision cannot ask this.
        """
        raise NotImplementedError

    def needs(self, revision: Revision) -> tuple[str, ...]:
        """Path of the client capability that the question needs."""
        raise NotImplementedError

    def read(self, answer: Json) -> Reading:
        """Return the answer, checked.

        Raises:
            McpError: INVALID_PARAMS when the answer is malformed.
        """
        raise NotImplementedError

    def missing_capability(self, peer: Peer) -> Json | None:
        """Return the capabilities object that the peer would have to declare; None when it does."""
        path = self.needs(peer.revision)
        if path == ("elicitation", "form") and peer.capabilities.get("elicitation") == {}:
            return None
        return peer.missing(*path)


class Elicit(Question[Elicited]):
    """A question to the user, by a form or by a web page.

    Args:
        message: the message for the user.
        schema: the form: a flat object schema, or a class (pydantic model, dataclass, TypedDict) whose instances the
            answer should be. Leave out with `url`. Fields are strings, numbers, booleans, and choices of one or
            several strings, with titles or without. A revision without titled choices is sent `enumNames`; one
            without multiple choices is not asked (INVALID_REQUEST).
        url: a page for data that must not pass through the client; the answer has no content.
        elicitation_id: names the elicitation by `url` if the revision supports such names; generated if left out.
        unasked: also accept an answer that the client sends with its first request, before the question: for values
            that it may know beforehand. Never for a consent, because such a client need not have shown the question
            to the user.
    """

    method = "elicitation/create"
    kind = "elicitation"

    def __init__(
        self,
        message: str,
        schema: Mapping[str, Any] | type | None = None,
        *,
        url: str | None = None,
        elicitation_id: str | None = None,
        unasked: bool = False,
    ) -> None:
        self.unasked = unasked
        if (schema is None) == (url is None):
            raise TypeError(
                "an elicitation needs exactly one of schema and url\nhint: write Elicit('Your name?', {...}) "
            )
        if url is not None and not _URL.fullmatch(url):
            raise TypeError(
                f"{url!r} is not a valid URL\nhint: use an absolute URL without spaces: https://example.com/pay"
            )
        self.message, self.url, self.elicitation_id = message, url, elicitation_id
        self._make: Callable[[Any], Any] | None = None
        if isinstance(schema, type):
            from mcpfactory_runtime.schemas.models import model_schema  # noqa: PLC0415 - this is the lazy import of pydantic

            self._make, given = model_schema(schema)
        else:
            given = dict(schema or {})
        try:
            self.schema = read_form(given)
        except FormError as error:
            raise TypeError(f"{error}\nhint: ask for one level of fields, or ask several times") from None

    def needs(self, revision: Revision) -> tuple[str, ...]:
        """`elicitation`, or one of its modes where the revision has several."""
        if len(revision.elicitation_modes) > 1:
            return ("elicitation", "url" if self.url else "form")
        return ("elicitation",)

    def params(self, peer: Peer) -> Json:
        """Message and form or page."""
        revision = peer.revision
        if self.url is not None and "url" not in revision.elicitation_modes:
            raise McpError(INVALID_REQUEST, "The client cannot open a page: its protocol revision supports only forms")
        if self.url is None:
            try:
                return {"message": self.message, "requestedSchema": project_form(self.schema, revision)}
            except FormError as error:
                raise McpError(INVALID_REQUEST, f"The client cannot be asked: {error}") from None
        params = {"mode": "url", "message": self.message, "url": self.url, "elicitationId": self._id()}
        projected: Json = project(params, "ElicitRequestURLParams", revision)
        return projected

    def _id(self) -> str:
        if self.elicitation_id is None:
            from uuid import uuid4  # noqa: PLC0415 - only for URL elicitations

            self.elicitation_id = str(uuid4())
        return self.elicitation_id

    def read(self, answer: Json) -> Elicited:
        """Return action and content; an accepted form must have every required field."""
        action = answer.get("action")
        if action not in ("accept", "decline", "cancel"):
            raise _malformed(self.kind, "action must be accept, decline or cancel")
        if action != "accept" or self.url is not None:
            return Elicited(action, None)
        content = answer.get("content", {})
        if not isinstance(content, dict):
            raise _malformed(self.kind, "content must be an object")
        for name, field in properties_of(self.schema).items():
            if name not in content and isinstance(field, dict) and "default" in field:
                content = {**content, name: field["default"]}
        missing = [name for name in required_of(self.schema) if name not in content]
        if missing:
            raise _malformed(self.kind, f"content lacks {', '.join(missing)}")
        try:
            return Elicited(action, self._make(content) if self._make else _checked(self.schema, content))
        except ValueError as error:
            raise _malformed(self.kind, f"content does not fit: {error}") from None


class Sample(Question[Sampled]):
    """Ask the client's model.

    Args:
        messages: the conversation: one text, or `Message`s.
        max_tokens: the most that may be generated.
        options: further members of the request by their wire names (`systemPrompt`, `temperature`, `stopSequences`,
            `modelPreferences`, `includeContext`, `metadata`, `tools`, `toolChoice`).
    """

    method = "sampling/createMessage"
    kind = "sampling"

    def __init__(
        self,
        messages: str | Message | Content | Iterable[str | Message | Json],
        *,
        max_tokens: int = 1000,
        **options: Any,
    ) -> None:
        given = [messages] if isinstance(messages, str | Message | Content) else list(messages)
        self._params = {
            "messages": [_sampling_message(message) for message in given],
            "maxTokens": max_tokens,
            **{name: value for name, value in options.items() if value is not None},
        }

    def needs(self, revision: Revision) -> tuple[str, ...]:
        """Return `sampling`, or `sampling.tools` for tools."""
        return ("sampling", "tools") if "tools" in self._params else ("sampling",)

    def params(self, peer: Peer) -> Json:
        """Return the request as the peer knows it; without `includeContext` where context must be declared and was not."""
        params: Json = project(self._params, "CreateMessageRequestParams", peer.revision)
        if "tools" in peer.revision.fields["CreateMessageRequestParams"] and not peer.declares("sampling", "context"):
            params.pop("includeContext", None)  # client/sampling, Capabilities: both came with the same revision
        return params

    def read(self, answer: Json) -> Sampled:
        """Role, content, model."""
        content = answer.get("content")
        blocks: list[Any] = content if isinstance(content, list) else [content]
        if not blocks or not all(isinstance(block, dict) for block in blocks):
            raise _malformed(self.kind, "content must be a content block or a list of them")
        return Sampled(
            str(answer.get("role", "assistant")), blocks, str(answer.get("model", "")), answer.get("stopReason")
        )


class Roots(Question[list[Root]]):
    """Ask which places the client lets the server work in."""

    method = "roots/list"
    kind = "roots"

    def needs(self, revision: Revision) -> tuple[str, ...]:
        """`roots`."""
        return ("roots",)

    def params(self, peer: Peer) -> Json:
        """Nothing."""
        return {}

    def read(self, answer: Json) -> list[Root]:
        """Return the roots in the client's order."""
        roots = answer.get("roots")
        if not isinstance(roots, list) or not all(isinstance(root, dict) and "uri" in root for root in roots):
            raise _malformed(self.kind, "roots must be a list of objects with a uri")
        return [Root(str(root["uri"]), root.get("name")) for root in roots]


def _checked(form: Json, content: Json) -> Json:
    from mcpfactory_runtime.schemas.validation import compile_schema  # noqa: PLC0415 - only for servers with their own forms

    return compile_schema(form).validate(content)


def _sampling_message(message: str | Message | Content | Json) -> Json:
    if isinstance(message, Message):
        return message.to_dict()
    if isinstance(message, str | Content):
        return {"role": "user", "content": content_blocks(message)[0]}
    return message


def _malformed(kind: str, what: str) -> McpError:
    return McpError(INVALID_PARAMS, f"Malformed answer to {kind}: {what}")


_MOST: Final = 100  # values in one answer (server/utilities/completion)


class Reference(NamedTuple):
    """The subject of a completion.

    `type` is `ref/prompt` (with `name`) or `ref/resource` (with `uri`, a template).
    """

    type: str
    name: str
    uri: str


class Argument(NamedTuple):
    """The argument being typed: its name and its current text."""

    name: str
    value: str


class CompletionContext(NamedTuple):
    """Arguments that have their values already."""

    arguments: dict[str, str]


class Completion:
    """Suggestions; `total` and `has_more` where there are more than were given."""

    __slots__ = ("has_more", "total", "values")

    def __init__(self, values: Iterable[str], total: int | None = None, has_more: bool | None = None) -> None:
        self.values, self.total, self.has_more = [str(value) for value in values], total, has_more


def read_request(params: Json) -> tuple[Reference, Argument, CompletionContext]:
    """Return the parameters of completion/complete.

    Raises:
        McpError: INVALID_PARAMS when something is missing or has the wrong type.
    """
    reference, argument = params.get("ref"), params.get("argument")
    if not isinstance(reference, dict) or reference.get("type") not in ("ref/prompt", "ref/resource"):
        raise McpError(INVALID_PARAMS, "Invalid params: ref must be an object of type ref/prompt or ref/resource")
    wanted = "name" if reference["type"] == "ref/prompt" else "uri"
    if not isinstance(reference.get(wanted), str):
        raise McpError(INVALID_PARAMS, f"Invalid params: ref.{wanted} must be a string")
    if not isinstance(argument, dict) or not all(isinstance(argument.get(key), str) for key in ("name", "value")):
        raise McpError(INVALID_PARAMS, "Invalid params: argument must have name and value, both strings")
    context = params.get("context") or {}
    settled = context.get("arguments") if isinstance(context, dict) else None
    return (
        Reference(reference["type"], reference.get("name", ""), reference.get("uri", "")),
        Argument(argument["name"], argument["value"]),
        CompletionContext(settled if isinstance(settled, dict) else {}),
    )


def read_completion(value: Any) -> Json:
    """Return the handler's return value as the result's `completion` member.

    The value is a list of strings, a Completion, or None.
    """
    if value is None:
        value = Completion([])
    if not isinstance(value, Completion):
        value = Completion(value)
    completion: Json = {"values": value.values[:_MOST]}
    total = value.total if value.total is not None else len(value.values)
    completion["total"] = total
    completion["hasMore"] = value.has_more if value.has_more is not None else total > len(completion["values"])
    return completion
