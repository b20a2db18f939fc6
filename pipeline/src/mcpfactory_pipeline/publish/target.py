"""What a target is: a frozen record of four plain functions, and what these get and give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpfactory_codegen.text import listed
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.publish.release import Release
from mcpfactory_pipeline.workspace.workspace import CONFIG

__all__ = ["Evidence", "Live", "Problem", "Settings", "Target"]


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a release cannot go to a target: the id of the rule (or "" where none is named), what is wrong, and what to do."""

    rule: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.rule else self.message


@dataclass(frozen=True, slots=True)
class Evidence:
    """That a target has a release: `digest` is what it knows it by; `facts` are small texts (a URL, hashes), never a secret."""

    digest: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Live:
    """What a target has under the release's name and version.

    `same` is the evidence when it is the whole release, byte for byte. Otherwise `missing` names what is not there yet, and
    `other` says in words what is there and is something else: then the target cannot take the release any more.
    """

    same: Evidence | None = None
    missing: tuple[str, ...] = ()
    other: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the workspace says about a target: `[publish.<target>]` of the root `mcpfactory.toml` over the target's defaults.

    `options` are texts by name. Secrets stand in `environ` only; an option names the variable. `folder` is where the target
    may keep what it wants to find again when it continues.
    """

    target: str
    options: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path

    def __getitem__(self, option: str) -> str:
        return self.options[option]

    def secret(self, option: str) -> str:
        """Return the value of the variable that an option names. Raises `ConfigError` when it is not set; the value is in no message."""
        variable = self.options[option]
        if value := self.environ.get(variable, ""):
            return value
        raise ConfigError(
            f"{self.target} needs a token, and {variable} is not set",
            hint=f"set {variable}, or name another variable: [publish.{self.target}] {option} of {CONFIG}",
        )


def _nothing(_release: Release, _settings: Settings) -> tuple[Problem, ...]:
    return ()


def _no_needs(_release: Release) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Target:
    """One place to publish to.

    `make` gives the files for it (name → bytes): from the release alone, the same bytes each time. `check` judges the release
    without a network. `look` says what the target has now. `send` brings there what is missing, and only that, so that it
    continues what broke off; it is called only when `look` found nothing `other`. A target without `send` is a file that people
    take: it is made, and nothing is recorded; so is one while its option `place`, which says where to, is empty. `options` are the
    names of its settings with their defaults. `needs` gives the targets that must have the release first.

    All four raise `ConfigError` for settings that cannot be used; `look` and `send` also `TargetError` when the target
    cannot be reached or broke, and `PublishError` when it says no.
    """

    id: str
    title: str
    make: Callable[[Release, Settings], Mapping[str, bytes]]
    check: Callable[[Release, Settings], Sequence[Problem]] = _nothing
    send: Callable[[Release, Settings], Evidence] | None = None
    look: Callable[[Release, Settings], Live] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    needs: Callable[[Release], Sequence[str]] = _no_needs
    place: str = ""

    def is_file(self, settings: Settings) -> bool:
        """Whether publishing there only makes its files."""
        return self.send is None or self.look is None or bool(self.place and not settings[self.place])

    def settings(
        self, table: Mapping[str, Any], environ: Mapping[str, str], folder: Path, given: Mapping[str, str]
    ) -> Settings:
        """Return the settings from `[publish.<target>]`, with those `given` on the command line above. Raises `ConfigError`."""
        for name, value in {**table, **given}.items():
            if name not in self.options:
                raise ConfigError(
                    f"{CONFIG}: publish.{self.id} has an unknown option {name!r}",
                    hint=listed(name, self.options, "options"),
                )
            if not isinstance(value, str):
                raise ConfigError(f"{CONFIG}: publish.{self.id}.{name} is not text", hint=f'{name} = "…"')
        return Settings(self.id, {**self.options, **table, **given}, environ, folder)
