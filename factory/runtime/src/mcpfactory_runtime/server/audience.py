"""Who reads an answer: a model, which is given at most so much of it, or code of the server, which is given all."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

__all__ = ["READ_BY_CODE"]

READ_BY_CODE: Final[ContextVar[bool]] = ContextVar("READ_BY_CODE", default=False)
"""True while a tool is called by another one (`ctx.call`): its answer is not cut."""
