"""Results of handlers: content blocks, tool results, prompt messages.

Results have the wire format of the newest revision. `revisions.projection` removes members that the peer's revision
lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from os import PathLike
from typing import Any, Final, Literal

from mcpfactory_runtime.types import Json

MAX_TEXT: Final = 100_000
"""Maximum characters of one response. Clients truncate longer responses, at about 25,000 tokens."""


def _without_none(block: Json) -> Json:
    return {key: value for key, value in block.items() if value is not None}


def _base64(data: bytes | str) -> str:
    """Convert bytes to base64 text. A string must already be base64, and may contain line breaks."""
    if isinstance(data, str):
        return _checked_base64(data)
    from binascii import b2a_base64  # noqa: PLC0415 - most servers never send binary content

    return b2a_base64(data, newline=False).decode("ascii")


def _checked_base64(text: str) -> str:
    from binascii import a2b_base64  # noqa: PLC0415 - most servers never send binary content

    data = "".join(text.split())  # remove line breaks (RFC 4648, 3.1)
    try:
        a2b_base64(data.encode("ascii"), strict_mode=True)
    except ValueError as error:  # non-ASCII text also raises ValueError
        raise ValueError(f"the text is not valid base64: {error}\nhint: pass unencoded bytes, or path=") from None
    return data


class Content:
    """Base class of content blocks in tool results and prompt messages.

    Args:
        annotations: annotations in wire format: `audience`, `priority`, `lastModified`.
        meta: the block's `_meta`.
    """

    __slots__ = ("annotations", "meta")

    def __init__(self, annotations: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None) -> None:
        self.annotations = annotations
        self.meta = meta

    def body(self) -> Json:
        """Return the members that are specific to this kind of block."""
        raise NotImplementedError

    def to_dict(self) -> Json:
        """Return the block in the wire format of the newest revision."""
        block = self.body()
        if self.annotations is not None:
            block["annotations"] = dict(self.annotations)
        if self.meta is not None:
            block["_meta"] = dict(self.meta)
        return block

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.to_dict()!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Content) and other.to_dict() == self.to_dict()

    __hash__ = None  # type: ignore[assignment]  # mutable objects are not hashable


class Text(Content):
    """Text for the model."""

    __slots__ = ("text",)

    def __init__(
        self, text: str, *, annotations: Mapping[str, Any] | None = None, meta: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(annotations, meta)
        self.text = text

    def body(self) -> Json:
        """Return `type` and `text`."""
        return {"type": "text", "text": self.text}


class _Media(Content):
    """Binary content: bytes, base64 text, or a file that is read immediately."""

    __slots__ = ("data", "mime_type")
    _type: str
    _default: str

    def __init__(
        self,
        data: bytes | str | None = None,
        mime_type: str | None = None,
        *,
        path: str | PathLike[str] | None = None,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(annotations, meta)
        if (data is None) == (path is None):
            raise TypeError(
                f"{type(self).__name__} needs exactly one of data and path=\nhint: write Image(path='chart.png')"
            )
        if path is not None:
            from mimetypes import guess_type  # noqa: PLC0415 - only for files
            from pathlib import Path  # noqa: PLC0415 - only for files

            data = Path(path).read_bytes()
            mime_type = mime_type or guess_type(str(path))[0]
        assert data is not None
        self.data = _base64(data)
        self.mime_type = mime_type or self._default

    def body(self) -> Json:
        """Return `type`, `data` and `mimeType`."""
        return {"type": self._type, "data": self.data, "mimeType": self.mime_type}


class Image(_Media):
    """An image.

    The type is PNG, unless `mime_type` or the file's name sets another type.
    """

    __slots__ = ()
    _type = "image"
    _default = "image/png"


class Audio(_Media):
    """An audio recording. The oldest revision does not support audio.

    The type is WAV, unless `mime_type` or the file's name sets another type.
    """

    __slots__ = ()
    _type = "audio"
    _default = "audio/wav"


class EmbeddedText(Content):
    """A text resource, included in full."""

    __slots__ = ("mime_type", "text", "uri")

    def __init__(
        self,
        uri: str,
        text: str,
        mime_type: str | None = "text/plain",
        *,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(annotations, meta)
        self.uri, self.text, self.mime_type = uri, text, mime_type

    def contents(self) -> Json:
        """Return the resource's contents, as in the result of `resources/read`."""
        return _without_none({"uri": self.uri, "mimeType": self.mime_type, "text": self.text})

    def body(self) -> Json:
        """Return `type` and `resource`."""
        return {"type": "resource", "resource": self.contents()}


class EmbeddedBlob(Content):
    """A binary resource, included in full."""

    __slots__ = ("data", "mime_type", "uri")

    def __init__(
        self,
        uri: str,
        data: bytes | str,
        mime_type: str | None = "application/octet-stream",
        *,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(annotations, meta)
        self.uri, self.data, self.mime_type = uri, _base64(data), mime_type

    def contents(self) -> Json:
        """Return the resource's contents, as in the result of `resources/read`."""
        return _without_none({"uri": self.uri, "mimeType": self.mime_type, "blob": self.data})

    def body(self) -> Json:
        """Return `type` and `resource`."""
        return {"type": "resource", "resource": self.contents()}


class ResourceLink(Content):
    """A link to a resource that the client may read.

    If the peer's revision has no links, the peer gets a text instead.
    """

    __slots__ = ("description", "icons", "mime_type", "name", "size", "title", "uri")

    def __init__(
        self,
        uri: str,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        size: int | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(annotations, meta)
        self.uri, self.name, self.title, self.description = uri, name, title, description
        self.mime_type, self.size, self.icons = mime_type, size, icons

    def body(self) -> Json:
        """Return `type`, `uri`, `name` and the optional members that are set."""
        return _without_none(
            {
                "type": "resource_link",
                "uri": self.uri,
                "name": self.name,
                "title": self.title,
                "description": self.description,
                "mimeType": self.mime_type,
                "size": self.size,
                "icons": [dict(icon) for icon in self.icons] if self.icons is not None else None,
            }
        )


class ToolResult:
    """A complete tool result, for tools that set more than the content.

    Args:
        content: one or several blocks. A str becomes a text block. A dict is a block in wire format.
        structured: structured content that matches the tool's output schema, or None.
        is_error: True reports a failed call to the model.
        meta: the result's `_meta`, which the model does not see.
    """

    __slots__ = ("content", "is_error", "meta", "structured")

    def __init__(
        self,
        content: str | Content | Json | Iterable[str | Content | Json] = (),
        structured: Any = None,
        is_error: bool = False,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        self.content: list[Json] = content_blocks(content)
        self.structured = structured
        self.is_error = is_error
        self.meta = meta

    def to_dict(self) -> Json:
        """Return the result in the wire format of the newest revision, without its envelope."""
        result: Json = {"content": self.content}
        if self.structured is not None:
            result["structuredContent"] = self.structured
        if self.is_error:
            result["isError"] = True
        if self.meta is not None:
            result["_meta"] = dict(self.meta)
        return result

    def __repr__(self) -> str:
        return f"ToolResult({self.to_dict()!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ToolResult) and other.to_dict() == self.to_dict()

    __hash__ = None  # type: ignore[assignment]  # mutable objects are not hashable


class Message:
    """One message of a prompt."""

    __slots__ = ("content", "role")

    def __init__(self, content: str | Content | Json, role: Literal["user", "assistant"] = "user") -> None:
        self.content = content_blocks(content)[0]
        self.role = role

    def to_dict(self) -> Json:
        """Return the message in wire format."""
        return {"role": self.role, "content": self.content}

    def __repr__(self) -> str:
        return f"Message({self.content!r}, {self.role!r})"


def content_blocks(value: str | Content | Json | Iterable[str | Content | Json]) -> list[Json]:
    """Convert any supported content to a list of blocks in wire format."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, Content):
        return [value.to_dict()]
    if isinstance(value, dict):
        return [value]
    return [block for item in value for block in content_blocks(item)]


READ_BY_CODE: Final[ContextVar[bool]] = ContextVar("READ_BY_CODE", default=False)
"""True during `ctx.call`, which must return complete results."""
