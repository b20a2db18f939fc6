"""Text functions: words of names, closest known names, plain text for models, and token estimates. Pure."""

from __future__ import annotations

import hashlib
import json
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

VERSION: Final = re.compile(r"v?\d+(\.\d+)*(alpha|beta|rc)?\d*\Z", re.I)
"""A path segment or word that is a version: v1, 2, 1.0, v2beta1."""

PATH_PREFIXES: Final = frozenset({"api", "rest", "apis"})
"""Common first segments of paths that have no meaning for a name."""

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>#|!~$&])")
_BOUNDARY: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")
_WHOLE: Final = re.compile(r"OAuth|iOS|macOS|GraphQL|IdP(?![a-z])|[A-Z]{2,}s(?![a-z])")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@cache
def _word_groups() -> dict[str, frozenset[str]]:
    lines = Path(__file__).with_name("words.txt").read_text("utf-8").splitlines()
    text = " ".join(line for line in lines if not line.startswith("#"))
    return {name: frozenset(listed.split()) for name, listed in re.findall(r"\[([a-z-]+)\]([^\[]*)", text)}


def word_group(name: str) -> frozenset[str]:
    """Return a group of English words from words.txt."""
    return _word_groups()[name]


def word_pairs(name: str) -> dict[str, str]:
    """Return a group of pairs from words.txt, each written as `indices=index`."""
    return dict(pair.split("=") for pair in word_group(name))


_KEPT_S: Final = tuple(word_group("kept-s"))
_ODD_PLURALS: Final = word_pairs("odd-plurals")


@lru_cache(maxsize=65536)
def words(text: str) -> tuple[str, ...]:
    """Return the lowercase ASCII words of a name in any spelling, such as users, get and mail2 for `users.GetMail2`."""
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return tuple(part.lower() for part in _BOUNDARY.split(text.replace("'", "")) if part)


def with_whole_words(text: str) -> str:
    """Return a text with capitals at which `words` does not split: `OAuth2` becomes Oauth2, and `IDs` becomes Ids."""
    return _WHOLE.sub(lambda match: match.group().capitalize(), text)


def snake_case(text: str) -> str:
    """Return a name in snake case, such as x_request_id for `X-Request-ID`, or "" without ASCII letters and digits."""
    return "_".join(words(text))


@lru_cache(maxsize=65536)
def singular(word: str) -> str:
    """Return the singular of a usual English plural, but keep words such as `alias`, `status` and `dns`."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(_KEPT_S):
        return word
    if word in _ODD_PLURALS:
        return _ODD_PLURALS[word]
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes")) or (
        word.endswith("uses") and not word.endswith(("auses", "ouses"))
    ):
        return word[:-2]
    return word[:-1]


def is_plural(word: str) -> bool:
    """Return True if the word looks like a plural."""
    return singular(word) != word


def digest(text: str, length: int = 8) -> str:
    """Return the first hexadecimal digits of the text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


def join_and_shorten(parts: Iterable[str], limit: int, key: str) -> str:
    """Join words by `_`. Above `limit` characters, drop words from the middle and add the digest of `key`."""
    parts = list(parts)
    name = "_".join(parts)
    if len(name) <= limit:
        return name
    suffix = digest(key)
    room = limit - 1 - len(suffix)
    while len("_".join(parts)) > room and len(parts) > 1:
        parts.pop(len(parts) * 2 // 3 if len(parts) > 2 else 1)
    return "_".join(parts)[:room].rstrip("_") + "_" + suffix


def is_identifier(text: str) -> bool:
    """Return True if the text is an ASCII Python identifier and not a keyword."""
    return bool(_IDENTIFIER.match(text)) and not keyword.iskeyword(text)


def identifier(text: str, *, prefix: str, reserved: frozenset[str] = frozenset()) -> str:
    """Convert the text to an ASCII identifier in snake case, with `prefix` before a digit."""
    name = snake_case(text)
    if not name:
        return f"{prefix}_{digest(text, 6)}"
    if name[0].isdigit():
        name = f"{prefix}_{name}"
    return name + "_" if keyword.iskeyword(name) or name in reserved else name


def names_with_digest(lead: str, key: str, length: int) -> Iterator[str]:
    """Yield endless distinct names from `lead` and an ever longer digest of the key."""
    while True:
        yield "_".join(filter(None, (lead, digest(key, length))))
        length += 2


def choose_unique_names(proposals: Mapping[str, Iterator[str]], taken: set[str]) -> dict[str, str]:
    """Return a name for each key: the first free name among the key's endless proposals, ignoring case.

    In each round, a key gets its proposed name if no other key has the same proposal. Therefore names do not depend on
    the order of keys. `taken` has reserved names in lower case, and also receives all proposed names.
    """
    names: dict[str, str] = {}
    waiting = dict(proposals)
    while waiting:
        proposed = {key: next(candidates) for key, candidates in waiting.items()}
        claims = Counter(name.lower() for name in proposed.values())
        free = {name for name, count in claims.items() if name and count == 1} - taken
        names |= {key: name for key, name in proposed.items() if name.lower() in free}
        waiting = {key: candidates for key, candidates in waiting.items() if key not in names}
        taken |= claims.keys()
    return names


# --- hints for mistyped names and unknown keys ---


_SHOWN: Final = 20  # maximum names in a hint
_LONGEST: Final = 100  # maximum characters of a name to compare and show
_LEAST: Final = 3  # minimum characters of a prefix; shorter prefixes match unrelated names


def closest_match(word: str, known: Iterable[str]) -> str:
    """Return the closest known name, or "". A close name is similar, has the same letters, or starts with the word."""
    by_fold = {name.casefold(): name for name in known}
    asked = word.casefold()[:_LONGEST]
    close = get_close_matches(asked, by_fold, 1)
    turned = [name for name in by_fold if sorted(name) == sorted(asked)]
    begun = [name for name in by_fold if len(asked) >= _LEAST and name.startswith(asked)]
    return next((by_fold[name] for name in (*close, *turned, *begun)), "")


def did_you_mean(word: str, known: Collection[str], what: str) -> str:
    """Return a hint with the closest name and the known names, such as `did you mean 'shop'? servers: books, shop`."""
    names = list(known)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    there = f"{what}: {', '.join(names[:_SHOWN])}{more}" if names else f"{what}: none"
    meant = closest_match(word, names)
    return f"did you mean {meant!r}? {there}" if meant else there


def describe_unknown_key(table: Mapping[str, object], known: Collection[str], where: str) -> tuple[str, str] | None:
    """Return a message and a hint for the first unknown key of a table, or None."""
    for key in table:
        if key not in known:
            return f"{where} has an unknown field {str(key)[:_LONGEST]!r}", did_you_mean(str(key), known, "fields")
    return None


# --- text of documents, as plain and short text without hidden characters ---


_READ: Final = 20_000  # maximum characters of a text to read, because some patterns are slow on long texts
_FENCE: Final = re.compile(r"```.*?(```|\Z)", re.S)
_COMMENT: Final = re.compile(r"<!--.*?(-->|\Z)", re.S)
_IMAGE: Final = re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)")
_LINK: Final = re.compile(r"\[([^\]\n]+)\](?:\([^)\n]*\)|\[[^\]\n]*\])")
_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>\n]*)?/?>")
_MARKS: Final = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>+[ \t]?|[-*_]{3,}[ \t]*$)", re.M)
_SOFT: Final = re.compile(r"(?<![\w*_`])([*_])(?=[^\s*_])([^*_\n]+?)(?<=\S)\1(?![\w*_`])")
_BOLD: Final = re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1")
_PLAIN: Final = (
    (_FENCE, " "), (_COMMENT, " "), (_IMAGE, ""), (_LINK, r"\1"), (_TAG, " "), (_BOLD, r"\2"), (_SOFT, r"\2"),
)  # fmt: skip
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9`*(\"'-])|\n+")
_CONSTRAINT: Final = re.compile(
    r"\b(must|required?|requires|only|cannot|can't|may not|not allowed|at least|at most|maximum|minimum|max|min|"
    r"default|defaults|up to|between|limit|valid|format|deprecated|comma|one of|iso.?8601|utc|permission|scope)\b",
    re.I,
)
_ELSEWHERE: Final = re.compile(
    r"(for (more|further) (details|information)|to learn more|learn more|read more|see (also )?\W)", re.I
)
_ENTITIES: Final = {"&nbsp;": " ", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&amp;": "&"}


def strip_controls(text: str) -> str:
    """Remove control, format (bidirectional, zero-width) and surrogate characters, except newlines and tabs."""
    text = text.replace("\r\n", "\n")
    if text.replace("\n", "").replace("\t", "").isprintable():  # this check is fast and covers most texts
        return text
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) not in _HIDDEN)


_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


@lru_cache(maxsize=8192)
def markup_to_plain_text(text: str) -> str:
    """Convert Markdown and HTML to plain text, with one newline between paragraphs."""
    text = strip_controls(text[:_READ])
    if "<" in text or "[" in text or "`" in text or "*" in text or "_" in text or "&" in text:
        for pattern, by in _PLAIN:
            text = pattern.sub(by, text)
        for entity, character in _ENTITIES.items():
            text = text.replace(entity, character)
    text = _MARKS.sub("", text)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def shorten_text(text: str, limit: int) -> str:
    """Return plain text of at most `limit` characters: the first sentences, and later constraints."""
    text = markup_to_plain_text(text)
    if len(text) <= limit:
        return text
    sentences = [part for part in _SENTENCE.split(text) if part]
    chosen: set[int] = set()
    used = 0
    for i in sorted(range(len(sentences)), key=lambda i: (i > 0, _worth(sentences[i]), i)):
        if used + len(sentences[i]) + 1 <= limit - 2:
            chosen.add(i)
            used += len(sentences[i]) + 1
    if not chosen:
        return text[: limit - 1].rsplit(" ", 1)[0][: limit - 1].rstrip(" ,;:") + "…"
    return " ".join(sentences[i] for i in sorted(chosen)) + " …"


def _worth(sentence: str) -> int:
    """Return the sort key of a sentence: 0 for a constraint, 2 for a pointer to other texts, otherwise 1."""
    if _ELSEWHERE.match(sentence):
        return 2
    return 0 if _CONSTRAINT.search(sentence) else 1


def one_line(text: str, limit: int) -> str:
    """Return `shorten_text` on a single line."""
    return " ".join(shorten_text(text, limit).split())


# --- JSON, and estimates of tokens ---


_BYTES_A_TOKEN: Final = 4  # bytes of compact JSON in UTF-8 per token; real tokenizers differ by at most about 15 %


def dump_json(data: Any) -> str:
    """Return JSON without spaces."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def dump_json_rows(key: str, rows: Sequence[Any], head: dict[str, Any] | None = None) -> str:
    """Return a JSON object whose list has one element per line, for readable diffs."""
    opening = "".join(f"{dump_json(name)}: {dump_json(value)},\n" for name, value in (head or {}).items())
    body = ",\n".join(dump_json(row) for row in rows)
    text = "{\n" + opening + f"{dump_json(key)}: [\n{body}\n]\n}}\n"
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate becomes its JSON escape


def estimate_tokens(tool: Any) -> int:
    """Return the estimated tokens of JSON data, such as a Tool object of tools/list."""
    return -(-len(dump_json(tool).encode("utf-8", "surrogatepass")) // _BYTES_A_TOKEN)


def escape_markdown(text: str) -> str:
    """Escape text so that Markdown shows it literally, on one line, including in tables."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
