"""What nodes log in with.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from typing import Any

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import Body, Field, Operation, Parameter, Upstream

CREATE_CREDENTIAL = Operation(
    "POST",
    "/credentials",
    body=Body(
        "application/json",
        (Field("name", ("name",)), Field("type", ("type",)), Field("data", ("data",))),
        required=True,
    ),
    security=(("key",),),
)
DELETE_CREDENTIAL = Operation(
    "DELETE", "/credentials/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),)
)
GET_CREDENTIAL_SCHEMA = Operation(
    "GET",
    "/credentials/schema/{credentialTypeName}",
    parameters=(Parameter("credentialTypeName", "path", "credentialTypeName"),),
    security=(("key",),),
)


async def create_credential(api: Upstream, /, *, name: str, type: str, data: dict[str, Any]) -> ToolResult:
    """Create a credential.

    POST /credentials

    Args:
        api: the connection that the tools share.
        name: What people see
        type: The type, such as githubApi
        data: What the type needs
    """
    return await api.send(CREATE_CREDENTIAL, {"name": name, "type": type, "data": data})


async def delete_credential(api: Upstream, /, *, id: str) -> ToolResult:
    """Delete a credential.

    DELETE /credentials/{id}

    Args:
        api: the connection that the tools share.
        id: The credential
    """
    return await api.send(DELETE_CREDENTIAL, {"id": id})


async def get_credential_schema(api: Upstream, /, *, credentialTypeName: str) -> ToolResult:
    """Show what a type of credential needs.

    GET /credentials/schema/{credentialTypeName}

    Args:
        api: the connection that the tools share.
        credentialTypeName: The type, such as githubApi
    """
    return await api.send(GET_CREDENTIAL_SCHEMA, {"credentialTypeName": credentialTypeName})
