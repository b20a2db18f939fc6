"""What pydantic says about a person's table, as one sentence: where it is, what is wrong, and which field was probably meant."""

from __future__ import annotations

from pydantic import BaseModel, ValidationError

from mcpfactory_codegen.text.nearest import nearest

__all__ = ["first_wrong"]


def first_wrong(error: ValidationError, table: str, *models: type[BaseModel]) -> str:
    """Return the first thing that is wrong in `[table]`, whose records are these models."""
    first = error.errors(include_url=False)[0]
    where = ".".join([table, *map(str, first["loc"])])
    if first["type"] != "extra_forbidden":
        return f"{where}: {first['msg']}"
    meant = nearest(str(first["loc"][-1]), [name for model in models for name in model.model_fields])
    return f"{where}: nothing reads this field" + (f"; did you mean {meant!r}?" if meant else "")
