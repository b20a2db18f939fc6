"""JSON resources of Twilio's APIs, with all documented members, and pages of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

Json = dict[str, Any]

ACCOUNT, SUBACCOUNT, SERVICE = "AC" + "a" * 32, "AC" + "b" * 32, "VA" + "c" * 32
VERIFY = f"https://verify.twilio.com/v2/Services/{SERVICE}"
NUMBER = "+15017122661"
MADE = "Sun, 22 Nov 2026 10:00:00 +0000"
_OF_ACCOUNT = (
    *(
        "addresses",
        "applications",
        "authorized_connect_apps",
        "available_phone_numbers",
        "balance",
        "calls",
        "conferences",
    ),
    *("connect_apps", "incoming_phone_numbers", "keys", "messages", "notifications", "outgoing_caller_ids", "queues"),
    *("recordings", "signing_keys", "transcriptions", "usage"),
)
_OF_CALL = (
    *("events", "notifications", "payments", "recordings", "siprec", "streams", "transcriptions"),
    *("user_defined_message_subscriptions", "user_defined_messages"),
)
_RECORDS = ("all_time", "daily", "last_month", "monthly", "this_month", "today", "yearly", "yesterday")
_FIELDS: dict[str, Json] = {
    "line_type_intelligence": {
        "type": "mobile", "carrier_name": "A carrier", "mobile_country_code": "240", "mobile_network_code": "38",
        "error_code": None,
    },
    "caller_name": {"caller_name": "Ada Example", "caller_type": "CONSUMER", "error_code": None},
    "sim_swap": {
        "last_sim_swap": {"last_sim_swap_date": "2026-10-27T10:18:50Z", "swapped_period": "PT48H", "swapped_in_period": True},
        "carrier_name": "A carrier", "mobile_country_code": "276", "mobile_network_code": "02", "error_code": None,
    },
    "call_forwarding": {"call_forwarding_enabled": False, "error_code": None},
    "line_status": {"status": "active", "error_code": None},
    "sms_pumping_risk": {
        "carrier_risk_category": "low", "number_blocked": False, "number_blocked_date": None,
        "number_blocked_last_3_months": None, "sms_pumping_risk_score": 3, "error_code": None,
    },
}  # fmt: skip
_UNKNOWN = ("identity_match", "reassigned_number", "phone_number_quality_score", "pre_fill")


def sid(lead: str, number: int) -> str:
    """Return the SID with a prefix and number."""
    return f"{lead}{number:032x}"


def camel(name: str) -> str:
    """Return a name in the CamelCase of paths."""
    return "".join(word.title() for word in name.split("_"))


def message(number: int, to: str, status: str, code: int | None = None, account: str = ACCOUNT) -> Json:
    """Return a message; a final one has a sending time and price."""
    name = sid("SM", number)
    uri = f"/2010-04-01/Accounts/{account}/Messages/{name}"
    over = status in {"delivered", "undelivered", "failed"}
    return {
        "sid": name, "account_sid": account, "to": to, "from": NUMBER, "messaging_service_sid": None, "body": "Hello",
        "status": status, "direction": "outbound-api", "error_code": code, "error_message": "Not delivered" if code else None,
        "num_segments": "1", "num_media": "0", "price": "-0.00750" if over else None, "price_unit": "USD",
        "date_created": MADE, "date_updated": MADE, "date_sent": MADE if over else None, "api_version": "2010-04-01",
        "uri": f"{uri}.json", "subresource_uris": {"media": f"{uri}/Media.json", "feedback": f"{uri}/Feedback.json"},
    }  # fmt: skip


def call(account: str, to: str, sender: str, status: str = "queued") -> Json:
    """Return a call; a completed one has times, duration and price."""
    name, over = sid("CA", 1), status == "completed"
    uri = f"/2010-04-01/Accounts/{account}/Calls/{name}"
    return {
        "sid": name, "account_sid": account, "to": to, "to_formatted": to, "from": sender, "from_formatted": sender,
        "status": status, "direction": "outbound-api", "answered_by": "human" if over else None, "api_version": "2010-04-01",
        "caller_name": None, "forwarded_from": None, "group_sid": None, "parent_call_sid": None, "trunk_sid": None,
        "phone_number_sid": sid("PN", 1), "date_created": MADE, "date_updated": MADE, "queue_time": "0",
        "start_time": MADE if over else None, "end_time": MADE if over else None, "duration": "15" if over else None,
        "price": "-0.03000" if over else None, "price_unit": "USD", "uri": f"{uri}.json",
        "subresource_uris": {part: f"{uri}/{camel(part)}.json" for part in _OF_CALL},
    }  # fmt: skip


def account(name: str, friendly_name: str) -> Json:
    """Return the main account or a subaccount."""
    uri = f"/2010-04-01/Accounts/{name}"
    return {
        "sid": name, "owner_account_sid": ACCOUNT, "friendly_name": friendly_name, "status": "active", "type": "Full",
        "auth_token": f"token-of-{name}", "date_created": MADE, "date_updated": MADE, "uri": f"{uri}.json",
        "subresource_uris": {part: f"{uri}/{camel(part)}.json" for part in _OF_ACCOUNT}
        | {"sip": f"{uri}/SIP.json", "short_codes": f"{uri}/SMS/ShortCodes.json"},
    }  # fmt: skip


def number_of_account(account_sid: str) -> Json:
    """Return a phone number of the account."""
    name = sid("PN", 1)
    return {
        "sid": name, "account_sid": account_sid, "phone_number": NUMBER, "friendly_name": "(501) 712-2661", "type": "local",
        "capabilities": {"voice": True, "sms": True, "mms": True, "fax": False}, "status": "in-use", "origin": "twilio",
        "address_requirements": "none", "address_sid": None, "identity_sid": None, "bundle_sid": None, "trunk_sid": None,
        "api_version": "2010-04-01", "beta": False, "date_created": MADE, "date_updated": MADE, "voice_receive_mode": "voice",
        "emergency_status": "Inactive", "emergency_address_sid": None, "emergency_address_status": "unregistered",
        "sms_application_sid": "", "sms_method": "POST", "sms_url": "", "sms_fallback_method": "POST", "sms_fallback_url": "",
        "voice_application_sid": "", "voice_method": "POST", "voice_url": "", "voice_fallback_method": "POST",
        "voice_fallback_url": "", "voice_caller_id_lookup": False, "status_callback": "", "status_callback_method": "POST",
        "uri": f"/2010-04-01/Accounts/{account_sid}/IncomingPhoneNumbers/{name}.json",
    }  # fmt: skip


def free_number(country: str, area: str) -> Json:
    """Return an available phone number."""
    return {
        "phone_number": f"+1{area}5550100", "friendly_name": f"({area}) 555-0100", "iso_country": country, "lata": "722",
        "locality": "Oakland", "region": "CA", "postal_code": "94601", "rate_center": "OKLD FRTVL", "beta": False,
        "latitude": "37.780000", "longitude": "-122.220000", "address_requirements": "none",
        "capabilities": {"voice": True, "sms": True, "mms": True},
    }  # fmt: skip


def usage(account_sid: str, category: str, start: str, end: str) -> Json:
    """Return the usage of one category."""
    uri, price = f"/2010-04-01/Accounts/{account_sid}/Usage/Records", category == "totalprice"
    return {
        "account_sid": account_sid, "api_version": "2010-04-01", "as_of": "2026-11-24T10:00:00+00:00", "category": category,
        "description": "Total Price" if price else "Inbound SMS", "count": None if price else "12",
        "count_unit": "" if price else "messages", "usage": "12.30" if price else "12", "usage_unit": "usd" if price else "messages", "price": "12.30", "price_unit": "usd", "start_date": start, "end_date": end,
        "subresource_uris": {part: f"{uri}/{camel(part)}.json?Category={category}" for part in _RECORDS},
        "uri": f"{uri}.json?Category={category}&StartDate={start}&EndDate={end}",
    }  # fmt: skip


def lookup(number: str, fields: str) -> Json:
    """Return a lookup result; fields that were not requested are null."""
    valid, asked = number != "+1555", fields.split(",")
    return {
        "phone_number": number, "valid": valid, "validation_errors": [] if valid else ["TOO_SHORT"],
        "calling_country_code": "1" if valid else None, "country_code": "US" if valid else None,
        "national_format": f"({number[2:5]}) {number[5:8]}-{number[8:]}" if valid else None,
        **{name: known if name in asked else None for name, known in _FIELDS.items()},
        **dict.fromkeys(_UNKNOWN),
        "url": f"https://lookups.twilio.com/v2/PhoneNumbers/{number}",
    }  # fmt: skip


def service() -> Json:
    """Return a Verify service."""
    links = ("access_tokens", "entities", "messaging_configurations", "rate_limits", "verifications", "webhooks")
    return {
        "sid": SERVICE, "account_sid": ACCOUNT, "friendly_name": "Shop", "code_length": 6, "lookup_enabled": False,
        "psd2_enabled": False, "skip_sms_to_landlines": False, "dtmf_input_required": True, "tts_name": None,
        "do_not_share_warning_enabled": False, "custom_code_enabled": False, "verify_event_subscription_enabled": False,
        "push": {"include_date": False, "apn_credential_sid": None, "fcm_credential_sid": None}, "default_template_sid": None,
        "totp": {"issuer": "Shop", "time_step": 30, "code_length": 6, "skew": 1}, "whatsapp": {"msg_service_sid": None, "from": None},
        "passkeys": dict.fromkeys(("relying_party", "authenticator_attachment", "discoverable_credentials", "user_verification")),
        "date_created": "2026-11-01T08:00:00Z", "date_updated": "2026-11-01T08:00:00Z", "url": VERIFY,
        "links": {"verification_checks": f"{VERIFY}/VerificationCheck", **{name: f"{VERIFY}/{camel(name)}" for name in links}},
    }  # fmt: skip


def verification(to: str, channel: str) -> Json:
    """Return a pending verification."""
    name, when = sid("VE", 1), "2026-11-24T10:00:00Z"
    return {
        **_verified(to, channel, good=False),
        "lookup": {}, "sna": None, "url": f"{VERIFY}/Verifications/{name}",
        "send_code_attempts": [{"time": when, "channel": channel.upper(), "attempt_sid": sid("VL", 1)}],
    }  # fmt: skip


def check(to: str, *, good: bool) -> Json:
    """Return the result of a code check."""
    return {**_verified(to, "sms", good=good), "sna_attempts_error_codes": []}


def _verified(to: str, channel: str, *, good: bool) -> Json:
    when = "2026-11-24T10:00:00Z"
    return {
        "sid": sid("VE", 1), "service_sid": SERVICE, "account_sid": ACCOUNT, "to": to, "channel": channel,
        "status": "approved" if good else "pending", "valid": good, "amount": None, "payee": None,
        "date_created": when, "date_updated": when,
    }  # fmt: skip


def page(name: str, rows: list[Json], path: str, query: Mapping[str, str]) -> Json:
    """Return a page of rows; the page token identifies the first row of the next page."""
    size, start = int(query.get("PageSize", 50)), int(query.get("PageToken", "PA0")[2:])
    number = start // size
    given = {key: value for key, value in query.items() if key not in {"Page", "PageToken", "PageSize"}}

    def uri(page: int, token: str = "") -> str:
        asked = {**given, "PageSize": size, "Page": page} | ({"PageToken": token} if token else {})
        return f"{path}?{urlencode(asked)}"

    following = uri(number + 1, f"PA{start + size}") if start + size < len(rows) else None
    return {
        name: rows[start : start + size], "start": start, "end": max(start, min(start + size, len(rows)) - 1),
        "page": number, "page_size": size, "uri": uri(number), "first_page_uri": uri(0), "next_page_uri": following,
        "previous_page_uri": uri(number - 1, f"PA{start - size}") if number else None,
    }  # fmt: skip
