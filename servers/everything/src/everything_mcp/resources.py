"""Resources: text, binary, watched, and a template."""

from __future__ import annotations

from base64 import b64decode

from mcpfactory_runtime import Server

from .media import PNG


async def static_text() -> str:
    """Return a constant text."""
    return "This is the content of the static text resource."


async def static_binary() -> bytes:
    """Return a constant image."""
    return b64decode(PNG)


async def watched_resource() -> str:
    """Return a text that clients may subscribe to."""
    return "Watched resource content"


async def template_data(id: str) -> dict[str, object]:
    """Return data for the ID in the URI."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def add_to(server: Server) -> None:
    """Register the resources and the template."""
    server.resource("test://static-text", title="Static text", mime_type="text/plain")(static_text)
    server.resource("test://static-binary", title="Static binary", mime_type="image/png")(static_binary)
    server.resource("test://watched-resource", title="Watched", mime_type="text/plain")(watched_resource)
    server.resource("test://template/{id}/data", title="Data by id", mime_type="application/json")(template_data)
