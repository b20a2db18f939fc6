"""Publish targets.

Each target is a frozen record of functions; this module also has the records of arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mcpfactory_codegen.settings import Settings, SettingsError, check_settings
from mcpfactory_pipeline.base.errors import ConfigError
from mcpfactory_pipeline.delivery.publish.candidate_release import CandidateRelease
from mcpfactory_pipeline.workspace.workspace import CONFIG


@dataclass(frozen=True, slots=True)
class TargetProblem:
    """A reason that blocks a release from a target: the rule's id (or ""), the problem, and the remedy."""

    rule: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.rule else self.message


@dataclass(frozen=True, slots=True)
class PublishEvidence:
    """Evidence that a target has a release: `digest` identifies the release at the target.

    `facts` are short texts (a URL, hashes), never a secret.
    """

    digest: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetReleaseState:
    """State of a target under the release's name and version.

    `same` is the evidence if the target has the whole release, byte for byte. Otherwise, `missing` lists the missing
    parts. `other` describes content that differs from the release. With such content, the target can no longer accept
    the release.
    """

    same: PublishEvidence | None = None
    missing: tuple[str, ...] = ()
    other: str = ""


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """The workspace's settings for a target: the defaults, overridden by `[publish.<target>]` in `mcpfactory.toml`.

    `options` has text values by name. Secrets are only in `environ`; an option names the variable. In `folder`, the
    target stores data that it needs to continue.
    """

    target: str
    options: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path

    def __getitem__(self, option: str) -> str:
        return self.options[option]

    def secret(self, option: str) -> str:
        """Return the value of the variable that an option names; messages never contain the value.

        Raises:
            ConfigError: the variable is not set.
        """
        variable = self.options[option]
        if value := self.environ.get(variable, ""):
            return value
        raise ConfigError(
            f"{self.target} needs a token, and {variable} is not set",
            hint=f"set {variable}, or name another variable in {option!r} of [publish.{self.target}] in {CONFIG}",
        )


@dataclass(frozen=True, slots=True)
class PublishTarget:
    """One target of `publish`.

    `build` returns the files for the target (name → bytes). The same release always gives the same bytes. `check`
    validates the release without a network. `inspect` returns the current state of the target. `upload` sends only the
    missing parts, and thereby continues an interrupted upload. It is called only if `inspect` found no `other` content.
    A target without `upload` is a file that people copy. The file is built, and no event is recorded. `options` is the
    model of the target's settings. `needs` returns the targets that must have the release first.

    All functions raise `ConfigError` for invalid settings. `inspect` and `upload` raise `TargetUnavailableError` if the
    target fails or is unreachable, and `PublishError` if the target refuses the release.
    """

    id: str
    title: str
    build: Callable[[CandidateRelease, TargetSettings], Mapping[str, bytes]]
    check: Callable[[CandidateRelease, TargetSettings], Sequence[TargetProblem]] = lambda _release, _settings: ()
    upload: Callable[[CandidateRelease, TargetSettings], PublishEvidence] | None = None
    inspect: Callable[[CandidateRelease, TargetSettings], TargetReleaseState] | None = None
    options: type[Settings] = Settings
    needs: Callable[[CandidateRelease], Sequence[str]] = lambda _release: ()

    def settings(
        self, table: Settings, environ: Mapping[str, str], folder: Path, given: Mapping[str, str]
    ) -> TargetSettings:
        """Return the settings from `[publish.<target>]`, overridden by the options `given` on the command line.

        Raises:
            ConfigError: the option does not exist, or its value is not valid.
        """
        try:
            options = check_settings(self.options, {**table.model_dump(), **given}, f"{CONFIG}: [publish.{self.id}]")
        except SettingsError as error:
            raise ConfigError(str(error), hint=error.hint) from error
        return TargetSettings(self.id, options.model_dump(), environ, folder)
