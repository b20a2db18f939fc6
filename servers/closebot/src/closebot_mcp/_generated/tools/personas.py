"""How bots sound.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Body, Field, Operation, Parameter, Unset, Upstream

LIST_PERSONAS = Operation("GET", "/persona", security=(("key",),))
CREATE_PERSONA = Operation(
    "POST",
    "/persona",
    body=Body(
        "application/json",
        (
            Field("personaName", ("personaName",)),
            Field("description", ("description",)),
            Field("voiceStyles", ("voiceStyles",)),
            Field("howToRespond", ("howToRespond",)),
            Field("typoPercent", ("typoPercent",)),
            Field("breakupLargeMessagePercent", ("breakupLargeMessagePercent",)),
            Field("responseTime", ("responseTime",)),
            Field("responseDelay", ("responseDelay",)),
            Field("aiProviderPreferences", ("aiProviderPreferences",)),
            Field("color", ("color",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
GET_PERSONA = Operation("GET", "/persona/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),))
UPDATE_PERSONA = Operation(
    "PUT",
    "/persona/{id}",
    parameters=(Parameter("id", "path", "id"),),
    body=Body(
        "application/json",
        (
            Field("personaName", ("personaName",)),
            Field("description", ("description",)),
            Field("voiceStyles", ("voiceStyles",)),
            Field("howToRespond", ("howToRespond",)),
            Field("typoPercent", ("typoPercent",)),
            Field("breakupLargeMessagePercent", ("breakupLargeMessagePercent",)),
            Field("responseTime", ("responseTime",)),
            Field("responseDelay", ("responseDelay",)),
            Field("aiProviderPreferences", ("aiProviderPreferences",)),
            Field("color", ("color",)),
        ),
        required=True,
    ),
    security=(("key",),),
)
DELETE_PERSONA = Operation("DELETE", "/persona/{id}", parameters=(Parameter("id", "path", "id"),), security=(("key",),))


async def list_personas(api: Upstream, /) -> ToolResult:
    """List personas.

    GET /persona
    """
    return await api.send(LIST_PERSONAS, {})


async def create_persona(
    api: Upstream,
    /,
    *,
    personaName: str,
    description: str | Unset = UNSET,
    voiceStyles: str | Unset = UNSET,
    howToRespond: str | Unset = UNSET,
    typoPercent: int | Unset = UNSET,
    breakupLargeMessagePercent: int | Unset = UNSET,
    responseTime: str | Unset = UNSET,
    responseDelay: int | Unset = UNSET,
    aiProviderPreferences: list[str] | Unset = UNSET,
    color: str | Unset = UNSET,
) -> ToolResult:
    """Create a persona.

    POST /persona

    Args:
        api: the connection that the tools share.
        personaName: The name
        description: Who it is
        voiceStyles: How it sounds
        howToRespond: Rules for its answers
        typoPercent: Share of answers with a typing error
        breakupLargeMessagePercent: Share of long answers sent in parts
        responseTime: How fast it answers
        responseDelay: Seconds before it answers
        aiProviderPreferences: Models, the preferred first
        color: Its colour in CloseBot
    """
    return await api.send(
        CREATE_PERSONA,
        {
            "personaName": personaName,
            "description": description,
            "voiceStyles": voiceStyles,
            "howToRespond": howToRespond,
            "typoPercent": typoPercent,
            "breakupLargeMessagePercent": breakupLargeMessagePercent,
            "responseTime": responseTime,
            "responseDelay": responseDelay,
            "aiProviderPreferences": aiProviderPreferences,
            "color": color,
        },
    )


async def get_persona(api: Upstream, /, *, id: str) -> ToolResult:
    """Look up one persona.

    GET /persona/{id}

    Args:
        api: the connection that the tools share.
        id: The persona
    """
    return await api.send(GET_PERSONA, {"id": id})


async def update_persona(
    api: Upstream,
    /,
    *,
    id: str,
    personaName: str | Unset = UNSET,
    description: str | Unset = UNSET,
    voiceStyles: str | Unset = UNSET,
    howToRespond: str | Unset = UNSET,
    typoPercent: int | Unset = UNSET,
    breakupLargeMessagePercent: int | Unset = UNSET,
    responseTime: str | Unset = UNSET,
    responseDelay: int | Unset = UNSET,
    aiProviderPreferences: list[str] | Unset = UNSET,
    color: str | Unset = UNSET,
) -> ToolResult:
    """Change a persona.

    PUT /persona/{id}

    Args:
        api: the connection that the tools share.
        id: The persona
        personaName: The name
        description: Who it is
        voiceStyles: How it sounds
        howToRespond: Rules for its answers
        typoPercent: Share of answers with a typing error
        breakupLargeMessagePercent: Share of long answers sent in parts
        responseTime: How fast it answers
        responseDelay: Seconds before it answers
        aiProviderPreferences: Models, the preferred first
        color: Its colour in CloseBot
    """
    return await api.send(
        UPDATE_PERSONA,
        {
            "id": id,
            "personaName": personaName,
            "description": description,
            "voiceStyles": voiceStyles,
            "howToRespond": howToRespond,
            "typoPercent": typoPercent,
            "breakupLargeMessagePercent": breakupLargeMessagePercent,
            "responseTime": responseTime,
            "responseDelay": responseDelay,
            "aiProviderPreferences": aiProviderPreferences,
            "color": color,
        },
    )


async def delete_persona(api: Upstream, /, *, id: str) -> ToolResult:
    """Delete a persona.

    DELETE /persona/{id}

    Args:
        api: the connection that the tools share.
        id: The persona
    """
    return await api.send(DELETE_PERSONA, {"id": id})
