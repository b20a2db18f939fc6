"""Schema of the SARIF 2.1.0 objects that we write, from the named sections. Other members are refused."""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
BAG: dict[str, Any] = {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True, "items": TEXT}}}
LEVEL: dict[str, Any] = {"enum": ["none", "note", "warning", "error"]}
INDEX: dict[str, Any] = {"type": "integer", "minimum": -1}


def shape(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": {**properties, "properties": BAG},
    }


def many(item: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": item, **more}


MESSAGE = shape("text", text=TEXT)  # §3.11
ARTIFACT = shape(uri={"type": "string", "pattern": "^[^ \\\\]+$"}, uriBaseId=TEXT, description=MESSAGE)  # §3.4
ONE: dict[str, Any] = {"type": "integer", "minimum": 1}
REGION = shape(startLine=ONE, startColumn=ONE, endLine=ONE, endColumn=ONE)  # §3.30
PHYSICAL = shape("artifactLocation", artifactLocation=ARTIFACT, region=REGION)  # §3.29
LOGICAL = shape(name=TEXT, fullyQualifiedName=TEXT, kind=TEXT)  # §3.33
LOCATION = shape(physicalLocation=PHYSICAL, logicalLocations=many(LOGICAL, uniqueItems=True))  # §3.28
SUPPRESSION = shape(  # §3.35
    "kind",
    kind={"enum": ["inSource", "external"]},
    justification=TEXT,
)
RESULT = shape(  # §3.27
    "message",
    ruleId=TEXT,
    ruleIndex=INDEX,
    level=LEVEL,
    message=MESSAGE,
    locations=many(LOCATION),
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    suppressions=many(SUPPRESSION, uniqueItems=True),
)
DESCRIPTOR = shape(  # §3.49
    "id",
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    fullDescription=MESSAGE,
    help=MESSAGE,
    defaultConfiguration=shape(level=LEVEL),
)
DRIVER = shape("name", name=TEXT, version=TEXT, rules=many(DESCRIPTOR, uniqueItems=True))  # §3.19
NOTIFICATION = shape("message", level=LEVEL, message=MESSAGE, associatedRule=shape(id=TEXT, index=INDEX))  # §3.58
INVOCATION = shape(  # §3.20
    "executionSuccessful", executionSuccessful={"type": "boolean"}, toolExecutionNotifications=many(NOTIFICATION)
)
RUN = shape(  # §3.14
    "tool",
    tool=shape("driver", driver=DRIVER),
    invocations=many(INVOCATION),
    originalUriBaseIds={"type": "object", "additionalProperties": ARTIFACT},
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    results=many(RESULT),
)
SARIF = shape("version runs", version={"const": "2.1.0"}, runs=many(RUN)) | {
    "$schema": "http://json-schema.org/draft-07/schema#"
}
SARIF["properties"]["$schema"] = {"type": "string", "format": "uri"}  # §3.13
