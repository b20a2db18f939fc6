"""A recording of HTTP traffic without its credentials: what is kept of a HAR file, and what everything else is made of.

Hidden is what stands under the name of a credential or has the form of a token, in headers, URLs, forms, JSON and texts in it; and
wherever else in the recording the same value stands.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote

from mcpfactory_codegen.credentials.names import is_secret
from mcpfactory_codegen.inputs import FORMS
from mcpfactory_codegen.ir import essence, is_json
from mcpfactory_codegen.sources.secrets import REDACTED, redacted, without_user
from mcpfactory_codegen.sources.translation import entries, json_value, table, text

__all__ = ["without_credentials"]

_DEPTH: Final = 60
_TELLING: Final = re.compile(r"(?=[^\s/]*\d)(?=[^\s/]*[A-Za-z])[^\s/]{8,}")
"""Hidden values that are looked for elsewhere, too; others are words, numbers or addresses, which stand elsewhere for themselves."""
_MOST: Final = 2_000
_FORM: Final = "application/x-www-form-urlencoded"
_COOKIES: Final = frozenset({"cookie", "set-cookie"})
_TOKENS: Final = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]+\.[\w-]*|(Bearer|Basic|Token|Digest)\s+\S+|(sk|pk|rk|ghp|gho|ghs|glpat|xox[abps]|AKIA|ASIA|AIza|ya29)[-_.]?[\w.-]{12,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY",
    re.IGNORECASE,
)


def without_credentials(data: dict[str, Any]) -> dict[str, Any]:
    """Return a recording without cookies, and with REDACTED in place of credentials.

    What a browser adds for itself (cache, timings, pages, comments) goes, too, and so does the content of what is neither JSON nor a form.
    """
    log = table(data, "log")
    redaction = _Redaction()
    kept = [redaction.entry(entry) for _, entry in entries(log, "entries")]
    creator = {"name": "mcpfactory", "version": "1"}
    found: dict[str, Any] = redaction.everywhere(kept)
    return {"log": {"version": str(log.get("version", "1.2"))[:10], "creator": creator, "entries": found}}


class _Redaction:
    """Hides credentials, and remembers those that it saw."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def everywhere(self, kept: Any) -> Any:
        """Return what is kept without the values that were seen, wherever they stand in a text."""
        seen = sorted(self._seen, key=len, reverse=True)
        return _replaced(kept, re.compile("|".join(map(re.escape, seen)))) if seen else kept

    def entry(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return what is kept of a request and its answer."""
        request, response = table(entry, "request"), table(entry, "response")
        for node in (request, response):
            for _, cookie in entries(node, "cookies"):
                self._hide(text(cookie, "value"))
        status = response.get("status")
        told = [one for one in self._pairs(response, "headers") if one["name"].lower() == "content-type"]
        built: dict[str, Any] = {
            "request": {
                "method": text(request, "method"),
                "url": self._url(text(request, "url")),
                "headers": self._pairs(request, "headers"),
                "queryString": self._pairs(request, "queryString"),
            },
            "response": {"status": status if isinstance(status, int) else 0, "headers": told},
        }
        if posted := table(request, "postData"):
            kind = text(posted, "mimeType")
            built["request"]["postData"] = {"mimeType": kind} | self._body(kind, posted)
        content = table(response, "content")
        kind = text(content, "mimeType")
        plain = is_json(kind) and content.get("encoding") != "base64"
        shown = {"text": self._json(text(content, "text"))} if plain else {}
        built["response"]["content"] = {"mimeType": kind} | shown
        return built

    def _hide(self, value: str) -> str:
        for one in (value, value.partition(" ")[2]):
            if len(self._seen) < _MOST and _TELLING.fullmatch(one):
                self._seen.add(one)
        return REDACTED

    def _pairs(self, node: dict[str, Any], key: str) -> list[dict[str, str]]:
        """Return headers or parameters; cookies are left out."""
        found = []
        for _, one in entries(node, key):
            name, value = text(one, "name"), text(one, "value")
            if name.lower() in _COOKIES:
                for part in value.split(";"):
                    self._hide(part.partition("=")[2].strip())
            else:
                found.append({"name": name, "value": self._hide(value) if is_secret(name) else self._text(value)})
        return found

    def _text(self, value: str) -> str:
        if _TOKENS.match(value.strip()):
            return self._hide(value.strip())
        return redacted(self._url(value) if "://" in value else value, self._hide)

    def _body(self, kind: str, posted: dict[str, Any]) -> dict[str, Any]:
        if is_json(kind):
            return {"text": self._json(text(posted, "text"))}
        if essence(kind) not in FORMS:
            return {}
        parameters = self._pairs(posted, "params")
        if not parameters and essence(kind) == _FORM:
            pairs = parse_qsl(text(posted, "text"), keep_blank_values=True)
            parameters = self._pairs({"params": [{"name": name, "value": value} for name, value in pairs]}, "params")
        files = {text(one, "name") for _, one in entries(posted, "params") if text(one, "fileName")}
        file = {"fileName": "file", "value": ""}
        return {"params": [one | (file if one["name"] in files else {}) for one in parameters]}

    def _json(self, written: str) -> str:
        value = json_value(written)
        return "" if value is None else json.dumps(self._value(value, 0), ensure_ascii=False)

    def _value(self, value: Any, depth: int) -> Any:
        if depth > _DEPTH:
            return None
        if isinstance(value, dict):
            named = any(is_secret(text(value, key)) for key in ("name", "key"))  # a list of names and values
            return {
                name: self._hidden(one)
                if is_secret(name) or (named and name == "value")
                else self._value(one, depth + 1)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._value(one, depth + 1) for one in value]
        return self._text(value) if isinstance(value, str) else value

    def _hidden(self, value: Any) -> Any:
        """Return what stands in place of a credential; its type stays, as far as it is no text."""
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return 0
        return self._hide(value) if isinstance(value, str) else REDACTED

    def _url(self, url: str) -> str:
        """Return a URL without user, fragment and the values of credentials."""
        before, _, query = without_user(url.partition("#")[0]).partition("?")
        segments = [self._segment(one) for one in before.split("/")]
        pairs = [pair.partition("=") for pair in query.split("&") if pair]
        shown = "&".join(f"{name}{sign}{self._query(unquote(name), value)}" for name, sign, value in pairs)
        return "/".join(segments) + (f"?{shown}" if shown else "")

    def _segment(self, segment: str) -> str:
        """Return a segment of a path; what follows a semicolon are names and values (`;jsessionid=…`)."""
        if _TOKENS.match(unquote(segment)):
            return REDACTED
        plain, sign, parameters = segment.partition(";")
        return f"{plain}{sign}{redacted(parameters, self._hide)}"

    def _query(self, name: str, value: str) -> str:
        """Return the value of a query, as it is written in the URL; it may be a URL with credentials itself."""
        plain = unquote(value)
        if is_secret(name):
            self._hide(plain)
            return self._hide(value)
        if _TOKENS.match(plain):
            return self._hide(plain)
        shown = self._text(plain)
        return value if shown == plain else quote(shown, safe="")


def _replaced(node: Any, seen: re.Pattern[str]) -> Any:
    if isinstance(node, str):
        return seen.sub(REDACTED, node)
    if isinstance(node, list):
        return [_replaced(one, seen) for one in node]
    return {key: _replaced(one, seen) for key, one in node.items()} if isinstance(node, dict) else node
