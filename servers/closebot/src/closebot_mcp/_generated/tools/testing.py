"""Conversations with a bot that no lead sees.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import Body, Field, Operation, Parameter, Upstream

LIST_TEST_SESSIONS = Operation(
    "GET", "/bot/{botId}/testSession", parameters=(Parameter("botId", "path", "botId"),), security=(("key",),)
)
START_TEST_SESSION = Operation(
    "POST", "/bot/{botId}/testSession", parameters=(Parameter("botId", "path", "botId"),), security=(("key",),)
)
SEND_TEST_MESSAGE = Operation(
    "POST",
    "/bot/{botId}/testSession/message",
    parameters=(Parameter("botId", "path", "botId"),),
    body=Body("application/json", (Field("leadId", ("leadId",)), Field("message", ("message",))), required=True),
    security=(("key",),),
)
SET_TEST_SOURCE = Operation(
    "PUT",
    "/bot/{botId}/testSession/{leadId}",
    parameters=(Parameter("botId", "path", "botId"), Parameter("leadId", "path", "leadId")),
    body=Body("application/json", (Field("mimicSourceId", ("mimicSourceId",)),), required=True),
    security=(("key",),),
)
DELETE_TEST_SESSION = Operation(
    "DELETE",
    "/bot/{botId}/testSession/{leadId}",
    parameters=(Parameter("botId", "path", "botId"), Parameter("leadId", "path", "leadId")),
    security=(("key",),),
)


async def list_test_sessions(api: Upstream, /, *, botId: str) -> ToolResult:
    """List test conversations of a bot.

    GET /bot/{botId}/testSession

    Args:
        api: the connection that the tools share.
        botId: The bot
    """
    return await api.send(LIST_TEST_SESSIONS, {"botId": botId})


async def start_test_session(api: Upstream, /, *, botId: str) -> ToolResult:
    """Start a test conversation.

    POST /bot/{botId}/testSession

    Args:
        api: the connection that the tools share.
        botId: The bot
    """
    return await api.send(START_TEST_SESSION, {"botId": botId})


async def send_test_message(api: Upstream, /, *, botId: str, leadId: str, message: str) -> ToolResult:
    """Write in a test conversation.

    POST /bot/{botId}/testSession/message

    Args:
        api: the connection that the tools share.
        botId: The bot
        leadId: The conversation
        message: What is written
    """
    return await api.send(SEND_TEST_MESSAGE, {"botId": botId, "leadId": leadId, "message": message})


async def set_test_source(api: Upstream, /, *, botId: str, leadId: str, mimicSourceId: str) -> ToolResult:
    """Let a test conversation act as in a source.

    PUT /bot/{botId}/testSession/{leadId}

    Args:
        api: the connection that the tools share.
        botId: The bot
        leadId: The test conversation
        mimicSourceId: The source
    """
    return await api.send(SET_TEST_SOURCE, {"botId": botId, "leadId": leadId, "mimicSourceId": mimicSourceId})


async def delete_test_session(api: Upstream, /, *, botId: str, leadId: str) -> ToolResult:
    """Delete a test conversation.

    DELETE /bot/{botId}/testSession/{leadId}

    Args:
        api: the connection that the tools share.
        botId: The bot
        leadId: The test conversation
    """
    return await api.send(DELETE_TEST_SESSION, {"botId": botId, "leadId": leadId})
