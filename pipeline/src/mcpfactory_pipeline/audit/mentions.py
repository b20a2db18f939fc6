"""Secrets in clear text: where one stands, of which kind and how long it is. The value itself is kept for masking only, and never shown."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from mcpfactory_codegen.credentials.names import is_secret

__all__ = [
    "Place",
    "SecretMention",
    "in_arguments",
    "in_headers",
    "in_texts",
    "in_url",
    "in_variables",
    "is_credential_name",
    "is_plain",
    "is_reference",
    "is_token",
    "shown_url",
    "without_tokens",
]

Place = Literal["environment", "headers", "arguments", "url", "settings"]
# Forms of tokens that their issuers have made recognisable.
_SHAPES: Final = {
    "token of GitHub": r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}",
    "token of GitLab": r"gl(?:pat|dt|rt|ptt)-[\w-]{16,}",
    "key of Anthropic": r"sk-ant-[\w-]{16,}",
    "key of OpenAI": r"sk-(?:proj-|svcacct-|admin-|or-v1-)?(?=[\w-]{0,200}\d)[\w-]{20,}",
    "key id of AWS": r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    "key of Google": r"AIza[\w-]{35}",
    "token of Google": r"ya29\.[\w-]{20,}",
    "token of Slack": r"xox[abeprs]-[\w-]{10,}|xapp-[\w-]{10,}",
    "key of Stripe": r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    "token of npm": r"npm_[A-Za-z0-9]{30,}",
    "token of PyPI": r"pypi-[\w-]{50,}",
    "token of Hugging Face": r"hf_[A-Za-z0-9]{30,}",
    "token of Notion": r"ntn_[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,}",
    "key of Linear": r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}",
    "key of SendGrid": r"SG\.[\w-]{16,}\.[\w-]{16,}",
    "token of Figma": r"figd_[\w-]{20,}",
    "key of Tavily": r"tvly-[\w-]{16,}",
    "key of Firecrawl": r"fc-[0-9a-f]{32}",
    "token of Supabase": r"sbp_[0-9a-f]{40}",
    "token of Airtable": r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}",
    "key of Postman": r"PMAK-[0-9a-f-]{40,}",
    "token of a Telegram bot": r"\d{8,10}:AA[\w-]{30,}",
    # With what it is glued to, so that a text of many beginnings is not read to its end from each of them.
    "JSON Web Token": r"(?<![\w-])(?=[\w-]{11,}+\.[\w-]{8,}+\.)[\w-]*?eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",
}
# Forms that are parts of words, too, or of other texts that nobody chose, so that they begin where a word does; others begin anywhere.
_WORDLIKE: Final = frozenset(
    {
        "key of OpenAI",
        "key id of AWS",
        "key of Firecrawl",
        "token of Airtable",
        "token of a Telegram bot",
        "key of SendGrid",
    }
)
_FORMS: Final = {
    **{
        kind: re.compile(rf"{'(?<![A-Za-z0-9])' if kind in _WORDLIKE else ''}(?:{shape})(?![A-Za-z0-9])")
        for kind, shape in _SHAPES.items()
    },
    "private key": re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"),
}
_LONG: Final = re.compile(r"[\w.:-]{15}|-----BEGIN ")  # what no form is without
_REFERENCE: Final = re.compile(
    r"\$\{\{[^}]*\}\}|\$\{[^}]*\}|\{env:[^}]*\}|\$[A-Za-z_]\w*|%\w+%|(?:op|vault|keychain|keyring|secret|file|ssm)://\S+|\{\{[^}]*\}\}"
)
_PLACEHOLDER: Final = re.compile(
    r"<[^>]*>|\[[^\]]*\]|\{[^}]*\}|([\w*.])\1{7,}|\.{3}|…|\b(your|my|insert|enter|replace|put|paste|add|change|fill)[\W_]*"
    r"(?:[a-z]+[\W_]*){0,4}(key|token|secret|password|id|here|me|url|value|credentials?)\b|placeholder|change_?me|redacted|dummy"
    r"|\bexample\b|EXAMPLE|to-?be-?filled|x{4,}|\*{3,}",
    re.IGNORECASE,
)
_PASSWORD: Final = re.compile(r"pass(word|wd|phrase|code)?$|pwd$|(?:^|[_-])pw$", re.IGNORECASE)
_WHERE: Final = re.compile(
    r"(_|-)?(FILE|PATH|DIR|URL|URI|HOST|PORT|NAME|ID|MODE|TYPE|PREFIX|HEADER|ENV|PROVIDER|BACKEND|STORE|LIMIT|BUDGET|COUNT)$",
    re.IGNORECASE,
)
_NO_NAMES: Final = re.compile(r"tokeni[sz]|max_?tokens", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?:Bearer|Basic|Token|ApiKey|Key|Digest|Bot)\s+(?=\S)", re.IGNORECASE)
_PLAIN: Final = re.compile(r"-?[\d.,:]+|true|false|yes|no|null|none|on|off", re.IGNORECASE)
_WORDS: Final = re.compile(r"[a-z]+([ _-][a-z]+)*|[A-Z]+([ _-][A-Z]+)*|[A-Z]?[a-z]+")
_PATHS: Final = re.compile(r"(~|\.{1,2}|[A-Za-z]:)?[/\\].*|https?://[^@?]*")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]{0,63}://[^\s'\"<>]+", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PART: Final = re.compile(r"[A-Za-z0-9_=+~]{18,}")
# Names of options. Behind one hyphen a name has letters only, as anything else may be a value that is glued to a letter.
_OPTION: Final = re.compile(r"(?:--|-(?=[A-Za-z0-9]\Z|[A-Za-z]+(?:[_-][A-Za-z]+)*\Z))([A-Za-z0-9][A-Za-z0-9_.-]{0,60})")
_NAME: Final = re.compile(r"[\w.:/\[\]-][\w.:/\[\] -]{0,60}")
_PAIR: Final = re.compile(r"-{0,2}([A-Za-z][\w.-]{0,60})\s*[=:]\s*(?!=*\Z)(.+)", re.DOTALL | re.ASCII)
_BEHIND: Final = re.compile(
    r"--?([A-Za-z][\w.-]{0,60})[^\w.=:-]+(.+)", re.DOTALL | re.ASCII
)  # in one word: `--token VALUE`
_GLUED: Final = re.compile(r"[-/]([A-Za-z])(.+)", re.DOTALL)  # `-pVALUE`, `/pVALUE`
_SHORTEST: Final = 8
_DEEPEST: Final = 200_000  # values of a file that are searched
_BITS: Final = 3.2  # a character of a random text; words have fewer


@dataclass(frozen=True, slots=True)
class SecretMention:
    """A secret: the place, the name that it stands under, its kind and its length."""

    place: Place
    name: str
    kind: str
    length: int
    value: str = field(repr=False, compare=False)

    @property
    def words(self) -> str:
        """`API_KEY (token of GitHub, 40 characters)`."""
        return f"{self.name} ({self.kind}, {self.length} characters)"


def in_variables(environ: Mapping[str, str]) -> Iterator[SecretMention]:
    """Yield the secrets among variables of an environment."""
    return _named("environment", environ)


def in_headers(headers: Mapping[str, str]) -> Iterator[SecretMention]:
    """Yield the secrets among headers."""
    return _named("headers", headers)


def in_arguments(words: Sequence[str]) -> Iterator[SecretMention]:
    """Yield the secrets among the arguments of a command: by their form, or by the option before them."""
    for at, word in enumerate(words):
        before = _OPTION.fullmatch(words[at - 1]) if at else None
        if (own := _own_value(word)) and "://" not in word.partition("=")[0]:
            found = [
                _whole(one, *own) if word.startswith(f"-{own[0]}{own[1]}") else one for one in _under("arguments", *own)
            ]
        elif before and not word.startswith("-"):
            found = list(_under("arguments", before[1], word))
            if not found and len(before[0]) == 2 and _is_token_like(word):
                found = [_token_like(before[1], word)]
        else:
            found = list(_in_json("arguments", word)) or list(_of_form("arguments", f"argument {at + 1}", word))
        if not found and (glued := _GLUED.fullmatch(word)) and _is_token_like(glued[2]):
            found = [_token_like(glued[1], glued[2])]
        yield from found or _in_urls("arguments", f"argument {at + 1}", word)


def _own_value(word: str) -> tuple[str, str] | None:
    """Return the option or variable that a word begins with, and its value, which is all behind the name; None where it has none."""
    found = _PAIR.fullmatch(word) or _BEHIND.fullmatch(word)
    if found is None:
        return None
    if word[0] == "-" != word[1] and not _OPTION.fullmatch(word[: found.end(1)]):
        return word[1], word[2:]  # what stands before `=` belongs to the value, too
    return found[1], found[2]


def _whole(one: SecretMention, name: str, value: str) -> SecretMention:
    """Return a mention with all of the value that is glued to an option: what looks like a name in it may be none."""
    return replace(one, name=name, length=len(value), value=value)


def _token_like(name: str, value: str) -> SecretMention:
    return SecretMention("arguments", name, "value that looks like a token", len(value), value)


def in_url(url: str, place: Place = "url", name: str = "") -> Iterator[SecretMention]:
    """Yield the secrets in a URL: a password, a parameter, a part of the path, what stands behind `#`."""
    try:
        parts = urlsplit(url)
        password, query = parts.password or "", parse_qsl(parts.query)
    except ValueError:
        return
    before = f"{name}: " if name else ""
    if password and not _is_nothing(password):
        yield SecretMention(place, f"{before}password", "password in a URL", len(password), password)
    for key, value in query:
        for one in _under(place, key, value):
            yield SecretMention(place, f"{before}parameter {_name(key)}", one.kind, one.length, one.value)
    for key, value in parse_qsl(parts.fragment) or [("fragment", parts.fragment)]:
        for one in _under(place, key, value):
            yield SecretMention(place, f"{before}{_name(key)} behind #", one.kind, one.length, one.value)
    for part in parts.path.split("/"):
        if _is_random(part):
            yield SecretMention(place, f"{before}path", "part of a path that looks like a token", len(part), part)


def in_texts(data: Any) -> Iterator[SecretMention]:
    """Yield what has the form of a token anywhere in data, wherever it stands: in names, too."""
    todo: list[tuple[str, Any]] = [("", data)]
    seen: set[int] = set()
    for _ in range(_DEEPEST):
        if not todo:
            return
        name, value = todo.pop()
        if isinstance(value, str):
            yield from _of_form("settings", name, value)
        elif isinstance(value, dict | list):
            if id(value) in seen:
                continue
            seen.add(id(value))
            for key in value if isinstance(value, dict) else ():
                for one in _of_form("settings", "", str(key)):
                    yield SecretMention("settings", "a name", one.kind, one.length, one.value)
            todo += (
                [(str(key), one) for key, one in value.items()]
                if isinstance(value, dict)
                else [(name, one) for one in value]
            )


def is_token(text: str) -> bool:
    """Whether something in a text has the form of a token, or looks random."""
    return (_LONG.search(text) is not None and any(form.search(text) for form in _FORMS.values())) or _is_token_like(
        text
    )


def without_tokens(text: str) -> str:
    """Return a text with `…` for each part that has the form of a token, whatever stands before it."""
    if not _LONG.search(text):
        return text
    for kind, form in _FORMS.items():
        if kind == "private key" and (found := form.search(text)):
            text = f"{text[: found.start()]}…"  # it has no end that one could rely on
        else:
            text = form.sub(lambda found: found[0] if _is_nothing(found[0]) else "…", text)
    return text


def is_reference(value: str) -> bool:
    """Whether a value is taken from elsewhere when the server starts: a variable, an input, a store of secrets."""
    bare = _SCHEME.sub("", value.strip())
    return _REFERENCE.search(bare) is not None and not re.sub(r"[\s:;,-]", "", _REFERENCE.sub("", bare))


def shown_url(url: str) -> str:
    """Return a URL without user, query, and what of its path looks like a token or an id."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "an address that is none"
    if not host:
        return parts.scheme or "an address without a host"
    path = "/".join("…" if _is_random(part) or _UUID.fullmatch(part) else part for part in parts.path.split("/"))
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{path}"


def _named(place: Place, pairs: Mapping[str, str]) -> Iterator[SecretMention]:
    for name, value in pairs.items():
        found = list(_under(place, name, value))
        yield from found or _in_urls(place, name, value)


def _under(place: Place, name: str, value: str) -> Iterator[SecretMention]:
    """Yield the secret that a value under a name is."""
    if found := list(_in_json(place, value)):  # before all else: a placeholder has braces, too
        yield from found
        return
    if _is_nothing(value) or is_reference(value):
        return
    if found := list(_of_form(place, name, value)):
        yield from found
        return
    bare = _SCHEME.sub("", value.strip())
    scheme = _SCHEME.match(value.strip()) is not None
    if (is_credential_name(name) or scheme) and _is_value(name, bare):
        yield SecretMention(place, name, "value under the name of a credential", len(bare), bare)
        return
    pair = _PAIR.fullmatch(value)
    if pair and place == "arguments" and is_secret(pair[1]):
        yield from _under(place, pair[1], pair[2])


def _in_json(place: Place, text: str) -> Iterator[SecretMention]:
    """Yield the secrets in a text that is data: each under its name."""
    if not text.lstrip().startswith(("{", "[")):
        return
    try:
        todo = [("", json.loads(text))]
    except (ValueError, RecursionError):
        return
    while todo:
        name, value = todo.pop()
        if isinstance(value, dict):
            todo += [(str(key), one) for key, one in value.items()]
        elif isinstance(value, list):
            todo += [(name, one) for one in value]
        elif isinstance(value, str) and not value.lstrip().startswith(("{", "[")):
            for one in _under(place, name, value) if name else _of_form(place, name, value):
                yield SecretMention(place, _name(one.name), one.kind, one.length, one.value)


def _name(text: str) -> str:
    """Return as much of a text as may be a name: what stands behind a line end or a quote may be a value."""
    found = _NAME.match(text)
    return found[0].strip() if found else "a name"


def _of_form(place: Place, name: str, value: str) -> Iterator[SecretMention]:
    if not _LONG.search(value):
        return
    for kind, form in _FORMS.items():
        for found in form.finditer(value):
            if not _is_nothing(found[0]):
                whole = value[found.start() :] if kind == "private key" else found[0]
                yield SecretMention(place, name or "value", kind, len(whole), whole)
                return


def _in_urls(place: Place, name: str, value: str) -> Iterator[SecretMention]:
    for found in _URL.findall(value):
        yield from in_url(found, place, name)


def _is_nothing(value: str) -> bool:
    """Whether a value stands for one that somebody has to fill in."""
    return not value.strip() or _PLACEHOLDER.search(value) is not None


def is_credential_name(name: str) -> bool:
    """Whether a name is that of a credential, and not of where one is, or of something about one."""
    return (
        (is_secret(name) or _PASSWORD.search(name) is not None)
        and not _WHERE.search(name)
        and not _NO_NAMES.search(name)
    )


def is_plain(value: str) -> bool:
    """Whether a value is nothing but a number, a switch, a path or an address, without anything that may be a secret."""
    plain = _PLAIN.fullmatch(value) or _PATHS.fullmatch(value)
    return not value or (plain is not None and not is_token(value) and not any(_in_urls("environment", "", value)))


def _is_value(name: str, value: str) -> bool:
    """Whether a value under the name of a credential is one, and no number, word, path or address."""
    if _is_nothing(value) or is_reference(value):
        return False
    if _PASSWORD.search(name):
        return not _PATHS.fullmatch(value)
    if _PLAIN.fullmatch(value) or _PATHS.fullmatch(value) or len(value) < _SHORTEST:
        return False
    return _WORDS.fullmatch(value) is None


def _is_random(part: str) -> bool:
    """Whether a part of a path is a text that nobody chose: long, of letters and digits, with few repetitions."""
    if _UUID.fullmatch(part) or _is_nothing(part) or is_reference(part):
        return False
    return any(_looks_random(one) for one in _PART.findall(part))


def _is_token_like(text: str) -> bool:
    """Whether a text is one that nobody chose, and no hash of bytes or of a commit, as versions are written."""
    return _PART.fullmatch(text) is not None and not re.fullmatch(r"[0-9a-f]+", text) and _looks_random(text)


def _looks_random(text: str) -> bool:
    if not re.search(r"\d", text) or not re.search(r"[A-Za-z]", text):
        return False
    counts: Iterable[int] = Counter(text).values()
    return -sum(n / len(text) * math.log2(n / len(text)) for n in counts) >= _BITS
