"""Extraction of the names that an SQL statement may call, before it is sent. It overestimates on purpose.

A statement calls a function as `name(…)`, or as `(value).name`, which PostgreSQL treats as `name(value)`. Both are extracted
from the text, and a query on the catalog finds out which of these names are volatile functions. The same query finds operators,
aggregates and domains that use volatile functions, whose names do not appear in the statement.

Alternatives seem to cover less: EXPLAIN VERBOSE omits LIMIT, VALUES and window frames; dependencies of a temporary view omit built-in
functions, and need a writable transaction without parameters. debug_print_parse is complete, but logs every query with its values.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["HARMLESS", "RUNS_TEXT", "all_names", "attribute_names", "called_names", "first_word", "has_escaped_names", "trimmed"]

_HARMLESS_ONES: Final = (
    *("clock_timestamp", "timeofday", "random", "random_normal", "gen_random_uuid", "currval", "lastval"),
    *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size", "pg_database_size", "pg_tablespace_size"),
)
HARMLESS: Final = frozenset({*(f"pg_catalog.{name}" for name in _HARMLESS_ONES), "uuid-ossp.uuid_generate_v4", "pgcrypto.gen_random_uuid"})
"""Volatile functions that change and reveal nothing, as `schema.name` or `extension.name`."""

RUNS_TEXT: Final = frozenset(
    {
        *("query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml", "cursor_to_xmlschema"),
        *("crosstab", "crosstab2", "crosstab3", "crosstab4", "crosstab_hash", "connectby", "xpath_table", "ts_stat", "ts_rewrite"),
    }
)
"""Functions that run a text as SQL. The calls within that text cannot be checked."""

_NAME: Final = r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*"
# The bound keeps the time linear if there are many quotation marks; PostgreSQL cuts longer names anyway.
_IN_QUOTES: Final = r'(?="((?:[^"]|""){1,130}))'
# A name next to a comment counts as called, and as a name after a dot, because the comment may hide the parenthesis or dot.
_CALLED: Final = re.compile(rf'({_NAME})"?\s*(?=\(|--|/\*)')
_CALLED_IN_QUOTES: Final = re.compile(r'(?="((?:[^"]|""){1,130})(?:"\s*(?:\(|--|/\*)|[^"]))')
_DOT: Final = r"(?:\.|\*/|--[^\n\r]*[\n\r])\s*"
_ATTRIBUTE: Final = re.compile(rf"{_DOT}({_NAME})")
_ATTRIBUTE_IN_QUOTES: Final = re.compile(rf"{_DOT}{_IN_QUOTES}")
_ANY: Final = re.compile(_NAME)
_ANY_IN_QUOTES: Final = re.compile(_IN_QUOTES)
_ESCAPED: Final = re.compile(r'[uU]&"')
_FIRST: Final = re.compile(r"([A-Za-z]+)(?![\w$])")
_BYTES: Final = 63  # of a name; PostgreSQL cuts longer names
_COMMENT: Final = re.compile(r"/\*|\*/")
_LEXEME: Final = re.compile(
    rf"""(?P<between>\s+|--[^\n\r]*|;)|(?P<comment>/\*)|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<tag>\$(?:{_NAME})?\$).*?(?P=tag)|{_NAME}|.""",
    re.DOTALL,
)


def called_names(sql: str) -> list[str]:
    """Return every name that may be a function call `name(…)`: as written, and lowercased and cut as by PostgreSQL.

    Names in literals and comments are included, because attackers exploit mistakes in telling them apart.
    """
    return _spellings(sql, _CALLED, _CALLED_IN_QUOTES)


def attribute_names(sql: str) -> list[str]:
    """Return every name after a dot, which may call a function on the value before it; otherwise as `called_names`."""
    return _spellings(sql, _ATTRIBUTE, _ATTRIBUTE_IN_QUOTES)


def all_names(sql: str) -> list[str]:
    """Return every name, because each may be a type; otherwise as `called_names`."""
    return _spellings(sql, _ANY, _ANY_IN_QUOTES)


def has_escaped_names(sql: str) -> bool:
    """Return True if a name may contain Unicode escapes (U&"…")."""
    return bool(_ESCAPED.search(sql))


def first_word(sql: str) -> str:
    """Return the first word of a trimmed statement in capitals, or ""."""
    match = _FIRST.match(sql)
    return match[1].upper() if match else ""


def trimmed(sql: str) -> str:
    """Return a statement without leading comments, and without trailing semicolons and comments."""
    begin, end, at = -1, 0, 0
    while match := _LEXEME.match(sql, at):
        at = _behind_comment(sql, at) if match["comment"] else match.end()
        if not match["between"] and not match["comment"]:
            begin, end = at - len(match[0]) if begin < 0 else begin, at
    return sql[max(begin, 0) : end]


def _behind_comment(sql: str, at: int) -> int:
    """Return the end of the comment that starts at `at`; PostgreSQL nests comments."""
    depth = 0
    for match in _COMMENT.finditer(sql, at):
        depth += 1 if match[0] == "/*" else -1
        if not depth:
            return match.end()
    return len(sql)


def _spellings(sql: str, plain: re.Pattern[str], in_quotes: re.Pattern[str]) -> list[str]:
    found = {match[match.re.groups] for match in plain.finditer(sql)}
    found |= {match[1].replace('""', '"') for match in in_quotes.finditer(sql)}
    return sorted({_cut(one) for name in found for one in (name, _folded(name))})


def _folded(name: str) -> str:
    return "".join(one.lower() if one.isascii() else one for one in name)


def _cut(name: str) -> str:
    return name.encode()[:_BYTES].decode(errors="ignore")
