"""The answers with which a template is tried: the defaults, and each choice of each question once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from mcpfactory_codegen.servers.answers import Answer
from mcpfactory_codegen.servers.questions import TemplateQuestion

__all__ = ["TemplateVariant", "variants"]


@dataclass(frozen=True, slots=True)
class TemplateVariant:
    """A way to answer a template's questions; `name` says what is not the default."""

    name: str
    answers: Mapping[str, Answer] = field(default_factory=dict)


def variants(
    asked: Iterable[TemplateQuestion], told: Collection[str], given: Mapping[str, Answer] | None = None
) -> Iterator[TemplateVariant]:
    """Yield the variants of a template.

    Args:
        asked: its questions.
        told: names of those that mcpfactory answers itself.
        given: answers that every variant has.
    """
    given = dict(given or {})
    yield TemplateVariant("defaults" if not given else "answers as given", given)
    for question in asked:
        if question.hidden or question.name in told or question.name in given:
            continue
        choices = question.choices or (("true", "false") if question.type == "bool" else ())
        for choice in choices:
            if choice != question.default.lower() if question.type == "bool" else choice != question.default:
                yield TemplateVariant(f"{question.name}={choice}", {**given, question.name: choice})
