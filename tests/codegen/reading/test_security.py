"""OAuth and OpenID Connect schemes: the ways to a token, and what an operation asks of them."""

from __future__ import annotations

from typing import Any

from mcpfactory_codegen.openapi.security import read_flows
from mcpfactory_runtime.upstream.operation import OAuthFlow
from tests.codegen.reading.support import Reader
from tests.subtest_table import parametrize_subtests

T, A, D = "https://a.test/token", "https://a.test/authorize", "/device"


def oauth(**flows: Any) -> dict[str, Any]:
    return {"type": "oauth2", "flows": flows}


@parametrize_subtests("scheme, flows", [
        (oauth(clientCredentials={"tokenUrl": T}), (OAuthFlow("clientCredentials", T),)),
        (
            oauth(authorizationCode={"tokenUrl": T, "authorizationUrl": A, "refreshUrl": "/r"}),
            (OAuthFlow("authorizationCode", T, A, refresh_url="/r"),),
        ),
        (
            oauth(deviceAuthorization={"tokenUrl": T, "deviceAuthorizationUrl": D}),
            (OAuthFlow("deviceAuthorization", T, device_url=D),),
        ),
        ({"type": "openIdConnect", "openIdConnectUrl": " https://a.test "}, (OAuthFlow("discovery", metadata_url="https://a.test"),)),
        ({"type": "oauth2", "oauth2MetadataUrl": T}, (OAuthFlow("discovery", metadata_url=T),)),
        (oauth(implicit={"authorizationUrl": A}, password={"tokenUrl": T}), ()),
        (oauth(authorizationCode={"tokenUrl": T}, clientCredentials=7), ()),
        (oauth(clientCredentials={"tokenUrl": "https://a.test/\n"}), (OAuthFlow("clientCredentials", "https://a.test/"),)),
        (oauth(clientCredentials={"tokenUrl": "https://a.test/\nx"}), ()),
        (oauth(clientCredentials={"tokenUrl": "x" * 2001}), ()),
        ({"type": "oauth2", "flows": []}, ()),
    ])  # fmt: skip
def test_the_ways_to_a_token_are_those_that_a_server_can_go(
    scheme: dict[str, Any], flows: tuple[OAuthFlow, ...]
) -> None:
    assert read_flows(scheme) == flows


def test_an_operation_keeps_the_scopes_that_it_asks_for(reader: Reader) -> None:
    schemes = {
        "login": oauth(authorizationCode={"tokenUrl": T, "authorizationUrl": A}),
        "key": {"type": "apiKey", "in": "query", "name": "k"},
    }
    own = {"security": [{"login": ["write"], "key": ["ignored"]}, {"login": ["read"]}]}
    api = reader.parts(
        paths={"/a": {"get": own, "post": {}, "put": {"security": []}}},
        components={"securitySchemes": schemes},
        security=[{"login": ["read"]}],
    )
    assert {one.method: one.scopes for one in api.operations} == {
        "GET": (("login", ("write",)),),
        "POST": (("login", ("read",)),),
        "PUT": (),
    }


def test_swagger_2_flows_are_read_under_their_new_names(reader: Reader) -> None:
    scheme = {"type": "oauth2", "flow": "accessCode", "tokenUrl": T, "authorizationUrl": A, "scopes": {"read": "r"}}
    document = {
        "swagger": "2.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"get": {"security": [{"o": ["read"]}], "responses": {}}}},
        "securityDefinitions": {"o": scheme, "app": {**scheme, "flow": "application"}},
    }
    api = reader.text(document)
    assert [flow.grant for one in api.security_schemes for flow in one.flows] == [
        "authorizationCode",
        "clientCredentials",
    ]
    assert api.operations[0].scopes == (("o", ("read",)),)


IMPLICIT = oauth(implicit={"authorizationUrl": A})
CODE = oauth(authorizationCode={"authorizationUrl": A, "tokenUrl": T})
ELSEWHERE = oauth(implicit={"authorizationUrl": "https://b.test/authorize"})
CLIENT = oauth(clientCredentials={"tokenUrl": T})
BASIC, BEARER = {"type": "http", "scheme": "basic"}, {"type": "http", "scheme": "bearer"}
KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}
HEADER = {"type": "apiKey", "in": "header", "name": "authorization"}


@parametrize_subtests("schemes, security, alternatives, names", [
        ({"o": IMPLICIT, "c": CODE}, [{"o": ["r"], "c": ["r"]}], (("o",),), ["o oauth2"]),
        ({"o": IMPLICIT, "c": CODE}, [{"o": ["r"]}, {"c": ["r"]}], (("o",),), ["o oauth2"]),
        ({"c": CODE, "o": IMPLICIT}, [{"c": ["r"], "o": ["r"]}], (("c",),), ["c oauth2"]),
        ({"o": IMPLICIT, "p": IMPLICIT}, [{"o": [], "p": []}], (("o",),), ["o bearer"]),
        ({"o": ELSEWHERE, "c": CODE}, [{"o": []}, {"c": []}], (("o",), ("c",)), ["o bearer", "c oauth2"]),
        ({"c": CODE, "d": CLIENT}, [{"c": []}, {"d": []}], (("c",), ("d",)), ["c oauth2", "d oauth2"]),
        ({"o": IMPLICIT, "d": CLIENT}, [{"o": []}, {"d": []}], (("o",), ("d",)), ["o bearer", "d oauth2"]),
        ({"d": CLIENT, "o": IMPLICIT, "c": CODE}, [{"d": []}, {"o": []}, {"c": []}], (("d",), ("o",)), ["d oauth2", "o oauth2"]),
        ({"a": BASIC, "b": BEARER}, [{"a": [], "b": []}], (("a",), ("b",)), ["a basic", "b bearer"]),
        ({"a": BASIC, "h": HEADER}, [{"a": [], "h": []}], (("a",), ("h",)), ["a basic", "h apiKey"]),
        ({"a": BASIC, "k": KEY}, [{"a": [], "k": []}], (("a", "k"),), ["a basic", "k apiKey"]),
        ({"a": BASIC, "b": BEARER, "k": KEY}, [{"a": [], "k": [], "b": []}], (("a", "k"), ("b", "k")), ["a basic", "b bearer", "k apiKey"]),
    ])  # fmt: skip
def test_schemes_that_write_the_same_header_satisfy_each_other(
    reader: Reader, schemes: dict[str, Any], security: list[Any], alternatives: Any, names: list[str]
) -> None:
    api = reader.parts(
        paths={"/a": {"get": {"security": security, "responses": {}}}}, components={"securitySchemes": schemes}
    )
    assert api.operations[0].security == alternatives
    assert [f"{one.name} {one.kind}" for one in api.security_schemes] == names
    together = len(alternatives) > len(security)
    assert [one.code for one in api.problems if one.code == "security-shared"] == ["security-shared"] * together


def test_schemes_of_many_headers_make_no_endless_list_of_choices(reader: Reader) -> None:
    schemes = {f"s{i}": {"type": "apiKey", "in": "header", "name": f"X-{i // 2}"} for i in range(24)}
    paths = {"/a": {"get": {"security": [{name: [] for name in schemes}], "responses": {}}}}
    api = reader.parts(paths=paths, components={"securitySchemes": schemes})
    assert api.operations[0].security == (tuple(f"s{i}" for i in range(0, 24, 2)),)
