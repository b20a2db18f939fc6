"""What is asked of the catalog of a database, and the records of its answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["COLUMNS", "NAMED", "PARTS", "TABLES", "VOLATILE", "Column", "Table", "TableName", "escaped"]


@dataclass(frozen=True, slots=True)
class TableName:
    """A table or a view; `rows` is what the database guesses, null where it does not know."""

    schema: str
    name: str
    kind: str
    rows: int | None
    bytes: int
    about: str
    oid: int


@dataclass(frozen=True, slots=True)
class Column:
    """A column; `default` and `about` are "" where there is none."""

    name: str
    type: str
    required: bool
    default: str
    about: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table or a view: constraints have its keys; `definition` is the query of a view."""

    schema: str
    name: str
    kind: str
    about: str
    columns: list[Column]
    constraints: list[str]
    indexes: list[str]
    definition: list[str]


_TABLE: Final = """
SELECT n.nspname AS schema, c.relname AS name,
  CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'f' THEN 'foreign table' ELSE 'table' END AS kind,
  CASE WHEN c.relkind <> 'v' AND c.reltuples >= 0 THEN c.reltuples::bigint END AS rows,
  pg_catalog.pg_table_size(c.oid) AS bytes, pg_catalog.left(coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), ''), 300) AS about,
  c.oid::bigint AS oid
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
  AND pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_any_column_privilege(c.oid, 'SELECT')
"""
TABLES: Final = f"{_TABLE} AND n.nspname || '.' || c.relname || ' ' || coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), '') ILIKE %s ORDER BY 1, 2 LIMIT %s"
NAMED: Final = f"{_TABLE} AND %s::text IN (c.relname::text, n.nspname || '.' || c.relname) ORDER BY pg_catalog.pg_table_is_visible(c.oid) DESC, 1 LIMIT 1"
COLUMNS: Final = """
SELECT a.attname AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AS required,
  CASE WHEN a.attidentity <> '' THEN 'identity' ELSE pg_catalog.left(coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), ''), 300) END AS default,
  pg_catalog.left(coalesce(pg_catalog.col_description(a.attrelid, a.attnum), ''), 300) AS about
FROM pg_catalog.pg_attribute AS a LEFT JOIN pg_catalog.pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum LIMIT 500
"""
PARTS: Final = (
    "SELECT pg_catalog.left(conname || ': ' || pg_catalog.pg_get_constraintdef(oid), 500) FROM pg_catalog.pg_constraint WHERE conrelid = $1 ORDER BY contype DESC, 1 LIMIT 100",
    "SELECT pg_catalog.left(pg_catalog.pg_get_indexdef(indexrelid), 500) FROM pg_catalog.pg_index WHERE indrelid = $1 ORDER BY 1 LIMIT 100",
    "SELECT pg_catalog.left(pg_catalog.pg_get_viewdef(oid), 5000) FROM pg_catalog.pg_class WHERE oid = $1 AND relkind IN ('v', 'm')",
)
"""Constraints, indexes, and what a view is made of."""
VOLATILE: Final = "SELECT DISTINCT proname::text FROM pg_catalog.pg_proc WHERE proname::text = ANY($1::text[]) AND provolatile = 'v'"


def escaped(words: str) -> str:
    """Return a text that LIKE takes as it is."""
    return words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
