"""Requests that read resource templates, with variable values that the server itself returned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final
from urllib.parse import quote

from mcpfactory_pipeline.checks.canaries import VARIABLE
from mcpfactory_pipeline.checks.evidence import Evidence, sent_arguments
from mcpfactory_pipeline.checks.exchange import WireExchange, result_text
from mcpfactory_pipeline.checks.requester import Requester
from mcpfactory_pipeline.checks.transport.conversation import Conversation
from mcpfactory_runtime.types import Json

_MAX_TEMPLATES: Final = 5  # maximum number of templates to read
_MAX_URIS: Final = 4  # maximum number of URIs per template; an existing resource ends the search
_MAX_VARIABLES: Final = 8  # maximum number of variables; templates with more variables are not read
_READ: Final = 10_000  # characters; lines are searched only in this part of a result
_MAX_LINES: Final = 16  # maximum number of lines from all results that are tried as values
_UNKNOWN_VALUES: Final = ("mcpfactory-nothing", "987654321")  # values of variables that no resource has
_LONGEST: Final = 64  # characters; a longer line cannot be a name


async def read_templated_resources(evidence: Evidence, conversation: Conversation, requests: Requester) -> None:
    """Read one resource of each template, then resources that do not exist, and add the reads to `evidence`."""
    for template in listed_uri_templates(evidence):
        completed: dict[str, str] = {}
        for name in _variables(template) if "completions" in evidence.capabilities else ():
            if requests.seconds_left() <= 0:
                return
            answer = await requests.request(conversation, "completion/complete", _completion_params(template, name))
            if (value := _completed_value(answer)) is not None:
                completed[name] = value
        for uri in expand_uri_template(template, completed, evidence):
            if requests.seconds_left() <= 0:
                return
            read = await requests.request(conversation, "resources/read", {"uri": uri})
            evidence.later_reads.append(read)
            if read.error is None:
                break
        for unknown in _UNKNOWN_VALUES:
            if requests.seconds_left() > 0:
                uri = _expand(template, dict.fromkeys(_variables(template), unknown))
                evidence.unknown_items.append(await requests.request(conversation, "resources/read", {"uri": uri}))


def listed_uri_templates(evidence: Evidence) -> list[str]:
    """Return the first listed URI templates with 1 to `_MAX_VARIABLES` variables."""
    listing = evidence.lists.get("resources/templates/list")
    texts = [one.get("uriTemplate") for one in (listing.items if listing else ()) if isinstance(one, dict)]
    few = (text for text in texts if isinstance(text, str) and 0 < len(_variables(text)) <= _MAX_VARIABLES)
    return list(islice(few, _MAX_TEMPLATES))


def _variables(template: str) -> list[str]:
    return [name.split(":")[0].rstrip("*") for found in VARIABLE.findall(template) for name in found.split(",")]


def _completion_params(template: str, variable: str) -> Json:
    return {"ref": {"type": "ref/resource", "uri": template}, "argument": {"name": variable, "value": ""}}


def _completed_value(exchange: WireExchange) -> str | None:
    found: Any = (exchange.result or {}).get("completion")
    values = found.get("values") if isinstance(found, dict) else None
    return next((one for one in values if isinstance(one, str)), None) if isinstance(values, list) else None


def expand_uri_template(template: str, completed: Mapping[str, str], evidence: Evidence) -> list[str]:
    """Return the URIs to try.

    The values of variables are completions, arguments of tool calls, or lines of call results.
    """
    calls = [call for call in evidence.calls if not call.failed]
    arguments = {key: value for call in calls for key, value in sent_arguments(call).items() if isinstance(value, str)}
    texts = (result_text(call.exchange.result or {})[:_READ] for call in calls)
    lines = (line.strip() for text in texts for line in text.splitlines())
    others = [*arguments.values(), *islice((line for line in lines if 0 < len(line) <= _LONGEST), _MAX_LINES)]
    known = {**arguments, **completed}
    names = _variables(template)
    sets = [known] if all(name in known for name in names) else []
    sets += [{**dict.fromkeys(names, value), **known} for value in others] if not completed else []
    return list(dict.fromkeys(_expand(template, values) for values in sets))[:_MAX_URIS]


def _expand(template: str, values: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        operator = found[0][1] if found[0][1] in "+#./;?&" else ""
        safe = "/" if operator == "+" else ""
        texts = [quote(values[name], safe, errors="replace") for name in _variables(found[0])]
        return "" if operator in ("#", ";", "?", "&") else operator.strip("+") + ",".join(texts)

    return VARIABLE.sub(value, template)
