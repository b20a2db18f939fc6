"""Tables of equal rows as subtests: one test item for the table, one subtest for each row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest


def _title(value: object, number: int) -> str:
    """Return a value of a short type as text, else its name or the number of its row."""
    return str(value) if isinstance(value, str | int | float | None) else getattr(value, "__name__", f"row {number}")


def parametrize_subtests(
    names: str, table: Iterable[Any], name: Callable[..., str] | None = None
) -> Callable[..., Any]:
    """Run a test once for each row of a table, as subtests of one item.

    Use it instead of `pytest.mark.parametrize` for many cheap and similar rows. Fixtures are made once for
    all rows, except `tmp_path`: each row gets a directory of its own.

    Args:
        names: parameters that a row fills, separated by commas.
        table: one value, or a tuple of values, for each row.
        name: returns the title of a row for its values [default: the values as text].
    """
    columns = [column.strip() for column in names.split(",")]
    values = [tuple(row) if len(columns) > 1 else (row,) for row in table]

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        fixtures = [one for one in signature.parameters.values() if one.name not in columns]

        def run(subtests: pytest.Subtests, **given: Any) -> None:
            for number, row in enumerate(values):
                if "tmp_path" in signature.parameters:
                    folder: Path = given["tmp_path"] / str(number)
                    folder.mkdir()
                    own = {"tmp_path": folder}
                else:
                    own = {}
                title = name(*row) if name else ", ".join(_title(value, number) for value in row)
                # Processes exchange titles as UTF-8, and hostile rows contain lone surrogates.
                with subtests.test(title[:100].encode("utf-8", "backslashreplace").decode()):
                    test(**{**given, **own, **dict(zip(columns, row, strict=True))})

        run.__name__, run.__doc__, run.__module__ = test.__name__, test.__doc__, test.__module__
        # pytest reads the fixtures to pass from the signature.
        subtests = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        kept = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in fixtures if one.name != "subtests"]
        run.__signature__ = inspect.Signature([subtests, *kept])  # type: ignore[attr-defined]
        return run

    return decorate
