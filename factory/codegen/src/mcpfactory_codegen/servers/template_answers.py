"""Questions of a template, and their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from mcpfactory_codegen.servers.config import Answer
from mcpfactory_codegen.servers.scaffold import ServerTemplate
from mcpfactory_codegen.servers.templates import SETTINGS, TemplateSourceError
from mcpfactory_codegen.settings import quoted
from mcpfactory_codegen.text import closest_match

_MOST: Final = 1 << 20  # maximum bytes of copier.yml
_REFUSED: Final = ("_tasks", "_migrations", "_jinja_extensions")


@dataclass(frozen=True, slots=True)
class TemplateQuestion:
    """A question of a template. `type` is str, int, float, bool, yaml or json. `default` can contain variables."""

    name: str
    type: str
    default: str
    help: str
    choices: tuple[str, ...] = ()
    hidden: bool = False


def read_questions(template: ServerTemplate) -> tuple[TemplateQuestion, ...]:
    """Return the questions of a template, in their order, or raise a TemplateSourceError."""
    return tuple(_question(name, value) for name, value in _settings(template).items() if not name.startswith("_"))


def unsafe_settings(template: ServerTemplate) -> tuple[str, ...]:
    """Return the settings that would run code during rendering.

    A template with settings that run code must be refused.
    """
    return tuple(name for name in _REFUSED if _settings(template).get(name))


def _settings(template: ServerTemplate) -> dict[str, Any]:
    file = template.folder / SETTINGS
    try:
        if file.is_symlink() or file.stat().st_size > _MOST:
            message = f"{SETTINGS} of template {template.name} is a link, or too large"
            raise TemplateSourceError(message, "use another template")
        data = yaml.safe_load(file.read_text("utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise TemplateSourceError(f"{SETTINGS} of template {template.name} cannot be read: {said}", "fix it") from None
    if not isinstance(data, dict):
        message = f"{SETTINGS} of template {template.name} is not a mapping"
        raise TemplateSourceError(message, "write NAME: and a question for each answer")
    return {str(name): value for name, value in data.items()}


def _question(name: str, value: Any) -> TemplateQuestion:
    if not isinstance(value, dict):
        return TemplateQuestion(name, "str" if isinstance(value, str) else "yaml", _plain(value), "")
    default = value.get("default")
    return TemplateQuestion(
        name,
        _plain(value.get("type")) or ("str" if default is None or isinstance(default, str) else "yaml"),
        _plain(default),
        " ".join(_plain(value.get("help")).split()),
        _choices(value.get("choices")),
        hidden=value.get("when") is False,
    )


def _choices(value: Any) -> tuple[str, ...]:
    """Return the values of choices in a list, or in a table with labels."""
    rows = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    plain = [
        row.get("value") if isinstance(row, dict) else row[-1] if isinstance(row, list) and row else row for row in rows
    ]
    return tuple(_plain(one) for one in plain[:100])


def _plain(value: Any) -> str:
    """Return a scalar as text, or the type of a nested value, which YAML aliases can make infinite."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else f"({type(value).__name__})"


_TABLE: Final = re.compile(r"^\[answers\][^\n]*\n(?:(?!\[)[^\n]*\n?)*", re.M)
_TEMPLATE: Final = re.compile(r"^template *=.*$", re.M)
_TRUE: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def parse_answer_options(given: Iterable[str]) -> dict[str, str]:
    """Return the answers on the command line, `NAME=VALUE`, or raise a TemplateSourceError."""
    found = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not (name and sign):
            raise TemplateSourceError(f"{one!r} is not a valid answer", "write --answer NAME=VALUE")
        found[name] = value
    return found


def checked_answers(
    answers: Mapping[str, Answer], asked: Iterable[TemplateQuestion], preset: Mapping[str, Any]
) -> dict[str, Answer]:
    """Convert the answers to the types of their questions. `preset` has the answers that mcpfactory provides.

    Raise a TemplateSourceError for an unknown question or an invalid value.
    """
    known = {question.name: question for question in asked if not question.hidden and question.name not in preset}
    found = {}
    for name, value in answers.items():
        if name not in known:
            close = closest_match(name, list(known))
            hint = f"did you mean {close!r}? " if close else ""
            message = f"the template has no question {name!r}"
            raise TemplateSourceError(message, f"{hint}questions: {', '.join(known) or 'none'}")
        found[name] = _taken(known[name], value)
    return found


def _taken(question: TemplateQuestion, value: Answer) -> Answer:
    try:
        taken: Answer
        if question.type == "bool":
            taken = _TRUE[str(value).lower()]
        elif question.type in {"int", "float"}:
            if isinstance(value, bool | list):
                raise ValueError
            taken = {"int": int, "float": float}[question.type](str(value))
        else:
            taken = value
    except (KeyError, ValueError):
        message = f"{value!r} is not a valid answer to {question.name}"
        raise TemplateSourceError(message, f"give a value of type {question.type}") from None
    if question.choices and str(taken) not in question.choices:
        message = f"{value!r} is not a valid answer to {question.name}"
        raise TemplateSourceError(message, f"use one of {', '.join(question.choices)}")
    return taken


def render_answers(answers: Mapping[str, Answer]) -> str:
    """Return the table `[answers]` of `mcpfactory.toml`, or "" without answers."""
    if not answers:
        return ""
    return "\n".join(["", "[answers]", *(f"{_key(name)} = {_value(value)}" for name, value in answers.items()), ""])


def replace_answers_table(text: str, answers: Mapping[str, Answer]) -> str:
    """Replace the answers in the text of a `mcpfactory.toml`."""
    table = render_answers(answers)
    if _TABLE.search(text):
        return _TABLE.sub(lambda _: table.lstrip("\n") + "\n", text, count=1).rstrip("\n") + "\n"
    return text.rstrip("\n") + "\n" + table


def replace_template_setting(text: str, source: str) -> str:
    """Replace the template in the text of a `mcpfactory.toml`."""
    line = f"template = {quoted(source)}"
    if _TEMPLATE.search(text):
        return _TEMPLATE.sub(lambda _: line, text, count=1)
    return text.replace("[server]\n", f"[server]\n{line}\n", 1)


def _key(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() and name.isascii() else quoted(name)


def _value(value: Answer) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(quoted, value))}]"
    return json.dumps(value)


@dataclass(frozen=True, slots=True)
class TemplateVariant:
    """A set of answers to a template's questions, named after the answer that is not the default."""

    name: str
    answers: Mapping[str, Answer] = field(default_factory=dict)


def variants(
    asked: Iterable[TemplateQuestion], preset: Collection[str], given: Mapping[str, Answer] | None = None
) -> Iterator[TemplateVariant]:
    """Yield one variant with all default answers, and one variant for each other choice of a question.

    Each variant contains the `given` answers. `preset` has the questions that mcpfactory answers.
    """
    given = dict(given or {})
    yield TemplateVariant("defaults" if not given else "answers as given", given)
    for question in asked:
        if question.hidden or question.name in preset or question.name in given:
            continue
        choices = question.choices or (("true", "false") if question.type == "bool" else ())
        for choice in choices:
            if choice != question.default.lower() if question.type == "bool" else choice != question.default:
                yield TemplateVariant(f"{question.name}={choice}", {**given, question.name: choice})
