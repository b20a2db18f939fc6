"""Removal of summaries that a framework wrote, so that the texts of people describe an operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from mcpfactory_codegen.ir import ApiOperation
from mcpfactory_codegen.text import singular, words


def without_framework_summaries(operations: Sequence[ApiOperation]) -> tuple[ApiOperation, ...]:
    """Return the operations without summaries that repeat a name, or that say nothing and occur on several paths."""
    counts = Counter(summary for _, summary in {(one.path, one.summary) for one in operations})
    return tuple(
        replace(one, summary="") if _repeats_name(one) or (counts[one.summary] > 1 and _names_nothing(one)) else one
        for one in operations
    )


def _repeats_name(operation: ApiOperation) -> bool:
    """Return True if a description exists, and the summary is the start of the operationId in code or title case."""
    said = words(operation.summary)
    cased = operation.summary.istitle() or " " not in operation.summary
    return cased and said == words(operation.operation_id)[: len(said)] and bool(operation.description.strip())


def _names_nothing(operation: ApiOperation) -> bool:
    """Return True if no word of the summary occurs in the path, the operationId or a tag."""
    named = words(" ".join((operation.path, operation.operation_id, *operation.tags)))
    return {*map(singular, words(operation.summary))}.isdisjoint(map(singular, named))
