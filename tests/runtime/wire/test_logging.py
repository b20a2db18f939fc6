"""Log messages on the wire of each revision."""

from __future__ import annotations

import pytest

from mcpfactory_runtime.protocol.connection import LOG_LEVELS, META_LOG_LEVEL
from mcpfactory_runtime.protocol.errors import INVALID_PARAMS
from mcpfactory_runtime.revisions import LATEST, Revision
from tests.runtime.interaction.sample import server as sample
from tests.runtime.requirements import requirement
from tests.runtime.wire.raw_client import speak
from tests.runtime.wire.revision_ranges import HANDSHAKES

pytestmark = pytest.mark.anyio


@requirement("logging.level", "logging.levels", "logging.bad-level")
@HANDSHAKES
async def test_a_session_gets_messages_of_its_level_and_above(revision: Revision) -> None:
    async with speak(sample, revision) as client:
        for level in ("loud", "", None, 5, "ERROR"):
            assert await client.code("logging/setLevel", {"level": level}) == INVALID_PARAMS
        for number, level in enumerate(LOG_LEVELS):
            assert (await client.ask("logging/setLevel", {"level": level}))["result"] == {}
            client.heard.clear()
            await client.call("speak")
            heard = [m["params"]["level"] for m in client.heard if m["method"] == "notifications/message"]
            assert heard == [name for name in ("debug", "info", "warning", "error") if LOG_LEVELS[name] >= number]


@requirement("logging.silent", "logging.own-stream", "logging.levels", "logging.bad-level", "logging.no-secrets")
async def test_a_request_gets_messages_only_if_it_names_a_level() -> None:
    async with speak(sample, LATEST) as client:
        await client.call("speak", meta={META_LOG_LEVEL: "warning"})
        heard = [m["params"]["level"] for m in client.heard if m["method"] == "notifications/message"]
        assert heard == ["warning", "error"]
        client.heard.clear()
        await client.call("speak")
        assert client.heard == []
        await client.call("crash", meta={META_LOG_LEVEL: "debug"})
        assert client.heard == []
        answer = await client.ask("tools/list", None, {META_LOG_LEVEL: "loud"})
        assert answer["error"]["code"] == INVALID_PARAMS
