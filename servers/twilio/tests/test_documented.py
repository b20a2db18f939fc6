"""Comparison of requests and mock responses with the examples of Twilio's reference.

Each row is a call of the reference, with other values. The request must be as documented, and the mock response must have every
documented member, with the same JSON type and format. The examples are from Twilio's published OpenAPI documents (twilio-oai, April
2026), the source of its reference pages; a row names the page and the example.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from mcpfactory_runtime.client import Client
from mcpfactory_runtime.schemas.validation import compile_schema
from mcpfactory_runtime.testing import differences
from resources import sid
from upstream import ACCOUNT, SERVICE, TOKEN, Model, Seen

Values = dict[str, list[str]]

API = f"/2010-04-01/Accounts/{ACCOUNT}"
FORM = "application/x-www-form-urlencoded"
MAIL = "Thu, 24 Aug 2023 05:01:45 +0000"  # dates in the 2010 API are RFC 2822, in Verify ISO 8601
DATE = "2020-01-30T20:00:00Z"
STATES = {
    *("queued", "sending", "sent", "failed", "delivered", "undelivered", "receiving", "received", "accepted"),
    *("scheduled", "read", "partially_delivered", "canceled"),
}
CALL_STATES = {"queued", "ringing", "in-progress", "completed", "busy", "failed", "no-answer", "canceled"}


@dataclass(frozen=True, slots=True)
class Example:
    """A tool call, and the documented request and response that belong to it."""

    where: str
    tool: str
    arguments: dict[str, Any]
    method: str
    path: str
    query: Values = field(default_factory=dict)
    form: Values = field(default_factory=dict)
    status: int = 200
    answer: Any = None
    kept_back: str = ""  # member of each row that the server must remove


def sids(lead: str) -> re.Pattern[str]:
    return re.compile(rf"{lead}[0-9a-fA-F]{{32}}")


def listed(name: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a page of the 2010 API."""
    links = {"uri": "/2010", "first_page_uri": "/2010", "next_page_uri": None, "previous_page_uri": None}
    return {name: [row], "start": 0, "end": 0, "page": 0, "page_size": 50, **links}


MESSAGE = {
    "account_sid": sids("AC"), "api_version": "2010-04-01", "body": "", "date_created": MAIL, "date_sent": None,
    "date_updated": MAIL, "direction": {"inbound", "outbound-api", "outbound-call", "outbound-reply"}, "error_code": None,
    "error_message": None, "from": None, "messaging_service_sid": None, "num_media": "0", "num_segments": "1", "price": None,
    "price_unit": "USD", "sid": sids("(SM|MM)"), "status": STATES, "subresource_uris": {"media": "/2010"},
    "to": "+15558675310", "uri": "/2010",
}  # fmt: skip
SENT = {**MESSAGE, "date_sent": MAIL, "from": "+15017122661", "price": "-0.00750"}
FAILED = {**SENT, "error_code": 30007, "error_message": "Carrier violation"}
CALL = {
    "account_sid": sids("AC"), "answered_by": None, "api_version": "2010-04-01", "caller_name": None, "date_created": MAIL,
    "date_updated": MAIL, "direction": "outbound-api", "duration": None, "end_time": None, "forwarded_from": None,
    "from": "+15017122661", "from_formatted": "", "group_sid": None, "parent_call_sid": None, "phone_number_sid": sids("PN"),
    "price": None, "price_unit": "USD", "sid": sids("CA"), "start_time": None, "status": CALL_STATES, "trunk_sid": None,
    "subresource_uris": {
        "notifications": "/2010", "recordings": "/2010", "payments": "/2010", "events": "/2010", "siprec": "/2010",
        "streams": "/2010", "transcriptions": "/2010", "user_defined_message_subscriptions": "/2010", "user_defined_messages": "/2010",
    },
    "to": "+15558675310", "to_formatted": "", "uri": "/2010", "queue_time": "1000",
}  # fmt: skip
OVER = {**CALL, "duration": "15", "start_time": MAIL, "end_time": MAIL, "price": "-0.03000", "answered_by": "human"}
NUMBER = {
    "account_sid": sids("AC"), "address_requirements": {"none", "any", "local", "foreign"}, "address_sid": None,
    "api_version": "2010-04-01", "beta": None, "capabilities": {"voice": True, "sms": False, "mms": True, "fax": False},
    "date_created": MAIL, "date_updated": MAIL, "emergency_status": {"Active", "Inactive"}, "emergency_address_sid": None,
    "emergency_address_status": "registered", "friendly_name": "(808) 925-5327", "identity_sid": None, "origin": "origin",
    "phone_number": "+15017122661", "sid": sids("PN"), "sms_application_sid": "", "sms_fallback_method": {"GET", "POST"},
    "sms_fallback_url": "", "sms_method": {"GET", "POST"}, "sms_url": "", "status_callback": "", "trunk_sid": None,
    "status_callback_method": {"GET", "POST"}, "uri": "/2010", "voice_application_sid": "", "voice_caller_id_lookup": False,
    "voice_fallback_method": {"GET", "POST"}, "voice_fallback_url": None, "voice_method": {"GET", "POST"}, "voice_url": None,
    "bundle_sid": None, "voice_receive_mode": {"voice", "fax"}, "status": "in-use", "type": "local",
}  # fmt: skip
FREE = {
    "address_requirements": {"none", "any", "local", "foreign"}, "beta": False, "friendly_name": "(808) 925-1571",
    "capabilities": {"mms": True, "sms": False, "voice": True}, "iso_country": "US", "lata": "834", "latitude": "19.720000",
    "locality": "Hilo", "longitude": "-155.090000", "phone_number": "+18089251571", "postal_code": "96720",
    "rate_center": "HILO FRNT", "region": "HI",
}  # fmt: skip
USAGE = {
    "account_sid": sids("AC"), "api_version": "2010-04-01", "as_of": "2019-06-24T22:32:49+00:00", "category": "totalprice",
    "count": None, "count_unit": "", "description": "Total Price", "end_date": "2026-11-30", "price": "2192.84855",
    "price_unit": "usd", "start_date": "2026-11-01", "usage": "2192.84855", "usage_unit": "usd", "uri": "/2010",
    "subresource_uris": dict.fromkeys(
        ("all_time", "daily", "last_month", "monthly", "this_month", "today", "yearly", "yesterday"), "/2010"
    ),
}  # fmt: skip
SUBACCOUNTS = {
    "auth_token": "", "date_created": MAIL, "date_updated": MAIL, "friendly_name": "", "owner_account_sid": sids("AC"),
    "sid": sids("AC"), "status": {"active", "suspended", "closed"}, "type": {"Trial", "Full"}, "uri": "/2010",
    "subresource_uris": dict.fromkeys(
        ("available_phone_numbers", "calls", "conferences", "incoming_phone_numbers", "notifications", "outgoing_caller_ids",
         "recordings", "transcriptions", "addresses", "signing_keys", "connect_apps", "sip", "authorized_connect_apps", "usage",
         "keys", "applications", "short_codes", "queues", "messages", "balance"), "/2010",
    ),
}  # fmt: skip
LOOKUP = {
    "calling_country_code": "1", "country_code": "US", "phone_number": "+14159929960", "national_format": "(415) 992-9960",
    "valid": True, "validation_errors": None, "caller_name": None, "sim_swap": None, "call_forwarding": None, "line_status": None,
    "line_type_intelligence": None, "identity_match": None, "reassigned_number": None, "sms_pumping_risk": None,
    "phone_number_quality_score": None, "pre_fill": None, "url": "https://lookups.twilio.com",
}  # fmt: skip
LINE = {
    "error_code": None,
    "mobile_country_code": "240",
    "mobile_network_code": "38",
    "carrier_name": "",
    "type": "mobile",
}
SWAP = {
    "last_sim_swap": {"last_sim_swap_date": "2020-04-27T10:18:50Z", "swapped_period": "PT48H", "swapped_in_period": True},
    "carrier_name": "Some UK", "mobile_country_code": "276", "mobile_network_code": "02", "error_code": None,
}  # fmt: skip
VERIFIED = {
    "sid": sids("VE"), "service_sid": sids("VA"), "account_sid": sids("AC"), "to": "+15017122661", "amount": None, "payee": None,
    "channel": {"sms", "call", "email", "whatsapp", "sna"}, "valid": False, "date_created": DATE, "date_updated": DATE,
    "status": {"pending", "approved", "canceled", "max_attempts_reached", "deleted", "failed", "expired"},
}  # fmt: skip
ATTEMPT = {"time": DATE, "channel": "SMS", "attempt_sid": sids("VL")}
CODE_SENT = {**VERIFIED, "lookup": {}, "send_code_attempts": [ATTEMPT], "sna": None, "url": "https://verify.twilio.com"}
SERVICES = {
    "meta": {
        "page": 0, "page_size": 50, "first_page_url": "https://verify.twilio.com", "previous_page_url": None,
        "next_page_url": None, "key": "services", "url": "https://verify.twilio.com",
    },
    "services": [{
        "sid": sids("VA"), "account_sid": sids("AC"), "friendly_name": "name", "code_length": 4, "lookup_enabled": False,
        "psd2_enabled": False, "skip_sms_to_landlines": False, "dtmf_input_required": False, "tts_name": None,
        "do_not_share_warning_enabled": False, "custom_code_enabled": True, "default_template_sid": None,
        "push": {"include_date": False, "apn_credential_sid": None, "fcm_credential_sid": None},
        "totp": {"issuer": None, "time_step": None, "code_length": None, "skew": None},
        "whatsapp": {"msg_service_sid": None, "from": None}, "verify_event_subscription_enabled": False,
        "passkeys": {
            "relying_party": None, "authenticator_attachment": None, "discoverable_credentials": None, "user_verification": None,
        },
        "date_created": DATE, "date_updated": DATE, "url": "https://verify.twilio.com",
        "links": dict.fromkeys(
            ("verification_checks", "verifications", "rate_limits", "messaging_configurations", "entities", "webhooks",
             "access_tokens"), "https://verify.twilio.com",
        ),
    }],
}  # fmt: skip
REFUSED = {"code": 21211, "message": "", "more_info": "https://www.twilio.com/docs/errors/21211", "status": 400}
TO = {"To": "+15558675310"}
PAIR = {**TO, "From": "+15017122661"}
GONE, KEPT, CALLED = sid("SM", 2), sid("SM", 1), sid("CA", 1)


def forms(**given: str) -> Values:
    return {name: [value] for name, value in given.items()}


EXAMPLES = (
    Example(
        "Message resource, Create a Message: createWoService", "send_message",
        {**PAIR, "Body": "Hello 👍", "MediaUrl": ["https://a.test/1.jpg", "https://a.test/2.jpg"], "StatusCallback": "https://a.test/said"},
        "POST", f"{API}/Messages.json", status=201, answer={**MESSAGE, "from": "+15017122661"},
        form={**forms(**PAIR, Body="Hello 👍", StatusCallback="https://a.test/said"), "MediaUrl": ["https://a.test/1.jpg", "https://a.test/2.jpg"]},
    ),
    Example(
        "Message resource, Schedule a message: createScheduledMessageSms", "send_message",
        {**TO, "Body": "Hello", "MessagingServiceSid": sid("MG", 1), "ScheduleType": "fixed", "SendAt": "2026-11-30T20:36:27Z"},
        "POST", f"{API}/Messages.json", status=201, answer={**MESSAGE, "messaging_service_sid": sids("MG"), "num_segments": "0"},
        form=forms(**TO, Body="Hello", MessagingServiceSid=sid("MG", 1), ScheduleType="fixed", SendAt="2026-11-30T20:36:27Z"),
    ),
    Example(
        "Error and warning dictionary, 21211; REST API, Response: exceptions", "send_message",
        {**PAIR, "To": "+15005550001", "Body": "Hello"}, "POST", f"{API}/Messages.json", status=400, answer=REFUSED,
        form=forms(To="+15005550001", From="+15017122661", Body="Hello"),
    ),
    Example(
        "Message resource, Read multiple Message resources: readFullPage1", "list_messages",
        {**TO, "From": "+15017122661", "DateSentSince": "2026-11-02", "PageSize": 1}, "GET", f"{API}/Messages.json",
        query={**forms(**PAIR, PageSize="1"), "DateSent>": ["2026-11-02"]}, answer=listed("messages", SENT),
    ),
    Example(
        "Message resource, Read multiple Message resources: readEmptySentdateLess", "list_messages",
        {"To": "+19995550000", "DateSentUntil": "2026-11-02", "PageSize": 25}, "GET", f"{API}/Messages.json",
        query={**forms(To="+19995550000", PageSize="25"), "DateSent<": ["2026-11-02"]}, answer={**listed("messages", {}), "messages": []},
    ),
    Example("Message resource, Fetch a Message: fetch", "get_message", {"Sid": GONE}, "GET", f"{API}/Messages/{GONE}.json", answer=FAILED),
    Example(
        "Message resource, Update a Message: redactBody", "redact_or_cancel_message", {"Sid": KEPT, "Body": ""},
        "POST", f"{API}/Messages/{KEPT}.json", form=forms(Body=""), answer=SENT,
    ),
    Example(
        "Message resource, Update a Message: cancelMessage", "redact_or_cancel_message", {"Sid": KEPT, "Status": "canceled"},
        "POST", f"{API}/Messages/{KEPT}.json", form=forms(Status="canceled"), answer={**MESSAGE, "status": {"canceled"}},
    ),
    Example("Message resource, Delete a Message", "delete_message", {"Sid": KEPT}, "DELETE", f"{API}/Messages/{KEPT}.json", status=204),
    Example(
        "Call resource, Create a Call: create", "make_call",
        {**PAIR, "Url": "https://a.test/say.xml", "Record": True, "Timeout": 30, "MachineDetection": "Enable"},
        "POST", f"{API}/Calls.json", status=201, answer=CALL,
        form=forms(**PAIR, Url="https://a.test/say.xml", Record="true", Timeout="30", MachineDetection="Enable"),
    ),
    Example(
        "Call resource, Create a Call: createWithTwiml", "make_call", {**PAIR, "Twiml": "<Response><Say>Enjoy</Say></Response>"},
        "POST", f"{API}/Calls.json", status=201, answer=CALL, form=forms(**PAIR, Twiml="<Response><Say>Enjoy</Say></Response>"),
    ),
    Example(
        "Call resource, Read multiple Call resources: readFullPage1", "list_calls",
        {**PAIR, "Status": "completed", "start_time": "2026-11-02", "PageSize": 2}, "GET", f"{API}/Calls.json",
        query={**forms(**PAIR, Status="completed", PageSize="2"), "StartTime>": ["2026-11-02"]}, answer=listed("calls", OVER),
    ),
    Example("Call resource, Fetch a Call: fetch", "get_call", {"Sid": CALLED}, "GET", f"{API}/Calls/{CALLED}.json", answer=OVER),
    Example(
        "Call resource, Update a Call: update", "end_call", {"Sid": CALLED, "Status": "completed"}, "POST", f"{API}/Calls/{CALLED}.json",
        form=forms(Status="completed"), answer={**OVER, "status": {"completed"}},
    ),
    Example(
        "IncomingPhoneNumber resource, Read multiple: readFull", "list_numbers", {"PhoneNumber": "+15017122661"},
        "GET", f"{API}/IncomingPhoneNumbers.json", query=forms(PhoneNumber="+15017122661"), answer=listed("incoming_phone_numbers", NUMBER),
    ),
    Example(
        "AvailablePhoneNumber Local resource, Read multiple: readFull", "search_available_numbers",
        {"CountryCode": "US", "AreaCode": 510, "SmsEnabled": True}, "GET", f"{API}/AvailablePhoneNumbers/US/Local.json",
        query=forms(AreaCode="510", SmsEnabled="true"), answer={"available_phone_numbers": [FREE], "uri": "/2010"},
    ),
    Example(
        "UsageRecord resource, Read multiple: readFull", "list_usage",
        {"Category": "totalprice", "StartDate": "2026-11-01", "EndDate": "2026-11-30"}, "GET", f"{API}/Usage/Records.json",
        query=forms(Category="totalprice", StartDate="2026-11-01", EndDate="2026-11-30"), answer=listed("usage_records", USAGE),
    ),
    Example(
        "Balance resource, Fetch the balance: fetch", "get_balance", {}, "GET", f"{API}/Balance.json",
        answer={"account_sid": sids("AC"), "balance": "0.05", "currency": "USD"},
    ),
    Example(
        "Account resource, Read multiple: readFull", "list_accounts", {"Status": "active"}, "GET", "/2010-04-01/Accounts.json",
        query=forms(Status="active"), answer=listed("accounts", SUBACCOUNTS), kept_back="auth_token",
    ),
    Example(
        "Lookup v2 API: fetchLineTypeIntelligence", "look_up_number", {"PhoneNumber": "+14159929960", "Fields": "line_type_intelligence"},
        "GET", "/v2/PhoneNumbers/+14159929960", query=forms(Fields="line_type_intelligence"), answer={**LOOKUP, "line_type_intelligence": LINE},
    ),
    Example(
        "Lookup v2 API: fetchSimSwapAndCallForwarding", "look_up_number", {"PhoneNumber": "+14159929960", "Fields": "sim_swap,call_forwarding"},
        "GET", "/v2/PhoneNumbers/+14159929960", query=forms(Fields="sim_swap,call_forwarding"),
        answer={**LOOKUP, "sim_swap": SWAP, "call_forwarding": {"call_forwarding_enabled": True, "error_code": None}},
    ),
    Example(
        "Lookup v2 API: fetchInvalid", "look_up_number", {"PhoneNumber": "+1555"}, "GET", "/v2/PhoneNumbers/+1555",
        answer={**LOOKUP, "calling_country_code": None, "country_code": None, "national_format": None, "phone_number": "", "validation_errors": ["TOO_LONG"]},
    ),
    Example("Verify Services resource, Read multiple: readAll", "list_verify_services", {}, "GET", "/v2/Services", answer=SERVICES),
    Example(
        "Verification resource, Start new Verification: createVerification", "send_code",
        {"ServiceSid": SERVICE, "To": "+15017122661", "Channel": "sms", "Locale": "en"}, "POST", f"/v2/Services/{SERVICE}/Verifications",
        form=forms(To="+15017122661", Channel="sms", Locale="en"), status=201, answer=CODE_SENT,
    ),
    Example(
        "Verification resource, Start new Verification: createVerificationEmail", "send_code",
        {"ServiceSid": SERVICE, "To": "ada@example.com", "Channel": "email"}, "POST", f"/v2/Services/{SERVICE}/Verifications",
        form=forms(To="ada@example.com", Channel="email"), status=201, answer={**CODE_SENT, "to": "ada@example.com"},
    ),
    Example(
        "Verification Check resource, Check a Verification: verificationChecks", "check_code",
        {"ServiceSid": SERVICE, "To": "+15017122661", "Code": "123456"}, "POST", f"/v2/Services/{SERVICE}/VerificationCheck",
        form=forms(To="+15017122661", Code="123456"), status=201,
        answer={**VERIFIED, "status": {"approved"}, "sna_attempts_error_codes": []},
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Done:
    """Outcome of a call: the received requests, the result, and the tool definition."""

    seen: list[Seen]
    result: dict[str, Any]
    tool: dict[str, Any]


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

    return with_server(work, {"MCPFACTORY_PROFILE": "full"})


each = pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.where)


@each
def test_the_api_is_asked_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert (seen.method, seen.path, seen.query, seen.form) == (
        example.method,
        example.path,
        example.query,
        example.form,
    )
    assert seen.headers["authorization"] == "Basic " + b64encode(f"{ACCOUNT}:{TOKEN}".encode()).decode()
    assert seen.headers.get("content-type") == (FORM if example.form else None)


@each
def test_the_model_answers_as_documented(example: Example, done: dict[str, Done]) -> None:
    (seen,) = done[example.where].seen
    assert seen.status == example.status
    assert differences(example.answer, seen.answer) == []


@each
def test_the_documented_answer_is_what_the_tool_says_that_it_gives(example: Example, done: dict[str, Done]) -> None:
    (seen,), result, tool = done[example.where].seen, done[example.where].result, done[example.where].tool
    if example.status >= 400:
        assert result["isError"]
        assert seen.answer["message"] in result["content"][0]["text"]
    elif example.status != 204:
        rows = seen.answer["accounts"] if example.kept_back else []
        secrets = [row.pop(example.kept_back) for row in rows]
        assert len(secrets) == (2 if example.kept_back else 0)
        assert not any(secret in result["content"][0]["text"] for secret in secrets)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"] == seen.answer
        compile_schema(tool["outputSchema"]).validate(seen.answer)
