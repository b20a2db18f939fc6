"""Client features for servers: elicitation, sampling and roots, the same in both lifecycles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isawaitable
from typing import Any

from mcpfactory_runtime.protocol.errors import METHOD_NOT_FOUND, McpError
from mcpfactory_runtime.revisions import Revision
from mcpfactory_runtime.types import Json


def accept_defaults(params: Json) -> Json:
    """For `elicitation=`: accepts a form with the defaults of its fields, as if a person had just pressed the button.

    Fields without a default are left out; a request to open a URL is declined.
    """
    properties = (params.get("requestedSchema") or {}).get("properties")
    if not isinstance(properties, dict):
        return {"action": "decline"}
    fields = {name: field for name, field in properties.items() if isinstance(field, dict) and "default" in field}
    return {"action": "accept", "content": {name: field["default"] for name, field in fields.items()}}


class Handlers:
    """The functions that answer a server's requests; None where the client cannot."""

    def __init__(
        self,
        elicitation: Callable[[Json], Any] | None = None,
        sampling: Callable[[Json], Any] | None = None,
        roots: Sequence[Json] | Callable[[], Any] | None = None,
    ) -> None:
        self._by_method: dict[str, Callable[[Json], Any]] = {}
        if elicitation is not None:
            self._by_method["elicitation/create"] = elicitation
        if sampling is not None:
            self._by_method["sampling/createMessage"] = sampling
        if callable(roots):
            self._by_method["roots/list"] = lambda _params: roots()
        elif roots is not None:
            self._by_method["roots/list"] = lambda _params: list(roots)

    def capabilities(self, revision: Revision) -> Json:
        """Return the capabilities to declare to a server that uses `revision`."""
        found: Json = {}
        for method, name in (
            ("elicitation/create", "elicitation"),
            ("sampling/createMessage", "sampling"),
            ("roots/list", "roots"),
        ):
            if method in self._by_method and name in revision.client_capabilities:
                found[name] = {"form": {}} if name == "elicitation" and "url" in revision.elicitation_modes else {}
        return found

    async def answer(self, method: str, params: Json) -> Json:
        """Return the result for a request.

        Raises:
            McpError: METHOD_NOT_FOUND if the request has no handler.
        """
        handler = self._by_method.get(method)
        if handler is None:
            raise McpError(METHOD_NOT_FOUND, f"the client does not do {method}")
        result = handler(params)
        if isawaitable(result):
            result = await result
        return {"roots": list(result)} if method == "roots/list" else dict(result)
