"""Detection of credentials among the parameters of an API, and conversion to security schemes. Pure.

In many documents, each operation has a parameter for an API key, or for a token that a scheme already sends. `RULES`
recognize a credential by the name, the place and the description of its parameter. The names `key` and `token` are
ambiguous. A parameter with one of these names is a credential only if the description, a scheme, or use in nearly every
operation confirms this. The user's `[credentials]` in `mcpfactory.toml` override all rules.

A required credential is added to each alternative of `security`. An optional credential adds further alternatives.

In contrast to `RULES`, `is_secret` also recognizes other private data, such as a card number or a session. Generated
servers and copies of documents contain no secrets.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, Literal

from mcpfactory_codegen.curation import CredentialOptions
from mcpfactory_codegen.ir import PROBLEM_CODES, Api, ApiOperation, ApiParameter, ApiSecurityScheme, Problem
from mcpfactory_runtime.schemas.walk import resolve_definition
from mcpfactory_runtime.upstream.operation import OAuthFlow


@dataclass(frozen=True, slots=True)
class CredentialNameRule:
    """Rule for parameters that are credentials.

    `name` is a pattern for the normalized name. `said` is a pattern for the description. If `common` is "needed",
    nearly every operation must use the parameter. If `common` is "unsaid", use in nearly every operation can replace
    the description. `token` means that a bearer or OAuth scheme may already send the credential. If `described` is
    False, the rule applies only to Postman collections.
    """

    name: str
    places: Collection[str]
    said: str = ""
    common: Literal["", "unsaid", "needed"] = ""
    token: bool = False
    described: bool = True


PLACES: Final = ("query", "header", "cookie")
_KEY_WORDS: Final = r"\b(api|app|application|developer|client|consumer|access|subscription|secret|your|license)[ _-]?key\b|\bkey\b.{0,40}\b(authenticat|authoriz)"
_BEARER_WORDS: Final = (
    r"\b(access|auth\w*|api|bearer|oauth\S*|security|jwt|session|user|your|personal)[ _-]?tokens?\b"
    r"|\btoken\b.{0,40}\b(authenticat|authoriz|from a user)|\boauth\b|\bbearer\b"
)
RULES: Final = (
    CredentialNameRule(r"\w*apikey", ("header",)),
    CredentialNameRule(r"(api|rapidapi|xapi)key", PLACES),
    CredentialNameRule(r"\w*subscriptionkey", ("header",)),
    CredentialNameRule(r"subscriptionkey", PLACES),
    CredentialNameRule(r"apitoken|apisecret|xapitoken|xapisecret", PLACES),
    CredentialNameRule(r"(x|oauth|auth|user)?(accesstoken|oauthtoken|authtoken)|oauth2token", PLACES, token=True),
    CredentialNameRule(
        r"token|xtoken|authtoken|jwt|auth|authentication|authenticationtoken",
        PLACES,
        _BEARER_WORDS,
        common="unsaid",
        token=True,
    ),
    CredentialNameRule(
        r"\w*(token|authentication|sdkkey)", ("header",), r"\b(authentication|access|api) (token|key)\b|\bsdk key\b"
    ),
    CredentialNameRule(
        r"key|appkey|applicationkey|accesskey|developerkey|devkey|userkey|secretkey|licensekey",
        PLACES,
        _KEY_WORDS,
        common="unsaid",
    ),
    CredentialNameRule(r"(?!.*idempot)\w*(key|token|secret|authentication)", ("header",), common="needed"),
    CredentialNameRule(
        r"appid", PLACES, r"\bapi[ _-]?key|\bapp(lication)?[ _-]?id\b.{0,30}\b(authenticat|key)|\byour\b.{0,20}\bkey"
    ),
    CredentialNameRule(r"clientsecret|sessionid|sig|signature", PLACES, described=False),
)
PAIRS: Final = (("appid", "appkey"), ("accesskey", "secretkey"), ("apiaccesskeyid", "apisecretaccesskey"))
"""Pairs of parameter names. The two parameters are credentials if an operation has both."""
_SECRET: Final = re.compile(
    r"(^|[_.-])(auth|authorization|authentication|credentials?|pass(word|wd|code|phrase)?|pwd|secret|token|jwt|sid|session|csrf|xsrf|nonce|otp|pin|cvv|cvc"
    r"|ssn|api[_-]?key|app[_-]?key|app[_-]?id|access[_-]?key|private[_-]?key|subscription[_-]?key|client[_-]?secret|key|appid|apikey|signature|sig|hmac|cookies?"
    r"|card[_-]?number|(credit|debit)[_-]?card|iban|saml\w*|code[_-]verifier|assertion|x[_-]amz[_-]\w+)($|[_.-])",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COMPOUND: Final = re.compile(
    r"password|passwd|secret|token|apikey|api_key|authorization|sessionid|credential|privatekey", re.IGNORECASE
)
_PUBLIC: Final = frozenset(
    {"next_page_token", "page_token", "token_type", "continuation_token", "sort_key", "primary_key"}
)


def is_secret(name: str) -> bool:
    """Return True if a header, cookie, parameter or member with this name holds a credential or another secret."""
    plain = _WORDS.sub("_", name).replace("-", "_").lower()
    if plain.endswith(tuple(_PUBLIC)):
        return False
    return _SECRET.search(plain) is not None or _COMPOUND.search(plain) is not None


@lru_cache(maxsize=4096)
def normalize_name(name: str) -> str:
    """Return the lowercase letters and digits of a name, such as `xapikey` for `X-Api-Key`."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_credential_parameter(place: str, name: str) -> bool:
    """Return True if a header, cookie or query parameter with this name authenticates the caller."""
    if place == "query":
        return any(place in rule.places and re.fullmatch(rule.name, normalize_name(name)) for rule in RULES)
    return is_secret(name)


Slot = tuple[str, str]
Alternatives = tuple[tuple[str, ...], ...]


NO_OPTIONS: Final = CredentialOptions()


_NOT: Final = re.compile(
    r"\b(page|paging|paginat\w*|next|continu\w*|cursor|sync|verif\w*|reset|invit\w*|confirm\w*|device|push|activat\w*|refresh|csrf"
    r"|idempoten\w*|previous\w*|returned (from|by|in)|to (\w+ate|revoke|check|delete|remove|introspect|logout))\b",
    re.I,
)
_ABOUT_TOKENS: Final = re.compile(
    r"token|oauth|introspect|log-?(in|out)|sign-?in|^(revoke|verify|validate|check)$", re.I
)
_SIGNATURE: Final = re.compile(r"xamz(contentsha256|date|algorithm|credential|securitytoken|signature|signedheaders)")
_INSTEAD: Final = re.compile(
    r"\b(unless|instead of|alternative(ly)?|either|not needed (if|when)|or (an?|the) oauth)\b", re.I
)
_AUTHORIZATION: Final = ("header", "authorization")
_COMMON: Final = 0.8  # minimum share of operations with a parameter that is common to the API
# minimum share of the secured operations in which a credential's parameter occurs
_RARE: Final = 0.2
_FEW: Final = 5  # minimum number of operations from which shares are computed
# maximum optional credentials in free combinations; a larger number is sent all together or not at all
_SUBSETS: Final = 2
_GOOGLE: Final = re.compile(r"https://(accounts\.google\.com|oauth2\.googleapis\.com|www\.googleapis\.com)/")


@dataclass(slots=True)
class _Binding:
    """State of the conversion: inputs, schemes, and the outcome for each parameter."""

    api: Api
    options: CredentialOptions
    shares: Mapping[Slot, float]
    schemes: dict[str, ApiSecurityScheme]
    by_slot: dict[Slot, str]
    bound: dict[Slot, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    first: dict[Slot, ApiOperation] = field(default_factory=dict)

    def note(self, slot: Slot, what: Literal["environment", "scheme"], operation: ApiOperation) -> None:
        self.bound[slot][what] += 1
        self.first.setdefault(slot, operation)


def convert_credential_parameters(api: Api, options: CredentialOptions = NO_OPTIONS) -> Api:
    """Convert parameters that are credentials to security schemes."""
    binding = _Binding(
        api,
        options,
        _shares(api.operations),
        {one.name: _with_service_account(one) for one in api.security_schemes},
        {one.credential_location: one.name for one in reversed(api.security_schemes)},
    )
    operations = tuple(_bound(one, binding) for one in api.operations)
    problems = [_problem(slot, counts, binding) for slot, counts in binding.bound.items()]
    return replace(
        api,
        operations=operations,
        security_schemes=tuple(binding.schemes.values()),
        problems=tuple(sorted((*api.problems, *problems), key=lambda one: one.level != "error")),
    )


def _shares(operations: Collection[ApiOperation]) -> Mapping[Slot, float]:
    """Return the share of operations with each parameter, or {} if the API has too few operations."""
    counts = Counter(slot for one in operations for slot in {_slot(parameter) for parameter in one.parameters})
    return {slot: count / len(operations) for slot, count in counts.items() if len(operations) >= _FEW}


def _bound(operation: ApiOperation, binding: _Binding) -> ApiOperation:
    names = {normalize_name(one.name) for one in operation.parameters}
    pairs = {name for pair in PAIRS if names.issuperset(pair) for name in pair}
    kept: list[ApiParameter] = []
    required: list[str] = []
    optional: list[str] = []
    alone: list[str] = []
    for parameter in operation.parameters:
        slot = _slot(parameter)
        if slot[0] == "header" and _SIGNATURE.fullmatch(normalize_name(slot[1])) and _signed(operation, binding):
            continue  # the runtime adds this parameter while signing the request
        rule = _rule(parameter, operation, binding, pairs)
        if rule is None:
            kept.append(parameter)
        elif _sent_already(parameter, rule, operation, binding):
            binding.note(slot, "scheme", operation)
        else:
            name = _scheme(parameter, binding)
            binding.note(slot, "environment", operation)
            # OpenAPI ignores this header parameter (3.1 §4.8.12.1)
            needed = parameter.required and slot != _AUTHORIZATION
            (required if needed else optional).append(name)
            alone += [name] if _INSTEAD.search(parameter.description) else []
    if len(kept) == len(operation.parameters):
        return operation
    security = _security(operation.security, required, optional, alone, binding)
    return replace(operation, parameters=tuple(kept), security=security)


# --- detection of credentials ---


def _slot(parameter: ApiParameter) -> Slot:
    name = parameter.name.lower() if parameter.place == "header" else parameter.name
    return parameter.place, name


def _rule(
    parameter: ApiParameter, operation: ApiOperation, binding: _Binding, pairs: Collection[str]
) -> CredentialNameRule | None:
    place, name = _slot(parameter)
    if (place, name) == _AUTHORIZATION:
        # the Authorization header is never an argument
        return CredentialNameRule("authorization", ("header",), token=True)
    wanted, unwanted = (
        {one.lower() for one in names} for names in (binding.options.parameters, binding.options.arguments)
    )
    if place not in PLACES or parameter.name.lower() in unwanted:
        return None
    plain = normalize_name(name)
    declared = (place, name) in binding.by_slot and not _NOT.search(parameter.description)
    if parameter.name.lower() in wanted or declared or plain in pairs:
        return CredentialNameRule(plain, PLACES)
    share = binding.shares.get((place, name), 0.5)
    everywhere = share >= _COMMON
    if not _plain(parameter, binding.api) or (operation.security and share < _RARE):
        return None
    literal = [part for part in operation.path.split("/") if part and "{" not in part]
    # in an operation about tokens, a token is data, not a credential
    about_tokens = bool(literal) and _ABOUT_TOKENS.search(literal[-1])
    if about_tokens and "token" in plain and not everywhere:
        return None
    said = parameter.description or _samples(parameter, "description")
    for rule in RULES:
        if rule.described and place in rule.places and re.fullmatch(rule.name, plain):
            by_text = re.search(rule.said, said, re.I) and not _NOT.search(said)
            if rule.common == "needed":
                by_text = by_text and everywhere
            if not (rule.said or rule.common) or by_text or (rule.common == "unsaid" and not said and everywhere):
                return rule
    return None


def _plain(parameter: ApiParameter, api: Api) -> bool:
    """Return True for a string without enumerated values, because a credential is never enumerated."""
    schema = resolve_definition(parameter.schema, api.schemas)
    if not isinstance(schema, dict):
        return True
    kind = schema.get("type", "string")
    return kind in ("string", ["string", "null"]) and not schema.keys() & {"enum", "const", "properties", "items"}


def _signed(operation: ApiOperation, binding: _Binding) -> bool:
    return any(
        name in binding.schemes and binding.schemes[name].kind == "awsSigV4"
        for alternative in operation.security
        for name in alternative
    )


def _sent_already(
    parameter: ApiParameter, rule: CredentialNameRule, operation: ApiOperation, binding: _Binding
) -> bool:
    """Return True if a scheme of the operation already sends this token.

    For a required parameter, the name or description must also mention OAuth, a bearer token or a scope.
    """
    if not rule.token:
        return False
    kinds = {binding.schemes[name].kind for one in operation.security for name in one if name in binding.schemes}
    if _slot(parameter) == _AUTHORIZATION:
        writing = [
            any(binding.schemes[name].credential_location == _AUTHORIZATION for name in one if name in binding.schemes)
            for one in operation.security
        ]
        return any(writing)
    certain = re.search(r"oauth|bearer|scope", f"{parameter.name} {parameter.description}", re.I)
    return bool(kinds & {"bearer", "oauth2"}) and (not parameter.required or certain is not None)


# --- conversion to security schemes ---


def _scheme(parameter: ApiParameter, binding: _Binding) -> str:
    """Return the name of the scheme that replaces the parameter, and add the scheme if it is missing."""
    slot = _slot(parameter)
    if slot in binding.by_slot:
        return binding.by_slot[slot]
    name = parameter.name
    while name in binding.schemes:
        name = f"{name}_{parameter.place}"
    binding.schemes[name] = _made(name, parameter)
    binding.by_slot[slot] = name
    return name


def _made(name: str, parameter: ApiParameter) -> ApiSecurityScheme:
    said = f"{parameter.description} {parameter.example or ''} "
    said += _samples(parameter, "description", "example", "examples", "default")
    common: dict[str, Any] = {"description": parameter.description}
    place = parameter.place
    assert place in ("query", "header", "cookie")
    if _slot(parameter) == _AUTHORIZATION:
        for kind, sign in (("basic", r"\bbasic\b"), ("bearer", r"\bbearer\b|\bjwt\b|\boauth")):
            if re.search(sign, said, re.I):
                return ApiSecurityScheme(name, "basic" if kind == "basic" else "bearer", **common)
        note = "the whole value of the header, such as `Bearer …`"
        return ApiSecurityScheme(name, "apiKey", place, parameter.name, **common, note=note)
    return ApiSecurityScheme(name, "apiKey", place, parameter.name, **common)


def _samples(parameter: ApiParameter, *keywords: str) -> str:
    schema: Mapping[str, Any] = parameter.schema if isinstance(parameter.schema, dict) else {}
    return " ".join(str(schema[key]) for key in keywords if key in schema)


def _security(
    base: Alternatives, required: list[str], optional: list[str], alone: list[str], binding: _Binding
) -> Alternatives:
    """Add the credentials of parameters to the alternatives, the most complete alternatives first."""
    subsets: Iterable[tuple[str, ...]] = (tuple(optional), ())
    if len(optional) <= _SUBSETS:
        subsets = [one for size in range(len(optional), -1, -1) for one in combinations(optional, size)]
    found: dict[frozenset[str], tuple[str, ...]] = {}
    for subset in subsets:
        for alternative in base or ((),):
            joined = _together((*alternative, *required, *subset), binding)
            found.setdefault(frozenset(joined), joined)
    for name in alone:
        joined = _together((*required, name), binding)
        found.setdefault(frozenset(joined), joined)
    return () if set(found) == {frozenset()} else tuple(found.values())


def _together(names: Iterable[str], binding: _Binding) -> tuple[str, ...]:
    """Return the names, except schemes that write to the same place as an earlier scheme."""
    kept: dict[object, str] = {}
    for name in names:
        kept.setdefault(binding.schemes[name].credential_location if name in binding.schemes else name, name)
    return tuple(kept.values())


def _with_service_account(scheme: ApiSecurityScheme) -> ApiSecurityScheme:
    """Add a service account flow for programs (RFC 7523) to a Google scheme."""
    urls = " ".join(f"{one.token_url} {one.authorization_url}" for one in scheme.flows)
    if scheme.kind != "oauth2" or not _GOOGLE.search(urls):
        return scheme
    account = OAuthFlow("serviceAccount", "https://oauth2.googleapis.com/token")
    if account in scheme.flows:
        return scheme
    return replace(scheme, flows=(*scheme.flows, account), note=f"{scheme.note} or the key of a service account"[:200])


_SAID: Final = {
    "environment": "is a credential: it is read from the environment and is not an argument",
    "scheme": "is already sent by a security scheme; left out",
}


def _problem(slot: Slot, counts: Counter[str], binding: _Binding) -> Problem:
    place, name = slot
    what, total = counts.most_common(1)[0][0], counts.total()
    of = "one operation" if total == 1 else f"{total} operations"
    hint = ""
    if slot != _AUTHORIZATION:
        hint = f'if it is data, write arguments = ["{name}"] below [credentials] in mcpfactory.toml'
    message = f"the {place} parameter {name[:80]!r} of {of} {_SAID[what]}"
    code = "parameter-credential"
    return Problem(PROBLEM_CODES[code], code, binding.first[slot].pointer, message, hint)
