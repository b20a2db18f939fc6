"""Comparison of requests and mock responses with the examples of CloseBot's reference.

Each row is a page of developers.closebot.com, named by its title. The request must be as documented, and the mock response must
have every member of the page's example, with the same JSON type and format. The pages have placeholders as values: "<string>", 123;
nullable members have type `string | null`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.testing import differences
from upstream import BOT, KEY, SECRET, SOURCE, Model, Seen

Json = dict[str, Any]

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
TEXT = "<string>"


@dataclass(frozen=True, slots=True)
class Example:
    """A tool call, and the documented request and response that belong to it."""

    where: str
    tool: str
    arguments: Json
    method: str
    path: str
    answer: Any
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None


TAG = {"name": TEXT, "approveDeny": True, "id": TEXT}
SEQUENCE = {"order": 123, "duration": 123, "unit": TEXT}
BOT_SHOWN = {
    "id": TEXT, "name": TEXT, "modifiedAt": TEXT, "modifiedBy": TEXT,
    "versions": [{"version": TEXT, "name": None, "published": True, "modifiedAt": MOMENT, "modifiedBy": TEXT}],
    "sources": [], "personaIds": [TEXT], "favorited": True, "locked": True, "reschedulingEnabled": True, "category": TEXT, "folderId": None,
    "followUpActive": True, "followUpSequences": [SEQUENCE], "smartFollowUp": True, "followUpRepeat": True, "followUpVarianceMinutes": 123,
    "followUpExtraPrompt": None, "tools": [{"id": TEXT, "type": TEXT, "enabled": True, "options": {}}],
}  # fmt: skip
ATTACHED = {
    "id": TEXT, "category": TEXT, "key": TEXT, "name": TEXT, "tags": [TAG], "tagFilterConfig": {"operator": TEXT, "groups": []},
    "channelList": [TEXT], "personaNameOverride": TEXT, "enabled": True, "flowVariableValues": {},
}  # fmt: skip
STATE = {
    "id": 123,
    "name": TEXT,
    "isDefault": True,
    "sequences": [SEQUENCE],
    "repeatFinal": True,
    "extraPrompt": None,
    "order": 123,
}
WHOLE_BOT = {**BOT_SHOWN, "sources": [ATTACHED], "followUpStates": [STATE]}
SOURCE_SHOWN = {
    "agencyId": TEXT, "sourceId": TEXT, "name": TEXT, "category": TEXT, "key": TEXT, "accessToken": TEXT, "address": None, "connected": True,
    "autoShutoff": True, "gracefulGoodbye": True, "accountsWithAccess": [TEXT], "isAvailabilityContactTimezone": True,
    "bots": [{"id": TEXT, "botName": TEXT, "tags": [TAG], "channels": [TEXT], "personaNameOverride": None, "enabled": True}],
    "respondWindows": [{"dayOfWeekUtc": TEXT, "startTimeUtc": TEXT, "duration": TEXT}], "doNotRespondWindows": [{"start": MOMENT, "end": MOMENT}],
    "summarizeAttachments": True, "respondToReactions": True, "markConversationAsUnread": True, "webhookCallback": None,
    "wallet": {
        "reBilling": True, "autoRefill": True, "topUpAmount": 123, "refillThreshold": 123, "stripeCustomerId": TEXT, "currency": TEXT,
        "responseUnitCostOverride": None, "storageUnitCostOverride": None, "userUnitCostOverride": None,
    },
}  # fmt: skip
LEAD = {
    "id": TEXT, "name": TEXT, "contactId": TEXT, "lastMessageTime": MOMENT, "lastMessage": TEXT, "lastMessageDirection": TEXT, "lastMessageBotId": TEXT,
    "mostRecentFailureReason": None, "mimicSourceId": None, "starred": True, "unread": True, "source": {"name": TEXT, "id": TEXT},
    "wontRespondUntil": None, "tags": [TEXT], "fields": [{"field": TEXT, "name": TEXT, "value": TEXT, "aiProduced": True}],
    "instances": [{
        "botId": TEXT, "botVersion": TEXT, "followUpTimezoneKind": TEXT, "followUpTimezone": TEXT, "followUpTime": MOMENT,
        "isSmartFollowUpTime": True, "scheduleRespondTime": None,
    }],
}  # fmt: skip
PERSONA = {
    "id": TEXT, "agencyId": TEXT, "personaName": TEXT, "description": None, "color": TEXT, "imageUri": None, "voiceStyles": TEXT, "howToRespond": None,
    "typoPercent": 123, "breakupLargeMessagePercent": 123, "responseTime": TEXT, "responseDelay": 123, "modifiedAt": TEXT, "modifiedBy": TEXT,
    "aiProviderPreferences": [], "folderId": None, "botIds": [TEXT], "bots": [{"name": TEXT, "id": TEXT}], "favorited": True, "default": True,
}  # fmt: skip
MESSAGE = {
    "messageId": TEXT, "sourceId": TEXT, "leadId": TEXT, "botId": TEXT, "personaId": TEXT, "channel": TEXT, "fromBot": True,
    "direction": {"inbound", "outbound"}, "message": TEXT, "attachments": [], "timestamp": MOMENT, "activities": [],
}  # fmt: skip
BOOKED = {**MESSAGE, "activities": [{"activity": TEXT, "data": TEXT, "timeData": None}]}
ACTION = {
    "timestamp": MOMENT,
    "actionId": TEXT,
    "leadId": TEXT,
    "sourceId": TEXT,
    "botId": TEXT,
    "nodeId": 123,
    "frontendNodeId": TEXT,
}
USAGE = {
    "startTime": MOMENT, "endTime": MOMENT, "responses": 123, "libraryBytes": 123, "users": 123, "responseCost": 123, "libraryCost": 123, "userCost": 123,
}  # fmt: skip
PAID = {
    "id": 123, "status": {"pending", "succeeded", "failed"}, "description": TEXT, "amount": 123, "currency": TEXT, "createdAt": MOMENT,
    "receiptUrl": TEXT, "usage": USAGE,
}  # fmt: skip
NEW = {"name": "Gym", "templateId": "tpl_1", "importKdl": 'Source id="1" {}', "folderId": "fld_1", "category": "GHL"}
CHANGE = {
    "favorite": True, "locked": True, "rescheduling": True, "name": "Front desk", "folderId": "fld_1", "category": "GHL", "followUpActive": False,
    "followUpSequences": [{"order": 1, "duration": 2, "unit": "hours"}], "smartFollowUp": True, "followUpRepeat": True,
    "followUpVarianceMinutes": 15, "followUpExtraPrompt": "Mention the trial",
}  # fmt: skip
SETTINGS = {
    "name": "Yoga", "autoShutoff": True, "gracefulGoodbye": True, "isAvailabilityContactTimezone": True, "summarizeAttachments": False,
    "respondWindows": [{"dayOfWeekUtc": "Monday", "startTimeUtc": "09:00:00", "duration": "08:00:00"}],
    "doNotRespondWindows": [{"start": "2026-12-24T00:00:00Z", "end": "2026-12-27T00:00:00Z"}], "respondToReactions": True,
    "markConversationsAsUnread": True, "webhookCallback": "https://hooks.example.com/closebot",
}  # fmt: skip
SEARCH = {
    "totalOnly": False, "offset": 0, "count": 50, "search": "", "sourceIds": [SOURCE], "channels": ["SMS"], "botIds": [BOT],
    "personaIds": ["per_MARIA"], "minimumResponses": 1, "lastMessageDirection": "to_bot", "followUpScheduled": True,
}  # fmt: skip
WINDOW = {"start": "2026-11-01T00:00:00Z", "end": "2026-12-01T00:00:00Z"}
MONTH = {"startTime": "2026-11-01T00:00:00Z", "endTime": "2026-12-01T00:00:00Z"}
TESTING = f"/bot/{BOT}/testSession"

EXAMPLES = (
    Example("List bots", "list_bots", {}, "GET", "/bot", [WHOLE_BOT]),
    Example("Get a bot", "get_bot", {"id": BOT}, "GET", f"/bot/{BOT}", WHOLE_BOT),
    Example("Create a new bot", "create_bot", NEW, "POST", "/bot", BOT_SHOWN, body=NEW),
    Example("Update a bot", "update_bot", {"id": BOT, **CHANGE}, "PUT", f"/bot/{BOT}", WHOLE_BOT, body=CHANGE),
    Example("Create a test session", "start_test_session", {"botId": BOT}, "POST", TESTING, {"leadId": TEXT, "sourceId": TEXT}),
    Example("List test sessions", "list_test_sessions", {"botId": BOT}, "GET", TESTING, {"leads": [], "total": 123}),
    Example("List personas", "list_personas", {}, "GET", "/persona", [PERSONA]),
    Example("Get a persona", "get_persona", {"id": "per_MARIA"}, "GET", "/persona/per_MARIA", PERSONA),
    Example(
        "List sources", "list_sources", {"page": 0, "pageSize": 20}, "GET", "/agency/source",
        {"total": 123, "results": [SOURCE_SHOWN], "page": 123, "pageSize": 123}, query={"page": "0", "pageSize": "20"},
    ),
    Example("Get a source", "get_source", {"id": SOURCE}, "GET", f"/agency/source/{SOURCE}", SOURCE_SHOWN),
    Example("Update a source", "update_source", {"id": SOURCE, **SETTINGS}, "PUT", f"/agency/source/{SOURCE}", {**SOURCE_SHOWN, "webhookCallback": ""}, body=SETTINGS),
    Example(
        "List leads", "list_leads", {"page": 0, "pageSize": 20, "sourceId": SOURCE}, "GET", "/lead",
        {"total": 123, "results": [LEAD], "page": 123, "pageSize": 123}, query={"page": "0", "pageSize": "20", "sourceId": SOURCE},
    ),
    Example("Search leads", "search_leads", SEARCH, "POST", "/lead/search", {"leads": [LEAD], "total": 123}, body=SEARCH),
    Example("Get a lead", "get_lead", {"leadId": "lead_1", "includeExternal": True}, "GET", "/lead/lead_1", LEAD, query={"includeExternal": "true"}),
    Example(
        "Get messages", "list_messages", {"leadId": "lead_1", "sourceId": SOURCE, **WINDOW, "maxCount": 50}, "GET", "/botMetric/messages",
        [BOOKED, MESSAGE], query={"leadId": "lead_1", "sourceId": SOURCE, **WINDOW, "maxCount": "50"},
    ),
    Example(
        "Get actions", "list_actions", {"botId": BOT, **WINDOW, "maxCount": 50}, "GET", "/botMetric/actions", [ACTION],
        query={"botId": BOT, **WINDOW, "maxCount": "50"},
    ),
    Example("List billed usages", "list_usages", MONTH, "GET", "/agency/billing/usages", [USAGE], query=MONTH),
    Example("List agency transactions", "list_transactions", {"status": "failed"}, "GET", "/agency/billing/transactions", [PAID], query={"status": "failed"}),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a call: the received requests, the result, and the tool definition."""

    seen: list[Seen]
    result: Json
    tool: Json


@pytest.fixture(scope="module")
def done(with_server: Callable[..., Any]) -> dict[str, Done]:
    """Call each example once, with a fresh mock API."""

    async def work(client: Client, model: Model) -> dict[str, Done]:
        tools = {tool["name"]: tool for tool in await client.list_tools()}
        found = {}
        for example in EXAMPLES:
            model.__dict__.update(Model().__dict__)
            result = await client.call_tool(example.tool, example.arguments)
            found[example.where] = Done(model.seen, result, tools[example.tool])
        return found

    return with_server(work, {"MCPFACTORY_PROFILE": "full", "MCPFACTORY_MODE": "full"})


each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)


@each
def test_the_api_is_asked_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert (seen.method, seen.path, seen.query, seen.body) == (
        example.method,
        example.path,
        example.query,
        example.body,
    )
    assert seen.headers["x-cb-key"] == KEY
    assert seen.headers.get("content-type") == ("application/json" if example.body else None)


@each
def test_the_model_answers_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert seen.status == 200
    assert differences(example.answer, seen.answer) == []


@each
def test_the_documented_answer_is_what_the_tool_says_that_it_gives(example: Example, done: dict[str, Done]) -> None:
    (seen,), result, tool = done[example.where].seen, done[example.where].result, done[example.where].tool
    shown = json.loads(json.dumps(seen.answer).replace(SECRET, "(hidden)"))  # CRM credentials must not reach a model
    shown = shown if isinstance(shown, dict) else {"result": shown}
    assert result["structuredContent"] == shown
    compile_schema(tool["outputSchema"]).validate(shown)
