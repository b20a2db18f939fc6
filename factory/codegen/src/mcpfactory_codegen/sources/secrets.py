"""What has the form of a secret within a text, or stands under the name of one, is hidden. Pure."""

from __future__ import annotations

import re
from typing import Final

from mcpfactory_codegen.credentials.names import is_secret

__all__ = ["REDACTED", "redacted", "without_user"]

REDACTED: Final = "REDACTED"
_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")


def without_user(url: str) -> str:
    """Return a URL without the user and password in it."""
    return _USER.sub("", url)


_SENT: Final = r"((?:Bearer|Basic|Token|Digest)[ \t]+)"
_TOKEN: Final = re.compile(
    r"(?<![\w-])(?:eyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?"
    r"|(?:(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abps])[-_]|(?-i:AKIA|ASIA|AIza)|ya29\.)(?=[\w.-]*\d)[\w.-]{12,})"
    rf"|(?<![\w-]){_SENT}(?=[^\s\"'\\]*\d)[^\s\"'\\,;{{}}]{{8,}}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY.*",
    re.IGNORECASE | re.DOTALL,
)
_NAME: Final = re.compile(r"(?<![\w.-])([A-Za-z][\w.-]{0,60})(\\{0,9}[\"']?\s{0,3}[:=]\s{0,3}\\{0,9}[\"']?)")
"""A name before its value in a text: of a query, a form, a header, a cookie, or of JSON that is a text itself."""
_VALUE: Final = re.compile(rf"{_SENT}?([^\s\"'\\&;,<>(){{}}\[\]]+)", re.IGNORECASE)
_LITERAL: Final = re.compile(r"-?\d[\d.eE+-]*|true|false|null")


def redacted(written: str, *, pairs: bool = True) -> str:
    """Return a text with `REDACTED` in place of the tokens in it, and of what stands under the name of a credential.

    JSON stays JSON: a bare number becomes 0. Without `pairs` only what has the form of a token is hidden, as in prose.
    """
    written = _TOKEN.sub(lambda match: f"{match[1] or ''}{REDACTED}", written)
    if not pairs:
        return written
    done: list[str] = []
    end = 0
    for match in _NAME.finditer(written):
        if match.start() < end or not is_secret(match[1]):
            continue
        value = _VALUE.match(written, match.end())
        if value is None:
            continue
        bare = ":" in match[2] and not match[2].endswith(("'", '"')) and _LITERAL.fullmatch(value[0])
        shown = ("0" if value[0][-1].isdigit() else value[0]) if bare else f"{value[1] or ''}{REDACTED}"
        done += [written[end : match.end()], shown]
        end = value.end()
    return "".join([*done, written[end:]])
