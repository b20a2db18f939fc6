"""Annotations of a tool: what its method promises, held against what the document says that it does.

method              says first                           hints
GET and other reads                                      read-only
GET and other reads create, send, delete, …              not read-only, and reported: somebody relies on such hints
POST                search, list, count, …, nothing more read-only: many APIs search by POST
POST, PUT, PATCH    delete, purge, revoke, …             destructive
DELETE                                                   destructive
"""

from __future__ import annotations

from typing import Any, Final

from mcpfactory_codegen.ir import Operation, Problem
from mcpfactory_codegen.text.words import words

__all__ = ["hints_of"]

_READ_ONLY: Final = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
_IDEMPOTENT: Final = frozenset({"PUT", "DELETE"})

_READS: Final = frozenset(
    ["search", "list", "query", "find", "lookup", "count", "searches", "lists", "queries", "finds", "counts"]
)
_DESTROYS: Final = frozenset(["delete", "remove", "purge", "destroy", "erase", "wipe", "revoke"])
_WRITES: Final = frozenset(
    ["create", "send", "cancel", "reset", "publish", "approve", "restart", "trigger", "deactivate", "update", "insert"]
)
_CHANGES: Final = frozenset(verb + end for verb in _DESTROYS | _WRITES for end in ("", "s")) | {"publishes"}
"""Verbs that are hardly ever the first word of something else, and as a description begins with them ("Deletes the …")."""


def hints_of(operation: Operation) -> tuple[dict[str, Any], Problem | None]:
    """Return the annotations, and what is odd about the operation: a reading method that says that it changes something."""
    verbs = _verbs(operation)
    if operation.method in _READ_ONLY:
        if not verbs or not verbs <= _CHANGES:
            return {"readOnlyHint": True, "openWorldHint": True}, None
        told = f"{operation.key} says that it will {min(verbs)}, which its method must not; it is not called read-only"
        hint = "change the method, or the words"
        return _changing(operation, verbs), Problem("warning", "hints-doubtful", operation.pointer, told, hint)
    if operation.method == "POST" and verbs and verbs <= _READS and not _all_words(operation) & _CHANGES:
        return {"readOnlyHint": True, "openWorldHint": True}, None
    return _changing(operation, verbs), None


def _changing(operation: Operation, verbs: frozenset[str]) -> dict[str, Any]:
    return {
        "readOnlyHint": False,
        "destructiveHint": operation.method == "DELETE" or any(verb.removesuffix("s") in _DESTROYS for verb in verbs),
        "idempotentHint": operation.method in _IDEMPOTENT,
        "openWorldHint": True,
    }


def _verbs(operation: Operation) -> frozenset[str]:
    """Return the verbs that the operationId and the summary (or description) begin with."""
    texts = (operation.operation_id.rpartition("/")[2], operation.summary or operation.description[:200])
    return frozenset(found[0] for text in texts if (found := words(text))) & (_READS | _CHANGES)


def _all_words(operation: Operation) -> frozenset[str]:
    return frozenset(words(f"{operation.operation_id} {operation.summary}"))
