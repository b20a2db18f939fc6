"""Judges the small objects of a document (Info, Server, Security Scheme, Parameter) by the models of openapi-pydantic.

What we read, we read leniently; the models say precisely what else is wrong there. Schemas never go through them: that
would cost more than all the rest.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from openapi_pydantic.v3 import v3_0, v3_1
from pydantic import BaseModel, ValidationError

from mcpfactory_codegen.openapi.reading import Reading
from mcpfactory_codegen.openapi.references import Place

__all__ = ["Kind", "judge"]

Kind = Literal["Info", "Server", "SecurityScheme", "Parameter"]

_CODES: Final[dict[Kind, str]] = {
    "Info": "info-invalid",
    "Server": "server-invalid",
    "SecurityScheme": "security-shape",
    "Parameter": "parameter-shape",
}
_MODELS: Final[dict[tuple[str, Kind], type[BaseModel]]] = {
    ("3.0", "Info"): v3_0.Info,
    ("3.0", "Server"): v3_0.Server,
    ("3.0", "SecurityScheme"): v3_0.SecurityScheme,
    ("3.0", "Parameter"): v3_0.Parameter,
    ("3.1", "Info"): v3_1.Info,
    ("3.1", "Server"): v3_1.Server,
    ("3.1", "SecurityScheme"): v3_1.SecurityScheme,
    ("3.1", "Parameter"): v3_1.Parameter,
}


def judge(reading: Reading, kind: Kind, node: dict[str, Any], place: Place) -> None:
    """Report what the model says about an object, one warning per field."""
    try:
        _MODELS[reading.dialect.objects, kind].model_validate(node)
    except ValidationError as error:
        for one in error.errors(include_url=False, include_context=False, include_input=False):
            field = ".".join(str(part) for part in one["loc"])
            reading.report(_CODES[kind], place.down(*one["loc"][:1]), f"{field or kind}: {one['msg'][:200]}")
