"""Conversion of column values for results. The database cuts long values before it sends them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from psycopg import sql

__all__ = ["Rows", "Value", "expression", "shown"]

Value = str | int | float | bool | None

_TEXT: Final = 2_000  # characters of one value
_BYTES: Final = 60  # shown bytes of a bytea value
_EXACT: Final = 2**53  # JavaScript rounds larger integers
_AS_THEY_ARE: Final = frozenset({16, 20, 21, 23, 26, 700, 701})  # bool, int8, int2, int4, oid, float4, float8
_BYTEA: Final = 17
_VOID: Final = 2278


@dataclass(frozen=True, slots=True)
class Rows:
    """Result of a query. `more` is true if rows were cut off. Types without an exact JSON form, such as numeric and dates, are text."""

    columns: list[str]
    rows: list[list[Value]]
    more: bool


def expression(number: int, kind: int) -> sql.Composable:
    """Return the expression to select for a column, by its index and type OID."""
    name = sql.Identifier(f"c{number}")
    if kind in _AS_THEY_ARE:
        return name
    if kind == _VOID:
        return sql.SQL("NULL::text")
    if kind == _BYTEA:
        return sql.SQL(
            "pg_catalog.octet_length({0})::text || ' bytes: ' || pg_catalog.encode(pg_catalog.substr({0}, 1, {1}), 'base64')"
        ).format(name, sql.Literal(_BYTES))
    return sql.SQL(
        "CASE WHEN pg_catalog.length({0}::text) > {1} THEN"
        " pg_catalog.left({0}::text, {1}) || '… (' || pg_catalog.length({0}::text) || ' characters)' ELSE {0}::text END"
    ).format(name, sql.Literal(_TEXT))


def shown(value: object) -> Value:
    """Return a value that JSON can represent."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"  # spelled as in PostgreSQL
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT:
        return str(value)
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
