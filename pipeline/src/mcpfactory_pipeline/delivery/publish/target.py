"""Types for publish targets."""

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
    """A reason that prevents publication: rule ID (or ""), problem, and hint."""

    rule: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}" if self.rule else self.message


@dataclass(frozen=True, slots=True)
class PublishEvidence:
    """Evidence of a publication. `digest` identifies the release at the target, and `facts` are not secret."""

    digest: str
    facts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TargetReleaseState:
    """State of the release at a target.

    Attributes:
        same: evidence that the target has the whole release, byte for byte.
        missing: parts that the target lacks.
        other: description of different content with the same version. Such content blocks the release.
    """

    same: PublishEvidence | None = None
    missing: tuple[str, ...] = ()
    other: str = ""


@dataclass(frozen=True, slots=True)
class TargetSettings:
    """Settings of a target.

    Attributes:
        options: values by name. For a secret, the value is the name of a variable in `environ`.
        folder: folder in which the target stores data between runs.
    """

    target: str
    options: Mapping[str, str]
    environ: Mapping[str, str]
    folder: Path

    def __getitem__(self, option: str) -> str:
        return self.options[option]

    def secret(self, option: str) -> str:
        """Return the value of the environment variable in an option."""
        variable = self.options[option]
        if value := self.environ.get(variable, ""):
            return value
        raise ConfigError(
            f"{self.target} needs a token, and {variable} is not set",
            hint=f"set {variable}, or name another variable in {option!r} of [publish.{self.target}] in {CONFIG}",
        )


@dataclass(frozen=True, slots=True)
class PublishTarget:
    """A target for publication.

    Attributes:
        build: returns the files for the target (name → bytes). The same release always gives the same bytes.
        check: validates the release without a network.
        upload: sends only the missing parts. The field is None for a target that only builds files.
        inspect: returns the current state of the target.
        needs: returns the targets that must have the release first.
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
        """Return the settings in `[publish.<target>]`."""
        try:
            options = check_settings(self.options, {**table.model_dump(), **given}, f"{CONFIG}: [publish.{self.id}]")
        except SettingsError as error:
            raise ConfigError(str(error), hint=error.hint) from error
        return TargetSettings(self.id, options.model_dump(), environ, folder)
