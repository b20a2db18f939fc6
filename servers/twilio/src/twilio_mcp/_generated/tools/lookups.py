"""What is known of a phone number.

Made by mcpfactory from the API document and rewritten whole: changes belong in server.py.
"""
# Argument names, and sentences longer than a line, are the API's own.
# ruff: noqa: A002, D301, D402, D403, E501, N803, RUF100

from __future__ import annotations

from mcpfactory_runtime import ToolResult
from mcpfactory_runtime.upstream import UNSET, Operation, Parameter, Unset, Upstream

LOOK_UP_NUMBER = Operation(
    "GET",
    "/v2/PhoneNumbers/{PhoneNumber}",
    parameters=(
        Parameter("PhoneNumber", "path", "PhoneNumber"),
        Parameter("Fields", "query", "Fields"),
        Parameter("CountryCode", "query", "CountryCode"),
    ),
    security=(("basic",),),
    server="lookups",
)


async def look_up_number(
    api: Upstream, /, *, PhoneNumber: str, Fields: str | Unset = UNSET, CountryCode: str | Unset = UNSET
) -> ToolResult:
    """Look up a phone number.

    GET /v2/PhoneNumbers/{PhoneNumber}

    Args:
        api: the connection that the tools share.
        PhoneNumber: The number, in E.164 form, or as it is written in CountryCode
        Fields: What else, separated by commas: line_type_intelligence, caller_name, sim_swap,
            call_forwarding, line_status, sms_pumping_risk
        CountryCode: Country of a number without its code
    """
    return await api.send(LOOK_UP_NUMBER, {"PhoneNumber": PhoneNumber, "Fields": Fields, "CountryCode": CountryCode})
