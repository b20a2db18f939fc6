"""What a text of SQL calls and begins with, looked at before it is sent. It reads too much rather than too little. Pure."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["HARMLESS", "RUNS_TEXT", "called_names", "first_word", "has_escaped_names"]

HARMLESS: Final = frozenset(
    {
        *("clock_timestamp", "timeofday", "random", "random_normal", "gen_random_uuid", "uuid_generate_v4", "currval", "lastval"),
        *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size", "pg_database_size", "pg_tablespace_size"),
    }
)
"""Functions that PostgreSQL calls volatile, and that change and reveal nothing."""

RUNS_TEXT: Final = frozenset(
    {
        *("query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml", "cursor_to_xmlschema"),
        *("crosstab", "crosstab2", "crosstab3", "crosstab4", "crosstab_hash", "connectby", "xpath_table", "ts_stat", "ts_rewrite"),
    }
)
"""Functions that run a text as SQL, in which nobody looks for what it calls."""

# A name, or one in quotes, and what begins its arguments; a comment may stand between, so that a name before one counts as called.
_CALL: Final = re.compile(r'([A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*)"?\s*(?=\(|--|/\*)')
_QUOTED: Final = re.compile(r'(?="((?:[^"]|"")+)"\s*(?:\(|--|/\*))')
_ESCAPED: Final = re.compile(r'[uU]&"')
_FIRST: Final = re.compile(r"\s*([A-Za-z]+)(?![\w$])")


def called_names(sql: str) -> list[str]:
    """Return every name that may be a called function: as it is written, and folded as PostgreSQL does without quotes.

    What stands in literals and comments is in it as well, for telling them apart is where such readers are deceived.
    """
    found = {match[1] for match in _CALL.finditer(sql)}
    found |= {match[1].replace('""', '"') for match in _QUOTED.finditer(sql)}
    return sorted(found | {_folded(name) for name in found})


def has_escaped_names(sql: str) -> bool:
    """Whether a name may be spelled by numbers of characters, after U&."""
    return bool(_ESCAPED.search(sql))


def first_word(sql: str) -> str:
    """Return the word that a statement begins with, in capitals; "" where it begins with something else, such as a comment."""
    match = _FIRST.match(sql)
    return match[1].upper() if match else ""


def _folded(name: str) -> str:
    return "".join(one.lower() if one.isascii() else one for one in name)
