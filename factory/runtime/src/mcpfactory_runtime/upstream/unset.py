"""The value of an argument that was not given, which is not the same as null."""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal

__all__ = ["UNSET", "Unset"]


class Unset(Enum):
    """The type of UNSET, for annotations: `limit: int | Unset = UNSET`.

    An enumeration with one member, because type checkers narrow those by `is`, and copies stay the same object.
    """

    UNSET = "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = Unset.UNSET
"""The argument was not given: it is left out of the request."""
