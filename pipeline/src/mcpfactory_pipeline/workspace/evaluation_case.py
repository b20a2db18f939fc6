"""Evaluation cases in a server's `evals/*.yaml`: a question, and the calls that answer it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mcpfactory_codegen.ir import ProblemCollector
from mcpfactory_codegen.read.parse import ParseError, parse
from mcpfactory_pipeline.base.errors import ConfigError

_HINT: Final = "the form of cases: docs/how-to/evaluate.md"
_VALUE: Final = re.compile(r"\$\{([a-z_]+)\}")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ExpectedCall(_Part):
    """An expected tool call.

    Attributes:
        tool: name of the tool in `tools/list`.
        arguments: all required arguments, accepted by the tool's schema.
        free: names of arguments with free wording: they must be present, with any value.
        says: text that the result must contain.
        person: a person's answer (members of the form) if the tool must ask a person; None if the tool must not ask.
    """

    tool: str
    arguments: Mapping[str, Any] = Field(default_factory=dict)
    free: Annotated[list[str], Field(default_factory=list)]
    says: Annotated[list[str], Field(default_factory=list)]
    person: Mapping[str, Any] | None = None


class EvaluationCase(_Part):
    """A question in the words of a person.

    Attributes:
        name: name of the case, unique within the server.
        question: the question, as a person would ask it.
        right: correct answers, each a list of calls in order; empty if no tool of the server fits.
        answer: text that a model's final answer must contain, regardless of case.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=80)]
    question: Annotated[str, Field(min_length=1, max_length=2000)]
    right: list[Annotated[list[ExpectedCall], Field(min_length=1)]]
    answer: Annotated[list[str], Field(default_factory=list)]

    def filled(self, values: Mapping[str, str]) -> Self:
        """Return the case with each `${name}` replaced by its value."""
        return self.model_validate(fill_placeholders(self.model_dump(), values))

    @property
    def asks_person(self) -> bool:
        """Return True if the call must ask a person."""
        return any(call.person is not None for way in self.right for call in way)


_CASES: Final = TypeAdapter(list[EvaluationCase])


def read_evaluation_cases(folder: Path) -> tuple[EvaluationCase, ...]:
    """Return the cases in `evals/*.yaml` below `folder`, in the order of files and lines."""
    found: dict[str, EvaluationCase] = {}
    for file in sorted([*(folder / "evals").glob("*.yaml"), *(folder / "evals").glob("*.yml")]):
        for case in _read(file):
            if case.name in found:
                raise ConfigError(f"{file}: two cases have the name {case.name!r}", hint="rename one of the two cases")
            found[case.name] = case
    return tuple(found.values())


def _read(file: Path) -> list[EvaluationCase]:
    try:
        data, _ = parse(file.read_bytes(), ProblemCollector())
    except (OSError, ParseError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint=getattr(error, "hint", "")) from error
    if not isinstance(data, dict) or set(data) != {"cases"}:
        raise ConfigError(
            f"{file} must contain a list of cases", hint="cases:\n  - name: …\n    question: …\n    right: …"
        )
    try:
        return _CASES.validate_python(data["cases"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part + 1 if isinstance(part, int) else part) for part in first["loc"])
        raise ConfigError(f"{file}: case {place}: {first['msg']}", hint=_HINT) from error


def fill_placeholders(data: Any, values: Mapping[str, str]) -> Any:
    """Replace each `${name}` in the strings of plain data by its value. Placeholders without a value are kept."""
    if isinstance(data, str):
        return _VALUE.sub(lambda found: values.get(found[1], found[0]), data)
    if isinstance(data, Mapping):
        return {key: fill_placeholders(value, values) for key, value in data.items()}
    if isinstance(data, list):
        return [fill_placeholders(value, values) for value in data]
    return data
