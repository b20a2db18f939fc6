"""OAuth and OpenID Connect schemes: the ways to a token, and what an operation asks of them."""

from __future__ import annotations

from typing import Any

import pytest

from mcpfactory_codegen.ir import ApiOAuthFlow
from mcpfactory_codegen.openapi.security import read_flows, read_scopes
from tests.codegen.reading.support import Reader

T, A, D = "https://a.test/token", "https://a.test/authorize", "/device"


def oauth(**flows: Any) -> dict[str, Any]:
    return {"type": "oauth2", "flows": flows}


@pytest.mark.parametrize(
    ("scheme", "flows"),
    [
        (oauth(clientCredentials={"tokenUrl": T}), (ApiOAuthFlow("clientCredentials", T),)),
        (
            oauth(authorizationCode={"tokenUrl": T, "authorizationUrl": A, "refreshUrl": "/r"}),
            (ApiOAuthFlow("authorizationCode", T, A, refresh_url="/r"),),
        ),
        (
            oauth(deviceAuthorization={"tokenUrl": T, "deviceAuthorizationUrl": D}),
            (ApiOAuthFlow("deviceAuthorization", T, device_url=D),),
        ),
        ({"type": "openIdConnect", "openIdConnectUrl": " https://a.test "}, (ApiOAuthFlow("discovery", metadata_url="https://a.test"),)),
        ({"type": "oauth2", "oauth2MetadataUrl": T}, (ApiOAuthFlow("discovery", metadata_url=T),)),
        (oauth(implicit={"authorizationUrl": A}, password={"tokenUrl": T}), ()),
        (oauth(authorizationCode={"tokenUrl": T}, clientCredentials=7), ()),
        (oauth(clientCredentials={"tokenUrl": "https://a.test/\n"}), (ApiOAuthFlow("clientCredentials", "https://a.test/"),)),
        (oauth(clientCredentials={"tokenUrl": "https://a.test/\nx"}), ()),
        (oauth(clientCredentials={"tokenUrl": "x" * 2001}), ()),
        ({"type": "oauth2", "flows": []}, ()),
    ],
)  # fmt: skip
def test_the_ways_to_a_token_are_those_that_a_server_can_go(
    scheme: dict[str, Any], flows: tuple[ApiOAuthFlow, ...]
) -> None:
    assert read_flows(scheme) == flows


def test_what_cannot_be_a_scope_is_none() -> None:
    assert read_scopes(["read:a", "a b", 'q"', "back\\slash", "", 7, "read:a", "é", "x" * 201]) == ("read:a",)
    assert read_scopes("read") == ()


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


def test_addresses_in_the_description_are_where_a_person_gets_the_credential(reader: Reader) -> None:
    text = (
        "Get a key at https://a.test/keys. Or see <https://a.test/help>, [here](https://b.test/x) javascript:alert(1)"
    )
    scheme = {"type": "apiKey", "in": "query", "name": "k", "description": text}
    api = reader.parts(components={"securitySchemes": {"k": scheme}})
    assert api.security_schemes[0].links == ("https://a.test/keys", "https://a.test/help", "https://b.test/x")


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
