"""Matching of URIs against URI templates (RFC 6570, levels 1 to 3), to get the values of the variables.

Every operator is supported. `{name*}` also matches slashes. Query variables such as `{?a,b}` may come in any order, and
may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

_EXPRESSION: Final = re.compile(r"\{([+#./;?&]?)([^{}]+)\}")
_NAME: Final = re.compile(r"^[A-Za-z_]\w*\*?$")

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


class UriTemplate:
    """A URI template.

    Attributes:
        text: the template as written.
        names: the template's variables, in order.
        optional: query variables, which a URI may omit.
    """

    __slots__ = ("_pattern", "_segments", "names", "optional", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.optional: set[str] = set()
        self._segments: set[str] = set()  # names of variables that match exactly one path segment
        pattern, position = "", 0
        for expression in _EXPRESSION.finditer(text):
            pattern += re.escape(text[position : expression.start()])
            pattern += self._expression(expression[1], expression[2].split(","))
            position = expression.end()
        rest = text[position:]
        if "{" in rest or "}" in rest:
            raise ValueError(f"unbalanced braces in the URI template {text!r}")
        self._pattern = re.compile(pattern + re.escape(rest))

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the percent-decoded values of the variables, or None if the URI does not match."""
        query: dict[str, str] = {}
        if self.optional:
            uri, _, text = uri.partition("?")
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
            if not _NAME.match(variable):
                raise ValueError(f"{variable!r} in the URI template {self.text!r} is not a valid variable name")
            name = variable.rstrip("*")
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
