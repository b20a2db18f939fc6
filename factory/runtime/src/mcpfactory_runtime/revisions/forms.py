"""Elicitation forms: flat objects of primitive fields, per revision (client/elicitation, Requested Schema).

`read_form` converts any supported schema to the newest form; `project_form` converts that to the form of an older
peer. A single choice changes its form but keeps its titles; a multiple choice cannot be asked of a revision that
lacks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcpfactory_runtime.revisions.model import Revision
from mcpfactory_runtime.revisions.records import RELEASED
from mcpfactory_runtime.types import Json


class FormError(ValueError):
    """The form cannot be asked for; the message names the field."""


_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})

# The newest kinds of fields and their keywords: what `read_form` reads into.
_NEWEST: Final = RELEASED[-1].form_fields


def read_form(schema: Mapping[str, Any]) -> Json:
    """Return the form for a JSON Schema: local references and optional types resolved, foreign keywords removed.

    Raises:
        FormError: the schema is not an object, or a field is nested or of a type that forms do not support.
    """
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, Mapping):
        raise FormError("a form is a schema of type object with properties")
    definitions = schema.get("$defs", {})
    form: Json = {
        "type": "object",
        "properties": {name: _read_field(name, field, definitions) for name, field in properties.items()},
    }
    if schema.get("required"):
        form["required"] = list(schema["required"])
    return form


def project_form(form: Json, revision: Revision) -> Json:
    """Return a form from `read_form` as `revision` knows it.

    Raises:
        FormError: a field is of a kind that the revision does not have.
    """
    return {
        **form,
        "properties": {
            name: _project_field(name, field, revision.form_fields) for name, field in form["properties"].items()
        },
    }


def _read_field(name: str, field: Any, definitions: Mapping[str, Any]) -> Json:
    known = _resolve(field, definitions) if isinstance(field, Mapping) else {}
    if "const" in known:
        known = {**known, "enum": [known["const"]]}
    if "oneOf" not in known and "enum" in known and all(isinstance(value, str) for value in known["enum"]):
        known.setdefault("type", "string")
    if known.get("default") is None:
        known.pop("default", None)
    if known.get("format") not in _FORMATS:
        known.pop("format", None)
    kind = _kind(known)
    if kind is None:
        raise FormError(f"the field {name!r} is no text, number, boolean or choice of texts; forms are flat")
    if kind == "several":
        known["items"] = _resolve(known["items"], definitions)
    return {key: value for key, value in known.items() if key in _NEWEST[kind]}


def _resolve(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Json:
    """Resolve a field: follow a local reference, and take the one alternative that is not null."""
    found = dict(field)
    for _ in range(8):
        reference = found.pop("$ref", None)
        if isinstance(reference, str):
            found = {**definitions.get(reference.rpartition("/")[2], {}), **found}
            continue
        several = found.get("anyOf") or found.get("allOf")
        if _choices(several):  # titled choices, not alternatives
            break
        real = [option for option in several or () if option.get("type") != "null"]
        if len(real) != 1:
            break
        found = {**real[0], **{key: value for key, value in found.items() if key not in ("anyOf", "allOf")}}
    return found


def _kind(field: Json) -> str | None:
    match field.get("type"):
        case "string":
            if "oneOf" in field:
                return "titled" if _choices(field["oneOf"]) else None
            return "enum" if "enum" in field else "string"
        case "number" | "integer":
            return "number"
        case "boolean":
            return "boolean"
        case "array":
            items = field.get("items")
            known = isinstance(items, Mapping) and ("enum" in items or _choices(items.get("anyOf")) or "$ref" in items)
            return "several" if known else None
    return None


def _choices(options: Any) -> bool:
    return (
        isinstance(options, list)
        and bool(options)
        and all(isinstance(option, Mapping) and "const" in option for option in options)
    )


def _project_field(name: str, field: Json, kinds: Mapping[str, frozenset[str]]) -> Json:
    kind = _kind(field)
    assert kind is not None, "read_form let it through"
    if kind == "titled" and kind not in kinds:
        options = field["oneOf"]
        names = [option.get("title", option["const"]) for option in options]
        field = {**field, "enum": [option["const"] for option in options], "enumNames": names}
        kind = "enum"
    if kind not in kinds:
        raise FormError(f"the field {name!r} is a choice of several, which this protocol revision cannot ask for")
    return {key: value for key, value in field.items() if key in kinds[kind]}
