"""Normal form of URIs, and URI templates (RFC 6570, levels 1 to 3), which return the values of their variables.

Every operator is supported. `{name*}` also matches slashes. Query variables such as `{?a,b}` may come in any order, and
may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)([^{}]+)\}")
_NORMAL: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]*")
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})")
STRAY_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
"""A percent sign that begins no percent-encoded byte."""

_DRIVE: Final = re.compile(r"[A-Za-z]:[/\\]")

# operator → (prefix of the first value, separator between values, regular expression of a value)
_RULES: Final[dict[str, tuple[str, str, str]]] = {
    "": ("", ",", r"[^/?#,]+"),
    "+": ("", ",", r".+?"),
    "#": ("#", ",", r".+?"),
    ".": (r"\.", r"\.", r"[^/?#.]+"),
    "/": ("/", "/", r"[^/?#]+"),
    ";": (";", ";", r"[^/?#;]*"),
}


def normalize_uri(uri: str) -> str:
    """Return the URI percent-encoded where RFC 3986 requires it, and only there, so that equal URIs have one form."""
    if _NORMAL.fullmatch(uri):
        return uri
    from urllib.parse import quote  # noqa: PLC0415 - only for URIs with escapes

    return _ESCAPE.sub(_normal_escape, quote(STRAY_PERCENT.sub("%25", uri), _RESERVED + "%", errors="replace"))


def _normal_escape(escape: re.Match[str]) -> str:
    character = chr(int(escape[1], 16))
    unreserved = character not in _RESERVED and _NORMAL.fullmatch(character)
    return character if unreserved else escape[0].upper()


class UriTemplate:
    """A URI template.

    Attributes:
        text: the template as written.
        names: the template's variables, in order.
        optional: query variables, which a URI may omit.
    """

    __slots__ = ("_has_fragment", "_pattern", "_segments", "names", "optional", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.optional: set[str] = set()
        self._segments: set[str] = set()  # names of variables that match exactly one path segment
        pattern, position = "", 0
        for expression in _EXPRESSION.finditer(text):
            pattern += re.escape(normalize_uri(text[position : expression.start()]))
            pattern += self._expression(expression[1], expression[2].split(","))
            position = expression.end()
        rest = text[position:]
        if "{" in rest or "}" in rest:
            raise ValueError(f"unbalanced braces in the URI template {text!r}")
        self._pattern = re.compile(pattern + re.escape(normalize_uri(rest)))
        self._has_fragment = "#" in text

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the percent-decoded values of the variables, or None if the URI does not match.

        If the template has query variables and no fragment, the URI's fragment is ignored.
        """
        uri = normalize_uri(uri)
        query: dict[str, str] = {}
        if self.optional:
            uri, mark, fragment = uri.partition("#")
            uri, _, text = uri.partition("?")
            uri += mark + fragment if self._has_fragment else ""
            query = dict(pair.partition("=")[::2] for pair in text.split("&") if pair)
            if not self.optional.issuperset(query):
                return None
        found = self._pattern.fullmatch(uri)
        if found is None:
            return None
        values = {**found.groupdict(), **query}
        return {name: _decoded(value) for name, value in values.items()}

    def unsafe(self, values: Mapping[str, str], exempt: Collection[str] = ()) -> bool:
        """Return True if a value would escape a directory when used as a path. Variables in `exempt` are not checked.

        A value is unsafe if it contains a NUL character or a segment `..`, or is an absolute path. In a variable that
        matches one segment, any slash or backslash is unsafe.
        """
        return any(_escapes(value, one=name in self._segments) for name, value in values.items() if name not in exempt)

    def _expression(self, operator: str, variables: list[str]) -> str:
        parts = []
        for variable in variables:
            name = variable.removesuffix("*")
            if not name.isidentifier():
                raise ValueError(f"{variable!r} in the URI template {self.text!r} is not a valid variable name")
            if name in self.names:
                raise ValueError(f"the URI template {self.text!r} has the variable {name!r} twice")
            self.names.append(name)
            if operator in ("?", "&"):
                self.optional.add(name)
                continue
            if not variable.endswith("*") and operator not in ("+", "#"):
                self._segments.add(name)
            value = r".+" if variable.endswith("*") else _RULES[operator][2]
            group = f"(?P<{name}>{value})"
            parts.append(f"{re.escape(name)}(?:={group})?" if operator == ";" else group)
        if not parts:
            return ""
        before, between, _ = _RULES[operator]
        return before + between.join(parts)


def _escapes(value: str, *, one: bool) -> bool:
    parts = value.replace("\\", "/").split("/")
    if "\0" in value or ".." in parts:
        return True
    return len(parts) > 1 if one else (parts[0] == "" and len(parts) > 1) or _DRIVE.match(value) is not None


def _decoded(value: str | None) -> str:
    if not value or "%" not in value:
        return value or ""
    from urllib.parse import unquote  # noqa: PLC0415 - only for escaped values

    return unquote(value)
