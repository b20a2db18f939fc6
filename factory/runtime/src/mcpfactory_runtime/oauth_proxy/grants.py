"""What the proxy remembers: logins under way, codes that wait to be redeemed, and grants. In a store, so that several processes can share it.

Secrets of others are kept as their hash, the provider's tokens encrypted. What may be used once is removed, or marked, by a write that
only one of several processes can do.
"""

from __future__ import annotations

import json
import secrets
from typing import Any, Final

from mcpfactory_runtime.oauth_proxy.tokens import digest
from mcpfactory_runtime.store.base import Expected, SharedStore

__all__ = ["CODE_SECONDS", "GRANT_SECONDS", "LOGIN_SECONDS", "GrantStore"]

Json = dict[str, Any]

LOGIN_SECONDS: Final = 600.0
"""That a person has to agree, and again to log in."""

CODE_SECONDS: Final = 60.0
"""That a client has to redeem a code."""

GRANT_SECONDS: Final = 30 * 86_400.0
"""After which a grant that nobody used ends."""

_KEY: Final = ""  # each record is a space of its own: spaces end by themselves


class GrantStore:
    """The records of one proxy. All methods raise OSError where the store is out of reach."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def begin_login(self, login: Json) -> str:
        """Keep a login; return the `state` by which it comes back."""
        state = secrets.token_urlsafe(32)
        await self._put(f"oauth/login/{digest(state)}", login, LOGIN_SECONDS)
        return state

    async def find_login(self, state: str) -> Json | None:
        """Return a login that is under way."""
        return _load(await self._store.get(f"oauth/login/{digest(state)}", _KEY))

    async def end_login(self, state: str, login: Json) -> bool:
        """Forget a login; False where somebody else came first."""
        space = f"oauth/login/{digest(state)}"
        return await self._store.write(space, [(_KEY, None)], seconds=1.0, expected=Expected(_KEY, _dump(login)))

    async def keep_code(self, waiting: Json, grant: Json) -> str:
        """Keep what a code stands for, and the grant that it leads to; return the code."""
        code = secrets.token_urlsafe(32)
        await self._put(f"oauth/grant/{waiting['grant']}", grant, CODE_SECONDS)
        await self._put(f"oauth/code/{digest(code)}", waiting, CODE_SECONDS)
        return code

    async def take_code(self, code: str) -> Json | None:
        """Return what a code stands for, once. Who shows it twice ends the grant (RFC 6749 §4.1.2)."""
        space = f"oauth/code/{digest(code)}"
        kept = await self._store.get(space, _KEY)
        waiting = _load(kept)
        if waiting is None:
            return None
        used = _dump({"grant": waiting["grant"], "used": True})
        expected = Expected(_KEY, kept)
        if "used" in waiting or not await self._store.write(
            space, [(_KEY, used)], seconds=LOGIN_SECONDS, expected=expected
        ):
            await self.end(waiting["grant"])
            return None
        return waiting

    async def find(self, grant_id: str) -> Json | None:
        """Return a grant, if it has not ended."""
        return _load(await self._store.get(f"oauth/grant/{grant_id}", _KEY))

    async def change(self, grant_id: str, before: Json, after: Json) -> bool:
        """Replace a grant; False where somebody else changed it first."""
        space, expected = f"oauth/grant/{grant_id}", Expected(_KEY, _dump(before))
        return await self._store.write(space, [(_KEY, _dump(after))], seconds=GRANT_SECONDS, expected=expected)

    async def end(self, grant_id: str) -> None:
        """End a grant, and with it all its tokens."""
        await self._store.drop(f"oauth/grant/{grant_id}")

    async def _put(self, space: str, record: Json, seconds: float) -> None:
        await self._store.write(space, [(_KEY, _dump(record))], seconds=seconds)


def _dump(record: Json) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()


def _load(data: bytes | None) -> Json | None:
    return None if data is None else dict(json.loads(data))
