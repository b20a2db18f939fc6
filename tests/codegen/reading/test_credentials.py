"""Parameters that are credentials: which ones are, and what they make of an operation's security."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.credential_parameters import convert_credential_parameters
from mcpfactory_codegen.curation import CredentialOptions
from mcpfactory_codegen.ir import Api
from mcpfactory_codegen.naming import name_api
from tests.codegen.reading.support import Reader, checked
from tests.subtest_table import parametrize_subtests

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "app": {"type": "apiKey", "in": "query", "name": "appcode"},
    "second": {"type": "apiKey", "in": "query", "name": "appcode"},
}


def parameter(where: str, name: str, said: str = "", *, required: bool = False, **schema: Any) -> dict[str, Any]:
    return {
        "in": where,
        "name": name,
        "description": said,
        "required": required,
        "schema": {"type": "string", **schema},
    }


def bound(
    reader: Reader,
    *parameters: dict[str, Any],
    security: Any = None,
    path: str = "/things",
    others: int = 0,
    everywhere: bool = False,
    options: CredentialOptions | None = None,
) -> Api:
    """An API whose first operation has the parameters; `others` follow, which have them only when they are `everywhere`."""
    operation: dict[str, Any] = {"parameters": list(parameters), "responses": {}}
    operation |= {} if security is None else {"security": security}
    more = {f"/other{number}": {"get": operation if everywhere else {"responses": {}}} for number in range(others)}
    api = reader.parts(paths={path: {"get": operation}, **more}, components={"securitySchemes": SCHEMES}, security=[])
    return checked(convert_credential_parameters(api, options or CredentialOptions()))


GOOGLE = "API key. Your API key identifies your project. Required unless you provide an OAuth 2.0 token."


@parametrize_subtests(
    "where, name, said",
    [
        ("query", "api_key", ""),
        ("query", "apikey", ""),
        ("header", "X-Api-Key", ""),
        ("header", "xi-api-key", "Your key"),
        ("header", "Ocp-Apim-Subscription-Key", ""),
        ("query", "subscription-key", ""),
        ("query", "access_token", ""),
        ("header", "X-Auth-Token", ""),
        ("query", "key", GOOGLE),
        ("query", "key", "<a>Generate your application key</a>"),
        ("query", "token", "Getting a token from a user"),
        ("header", "token", "Authentication token. Requires scope: `read`"),
        ("query", "appid", "Your unique API key"),
        ("query", "auth", "The authentication token"),
        ("header", "Authorization", ""),
        ("query", "appcode", ""),  # a scheme of the document
    ],
)
def test_a_parameter_that_is_a_credential_is_no_argument(reader: Reader, where: str, name: str, said: str) -> None:
    api = bound(reader, parameter(where, name, said), parameter("query", "limit"))
    assert [one.name for one in api.operations[0].parameters] == ["limit"]
    (first, nothing) = api.operations[0].security
    scheme = {one.name: one for one in api.security_schemes}[first[0]]
    assert (scheme.credential_location, nothing) == ((where, name.lower() if where == "header" else name), ())
    assert [one.code for one in api.problems] == ["parameter-credential"]


@parametrize_subtests(
    "given, path",
    [
        (parameter("query", "key", "The key of the property being updated"), "/things"),
        (parameter("query", "key", "A valid key for a locked thing"), "/things"),
        (parameter("query", "key"), "/things"),
        (parameter("path", "key", "API key", required=True), "/things/{key}"),
        (parameter("query", "token", "Pagination token. If empty, the list starts at the first product."), "/things"),
        (parameter("query", "token", "The token to verify"), "/things"),
        (parameter("query", "pageToken", "Access token of the page"), "/things"),
        (parameter("query", "access_token", "The token"), "/oauth/tokeninfo"),
        (parameter("query", "app_key", "app key to deactivate"), "/things"),
        (parameter("query", "token_ids", "API tokens"), "/things"),
        (parameter("query", "keyword"), "/things"),
        (parameter("query", "app_id", "The app's id"), "/things"),
        (parameter("header", "Idempotency-Key", "Your key"), "/things"),
        (parameter("query", "api_key", enum=["a", "b"]), "/things"),
        (parameter("query", "api_key_id", "If set, records where the field equals this"), "/things"),
    ],
)
def test_data_stays_an_argument(reader: Reader, given: dict[str, Any], path: str) -> None:
    api = bound(reader, given, path=path)
    assert [one.name for one in api.operations[0].parameters] == [given["name"]]
    assert (api.operations[0].security, api.problems) == ((), ())


@parametrize_subtests(
    "given, everywhere, is_credential",
    [
        (parameter("query", "key"), True, True),
        (parameter("query", "key"), False, False),
        (parameter("query", "key", "the name of the property"), True, False),
        (parameter("header", "X-Server-Token", "The token associated with the server"), True, True),
        (parameter("header", "X-Server-Token", "The token associated with the server"), False, False),
        (parameter("header", "X-Idempotency-Key"), True, False),
    ],
)
def test_what_nearly_every_operation_has_needs_no_words(
    reader: Reader, given: dict[str, Any], everywhere: bool, is_credential: bool
) -> None:
    api = bound(reader, given, others=6, everywhere=everywhere)
    assert (api.operations[0].parameters == ()) is is_credential


@parametrize_subtests("given, security, expected", [
        ([parameter("query", "api_key", required=True)], None, (("api_key",),)),
        ([parameter("query", "api_key")], None, (("api_key",), ())),
        ([parameter("query", "api_key", required=True)], [{"basic": []}], (("basic", "api_key"),)),
        ([parameter("query", "api_key")], [{"basic": []}], (("basic", "api_key"), ("basic",))),
        ([parameter("query", "key", GOOGLE)], [{"bearer": []}], (("bearer", "key"), ("bearer",), ("key",))),
        ([parameter("query", "access_token"), parameter("query", "oauth_token")], [{"bearer": []}], (("bearer",),)),
        ([parameter("header", "token", "Authentication token. Requires scope", required=True)], [{"bearer": []}], (("bearer",),)),
        ([parameter("header", "Authorization", "Bearer …", required=True)], [{"bearer": []}], (("bearer",),)),
        ([parameter("header", "Authorization", required=True)], [{"app": []}], (("app", "bearer"), ("app",))),
        ([parameter("query", "appcode", required=True)], [{"app": []}, {"basic": []}], (("app",), ("basic", "app"))),
        ([parameter("query", "appcode", required=True)], [{"second": []}], (("second",),)),
        ([parameter("header", "app_id", required=True), parameter("header", "app_key", required=True)], None, (("app_id", "app_key"),)),
        ([parameter("query", "api_key"), parameter("query", "apitoken")], None, (("api_key", "apitoken"), ("api_key",), ("apitoken",), ())),
    ])  # fmt: skip
def test_credentials_of_parameters_join_the_security(
    reader: Reader, given: list[dict[str, Any]], security: Any, expected: Any
) -> None:
    (operation,) = bound(reader, *given, security=security).operations
    assert (operation.parameters, operation.security) == ((), expected)


@pytest.mark.parametrize(
    ("said", "kind"), [("Bearer {token}", "bearer"), ("HTTP Basic authorization", "basic"), ("Your ticket", "apiKey")]
)
def test_an_authorization_header_without_a_scheme_becomes_one(reader: Reader, said: str, kind: str) -> None:
    api = reader.parts(paths={"/a": {"get": {"parameters": [parameter("header", "Authorization", said)]}}})
    (scheme,) = convert_credential_parameters(api).security_schemes
    assert (scheme.kind, scheme.credential_location) == (kind, ("header", "authorization"))


def test_a_person_decides_before_all_rules(reader: Reader) -> None:
    given = parameter("query", "api_key"), parameter("query", "WSKey"), parameter("query", "limit")
    options = CredentialOptions(parameters=("wskey",), arguments=("api_key",))
    (operation,) = bound(reader, *given, options=options).operations
    assert [one.name for one in operation.parameters] == ["api_key", "limit"]
    assert operation.security == (("WSKey",), ())


def test_the_parts_of_an_aws_signature_are_no_arguments(reader: Reader) -> None:
    names = ["X-Amz-Date", "X-Amz-Signature", "X-Amz-SignedHeaders", "X-Amz-Security-Token", "X-Amz-Target"]
    hmac = {"type": "apiKey", "in": "header", "name": "Authorization", "x-amazon-apigateway-authtype": "awsSigv4"}
    api = reader.parts(
        info={"title": "Mail", "version": "1", "x-serviceName": "sesv2", "x-aws-signingName": "ses"},
        paths={"/a": {"post": {"parameters": [parameter("header", name) for name in names], "responses": {}}}},
        components={"securitySchemes": {"hmac": hmac}},
        security=[{"hmac": []}],
    )
    bound = convert_credential_parameters(api)
    (operation,), (scheme,) = bound.operations, bound.security_schemes
    assert [one.name for one in operation.parameters] == ["X-Amz-Target"]
    assert (scheme.kind, scheme.service, operation.security) == ("awsSigV4", "ses", (("hmac",),))
    assert name_api(bound, server="mail").variables["hmac"] == tuple(
        f"MCPF_MAIL_{part}" for part in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION")
    )


def test_schemes_of_google_accept_the_key_of_a_service_account(reader: Reader) -> None:
    urls = {"authorizationUrl": "https://accounts.google.com/o/oauth2/auth", "tokenUrl": "https://accounts.google.com/o/oauth2/token"}  # fmt: skip
    schemes = {
        "Oauth2": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": urls["authorizationUrl"]}}},
        "Oauth2c": {"type": "oauth2", "flows": {"authorizationCode": urls}},
    }
    api = reader.parts(
        paths={"/a": {"get": {"security": [{"Oauth2": ["s"], "Oauth2c": ["s"]}]}}},
        components={"securitySchemes": schemes},
    )
    bound = convert_credential_parameters(api)
    (scheme,) = bound.security_schemes
    assert [flow.grant for flow in scheme.flows] == ["authorizationCode", "serviceAccount"]
    assert convert_credential_parameters(bound).security_schemes == bound.security_schemes
    parts = ("TOKEN", "CLIENT_ID", "CLIENT_SECRET", "REFRESH_TOKEN", "SERVICE_ACCOUNT")
    assert name_api(bound, server="cal").variables == {"Oauth2": tuple(f"MCPF_CAL_{part}" for part in parts)}
