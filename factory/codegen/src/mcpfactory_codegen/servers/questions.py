"""The questions of a template: what its `copier.yml` asks, read as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import yaml

from mcpfactory_codegen.servers.scaffold import ScaffoldError, ServerTemplate

__all__ = ["TemplateQuestion", "questions", "refused_settings"]

_SETTINGS: Final = "copier.yml"
_MOST: Final = 1 << 20  # bytes of the file
_REFUSED: Final = ("_tasks", "_migrations", "_jinja_extensions")


@dataclass(frozen=True, slots=True)
class TemplateQuestion:
    """A question. `type` is str, int, float, bool, yaml or json; `default` is a text that may hold variables; `hidden` is never asked."""

    name: str
    type: str
    default: str
    help: str
    choices: tuple[str, ...] = ()
    hidden: bool = False


def questions(template: ServerTemplate) -> tuple[TemplateQuestion, ...]:
    """Return the questions of a template, in their order.

    Raises:
        ScaffoldError: its `copier.yml` is no table of YAML.
    """
    return tuple(_question(name, value) for name, value in _settings(template).items() if not name.startswith("_"))


def refused_settings(template: ServerTemplate) -> tuple[str, ...]:
    """Return the settings of a template that would run something, for which it is refused."""
    return tuple(name for name in _REFUSED if _settings(template).get(name))


def _settings(template: ServerTemplate) -> dict[str, Any]:
    file = template.folder / _SETTINGS
    try:
        if file.is_symlink() or file.stat().st_size > _MOST:
            raise ScaffoldError(f"{_SETTINGS} of template {template.name} is a link, or too large", "do not use it")
        data = yaml.safe_load(file.read_text("utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise ScaffoldError(f"{_SETTINGS} of template {template.name} cannot be read: {said}", "mend it") from None
    if not isinstance(data, dict):
        raise ScaffoldError(f"{_SETTINGS} of template {template.name} is no table", "write NAME: and a question")
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
    """Return the values that may be chosen; a table has words for people before them."""
    rows = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    plain = [
        row.get("value") if isinstance(row, dict) else row[-1] if isinstance(row, list) and row else row for row in rows
    ]
    return tuple(_plain(one) for one in plain[:100])


def _plain(value: Any) -> str:
    """Return a scalar as text; what is nested is named and not spelled out: aliases of YAML may make it endless."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else f"({type(value).__name__})"
