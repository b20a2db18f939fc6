from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_runtime.errors import Exit

# Characters that move the cursor, ring the bell, reorder text or are invisible, except line ends and tabs.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]"
)
_LINE_ENDS: Final = str.maketrans({"\n": r"\n", "\t": r"\t"})
_COLOR: Final = re.compile("\x1b\\[[0-9;]*m")
# Escape sequences for colors and weights. Black, backgrounds and "concealed" are missing, because they can hide text.
_PLAIN_COLOR: Final = re.compile("\x1b\\[(?:(?:0?[0-4]?|2[2-4]|3[1-79]|9[0-6])(?:;|(?=m)))*m")
# CI commands in output: `::error …::` at the start of a line (GitHub), `##[error]`, `##vso[` (Azure), `##teamcity[`.
_ORDER_TO_CI: Final = re.compile(
    r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*):(?=:[^\n]*::)|#(?=#(?:\[|vso\[|teamcity\[))", re.MULTILINE
)
# Invisible characters that models can read and that no script needs. Both ends of a range are included.
_NEVER: Final = (
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),
    (0x180E, 0x180E),
    (0x200B, 0x200B),  # zero width space
    (0x202A, 0x202E),  # bidirectional embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidirectional isolates
    (0x3164, 0x3164),
    (0xFEFF, 0xFEFF),  # zero width no-break space
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),  # tags and supplementary variation selectors; they can encode whole hidden sentences
)
# Persian, Hindi, Mongolian and emoji need single joiners and variation selectors, but never between ASCII letters.
# Texts also need soft hyphens and direction marks, but never many in a row.
_JOINERS: Final = "\u034f\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f"
_MARKS: Final = f"\xad\u061c\u200e\u200f{_JOINERS}"
_EMOJI: Final = "\ufe0f\u200d"  # variation selector 16 and zero width joiner; emoji contain no other pair of joiners
HIDDEN: Final = re.compile(
    f"[\x00-\x08\x0b\x0c\x0e-\x1f{''.join(f'{chr(low)}-{chr(high)}' for low, high in _NEVER)}]"
    f"|[{_MARKS}]{{4,}}|[{_JOINERS}]{{3,}}|(?!{_EMOJI})[{_JOINERS}]{{2}}|(?<=[ -~])[{_JOINERS}](?=[ -~])"
)
"""Characters that a model reads but a person does not see."""
INVISIBLE: Final = re.compile(f"{HIDDEN.pattern}|[\x7f-\x9f]")
"""`HIDDEN`, DEL, and the control characters beyond ASCII."""
_LONGEST_TEXT: Final = 100_000  # maximum characters of a text to search
_ESCAPED: Final = re.compile(f"{_CONTROL.pattern}|{HIDDEN.pattern}")
_RARE: Final = re.compile("[^\n -~]")
_PERHAPS: Final = re.compile(
    f"{_CONTROL.pattern[:-1]}{''.join(f'{chr(low)}-{chr(high)}' for low, high in _NEVER)}{_JOINERS}]"
)
_GAP: Final = 2
_WORD: Final = 20  # columns; longer words may be split
_UNITS: Final = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def iterate_json_strings(value: Any) -> Iterator[str]:
    """Yield all strings and member names of a JSON value. Long texts are truncated for searches."""
    todo = [value]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            yield item[:_LONGEST_TEXT]
        elif isinstance(item, Mapping):
            todo += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            todo += item


def printable(text: str, *, color: bool = False) -> str:
    r"""Return the text with control characters, invisible characters and CI commands escaped (`\x1b`).

    Color codes are kept if `color` is True, else removed.
    """
    text = text.replace("\r\n", "\n")
    if color:
        parts, codes = _PLAIN_COLOR.split(text), [*_PLAIN_COLOR.findall(text), ""]
        text = "".join(escape_invisible(part) + code for part, code in zip(parts, codes, strict=True))
    else:
        text = escape_invisible(_COLOR.sub("", text))
    return _ORDER_TO_CI.sub(lambda found: f"{found[1] or ''}\\x{ord(found[0][-1]):02x}", text)


def printable_line(text: str) -> str:
    """Return printable text on one line, with line ends and tabs escaped."""
    return printable(text.translate(_LINE_ENDS))


def escape_invisible(text: str, escape: Callable[[str], str] | None = None) -> str:
    """Escape cursor controls, bidirectional characters and invisible characters, but not line ends and tabs.

    `escape` converts one character; the default is Python's escape sequence.
    """
    if not _PERHAPS.search("".join(_RARE.findall(text))):  # fast path: the full pattern is a hundred times slower
        return text
    return _ESCAPED.sub(lambda found: "".join(map(escape or _escape, found[0])), text.replace("\r\n", "\n"))


def join_lines(text: str) -> str:
    """Replace each line end and the spaces around it with one space."""
    lines = text.splitlines()
    return text if lines == [text] else " ".join(filter(None, map(str.strip, lines)))


def printable_json(text: str) -> str:
    r"""Return equivalent JSON, safe to display: characters that `printable` escapes are written as `\u001b`."""
    text = _CONTROL.sub(
        lambda found: f"\\u{ord(found[0]):04x}" if found[0].isascii() else json.dumps(found[0])[1:-1], text
    )
    return re.sub(r"#(?=#(?:\[|vso\[|teamcity\[))", r"\\u0023", text)


def terminal_width(text: str) -> int:
    """Return the terminal width of a text in columns.

    East Asian wide characters count as two columns. Combining characters and color codes count as zero.
    """
    text = _COLOR.sub("", text)
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def truncate(text: str, width: int) -> str:
    """Return the text in at most `width` columns; a longer text ends with `…`."""
    if terminal_width(text) <= width:
        return text
    kept, left = "", width - 1
    for character in text:
        left -= terminal_width(character)
        if left < 0:
            break
        kept += character
    return f"{kept.rstrip()}…" if width > 0 else ""


def wrap(text: str, width: int) -> list[str]:
    """Return the text in lines of at most `width` columns, broken between words if possible."""
    width, lines = max(width, 2), [""]
    for word in text.split():
        if lines[-1] and terminal_width(lines[-1]) + 1 + terminal_width(word) <= width:
            lines[-1] += f" {word}"
            continue
        if lines[-1]:
            lines.append("")
        for character in word:
            if terminal_width(lines[-1]) + terminal_width(character) > width:
                lines.append("")
            lines[-1] += character
    return lines


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def table_lines(rows: Sequence[Sequence[str]], width: int | None = None) -> list[list[str]]:
    """Return the lines of each table row, with cells aligned in columns. All rows must have the same number of cells.

    If the table is wider than `width`, the widest columns shrink first, and their cells wrap. If `width` is None, each
    row is a single line of any length.
    """
    if not rows:
        return []
    widths = [max(map(terminal_width, cells)) for cells in zip(*rows, strict=True)]
    if width is None or sum(widths) + _GAP * (len(widths) - 1) <= width:
        return [[_line(row, widths)] for row in rows]
    space = width - _GAP * (len(widths) - 1)
    words = [
        max(min(_WORD, terminal_width(word)) for cell in cells for word in (cell.split() or [""]))
        for cells in zip(*rows, strict=True)
    ]
    widths = _narrow(_narrow(widths, words, space), [1] * len(widths), space)
    return [_wrap_row(row, widths) for row in rows]


def _narrow(widths: Sequence[int], least: Sequence[int], space: int) -> list[int]:
    """Narrow the widest table columns, one character at a time, until the widths fit `space` or reach `least`."""
    found = list(widths)
    while sum(found) > space:
        free = [index for index, width in enumerate(found) if width > least[index]]
        if not free:
            break
        found[max(free, key=lambda index: found[index])] -= 1
    return found


def _wrap_row(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    cells = [wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    height = max(map(len, cells))
    return [_line([cell[i] if i < len(cell) else "" for cell in cells], widths) for i in range(height)]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return (
        (" " * _GAP)
        .join(cell + " " * (width - terminal_width(cell)) for cell, width in zip(cells, widths, strict=True))
        .rstrip()
    )


def format_duration(seconds: float) -> str:
    """Return a duration in its two largest units: `2 d 3 h`, `5 min`, `0 s`."""
    left, parts = int(max(0.0, seconds)), []
    for size, unit in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def escape_markdown(text: str) -> str:
    """Return untrusted text on one line, with all Markdown and HTML escaped."""
    plain = re.sub(r"\s+", " ", text)[:300].replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]|!@#~])", r"\\\1", plain)


def pluralize(number: int, noun: str) -> str:
    """Return a number with its noun: `1 server`, `2 servers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


MAX_REASON_LENGTH: Final = 500  # maximum number of characters of a reason
_BLANK_BRAILLE: Final = "\u2800"  # Unicode classifies this blank character as a symbol


class InvalidReasonError(ConfigError):
    """Error for a decision whose reason is invalid."""

    exit_code = Exit.USAGE


def normalize_reason(text: str) -> str:
    """Return a reason as a single line, for a record.

    Raises:
        InvalidReasonError: the reason has more than `MAX_REASON_LENGTH` characters, or no visible character.
    """
    if len(line := join_lines(text)) > MAX_REASON_LENGTH:
        raise InvalidReasonError(
            f"the reason has {len(line):,} characters, but must have at most {MAX_REASON_LENGTH}",
            hint="shorten the reason",
        )
    if line.strip() and not _is_seen(line):
        raise InvalidReasonError(
            "the reason contains no visible characters", hint="write the reason in visible characters"
        )
    return line


def _is_seen(text: str) -> bool:
    """Return True if the text has a letter, digit or visible symbol."""
    seen = escape_invisible(text, lambda _: "").replace(_BLANK_BRAILLE, "")
    return any(unicodedata.category(one)[0] in "LNPS" for one in seen)
