"""A request that is made often: encoded once but for its arguments, and answered without a task, a future or a clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpfactory_runtime.protocol.jsonrpc import encode

if TYPE_CHECKING:
    from mcpfactory_runtime.client.session import ClientSession, Posted

__all__ = ["PreparedRequest"]

Json = dict[str, Any]


class PreparedRequest:
    """One request to a process, but for its arguments. For those who pass many on.

    Args:
        session: with whom.
        method: as `METHODS` calls it.
        params: all of them but `arguments`, with `_meta`.
    """

    __slots__ = ("_head", "_session")

    def __init__(self, session: ClientSession, method: str, params: Json) -> None:
        self._session = session
        known = encode(params)[:-1] + (b"," if params else b"")
        self._head = b',"method":%b,"params":%b"arguments":' % (encode(session.wire(method)), known)

    def post(self, arguments: Json, done: Posted) -> int:
        """Send it with these arguments; `done` takes the result, or why there is none. Returns its id, for `withdraw`.

        Raises:
            ConnectionLostError: the server is gone.
        """
        return self._session.post(self._head + encode(arguments) + b"}}", done)

    def withdraw(self, request_id: int) -> None:
        """Tell the server that nobody waits any more."""
        self._session.withdraw(request_id)
