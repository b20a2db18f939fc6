"""What a text of SQL may call and begins with, looked at before it is sent. It reads too much rather than too little. Pure.

A statement names a function in two ways: `name(…)`, and `(value).name`, which PostgreSQL takes for `name(value)`. Both are read from the text, and the
catalog is asked which of these names are volatile functions. What a statement has no name of, the catalog knows: operators, aggregates and domains that are
made from such functions. Three other ways were weighed, not tried, and seem to do less: EXPLAIN VERBOSE leaves out what stands in LIMIT, in VALUES and in the
frames of windows; a temporary view and its dependencies need a transaction that writes, no parameters and no standby, and say nothing of functions that
PostgreSQL itself brings; debug_print_parse is complete, and writes every query with its values into the log of the server.
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
"""Functions that PostgreSQL calls volatile, and that change and reveal nothing, each with the schema or the extension that it is of."""

RUNS_TEXT: Final = frozenset(
    {
        *("query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml", "cursor_to_xmlschema"),
        *("crosstab", "crosstab2", "crosstab3", "crosstab4", "crosstab_hash", "connectby", "xpath_table", "ts_stat", "ts_rewrite"),
    }
)
"""Functions that run a text as SQL, in which nobody looks for what it calls."""

_NAME: Final = r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*"
# As much of a quoted name as can count is read from each quotation mark, so that many of them cost no square of their number.
_IN_QUOTES: Final = r'(?="((?:[^"]|""){1,130}))'
# A comment may stand before and behind a name: then the name counts as called, and as one behind a dot.
_CALLED: Final = re.compile(rf'({_NAME})"?\s*(?=\(|--|/\*)')
_CALLED_IN_QUOTES: Final = re.compile(r'(?="((?:[^"]|""){1,130})(?:"\s*(?:\(|--|/\*)|[^"]))')
_DOT: Final = r"(?:\.|\*/|--[^\n\r]*[\n\r])\s*"
_ATTRIBUTE: Final = re.compile(rf"{_DOT}({_NAME})")
_ATTRIBUTE_IN_QUOTES: Final = re.compile(rf"{_DOT}{_IN_QUOTES}")
_ANY: Final = re.compile(_NAME)
_ANY_IN_QUOTES: Final = re.compile(_IN_QUOTES)
_ESCAPED: Final = re.compile(r'[uU]&"')
_FIRST: Final = re.compile(r"([A-Za-z]+)(?![\w$])")
_BYTES: Final = 63  # of a name: PostgreSQL leaves out what is behind them
_COMMENT: Final = re.compile(r"/\*|\*/")
_LEXEME: Final = re.compile(
    rf"""(?P<between>\s+|--[^\n\r]*|;)|(?P<comment>/\*)|[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?P<tag>\$(?:{_NAME})?\$).*?(?P=tag)|{_NAME}|.""",
    re.DOTALL,
)


def called_names(sql: str) -> list[str]:
    """Return every name that may be a function before its arguments: as it is written, and folded and cut as PostgreSQL does.

    What stands in literals and comments is in it as well, for telling them apart is where such readers are deceived.
    """
    return _spellings(sql, _CALLED, _CALLED_IN_QUOTES)


def attribute_names(sql: str) -> list[str]:
    """Return every name behind a dot, which may be a function of what stands before it; otherwise as `called_names`."""
    return _spellings(sql, _ATTRIBUTE, _ATTRIBUTE_IN_QUOTES)


def all_names(sql: str) -> list[str]:
    """Return every name, which may be that of a type; otherwise as `called_names`."""
    return _spellings(sql, _ANY, _ANY_IN_QUOTES)


def has_escaped_names(sql: str) -> bool:
    """Whether a name may be spelled by numbers of characters, after U&."""
    return bool(_ESCAPED.search(sql))


def first_word(sql: str) -> str:
    """Return the word that a trimmed statement begins with, in capitals; "" where it begins with something else."""
    match = _FIRST.match(sql)
    return match[1].upper() if match else ""


def trimmed(sql: str) -> str:
    """Return a statement without comments before it, and without a semicolon and comments behind it; what it says is the same, and is looked at after this."""
    begin, end, at = -1, 0, 0
    while match := _LEXEME.match(sql, at):
        at = _behind_comment(sql, at) if match["comment"] else match.end()
        if not match["between"] and not match["comment"]:
            begin, end = at - len(match[0]) if begin < 0 else begin, at
    return sql[max(begin, 0) : end]


def _behind_comment(sql: str, at: int) -> int:
    """Return where a comment ends that begins here; PostgreSQL nests them."""
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
