from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Self

from pydantic import Field

from mcpfactory_pipeline.operations.operation import (
    Channel,
    ConfirmedOperation,
    Omitted,
    OperationContext,
    OperationError,
    OperationResult,
    Server,
    param,
)


class PublishResult(OperationResult):
    """A release, and the outcome at each target."""

    server: str
    channel: str
    candidate: str
    version: str
    outcomes: tuple[dict[str, Any], ...] = Field(
        description="`published`, `there` (already published), `made`, `would`, `fit` or `refused` for each target, with "
        "evidence, files and problems."
    )

    def lines(self) -> list[str]:
        """Return a line for each target, with the evidence and the files."""
        return [line for one in self.outcomes for line in _outcome_lines(one)]

    def errors(self) -> list[tuple[str, str]]:
        """Return the reasons why targets refused the release, each with a hint."""
        found = [problem for one in self.outcomes for problem in one["problems"]]
        return [(" ".join(filter(None, (one["rule"], one["message"]))), one["hint"]) for one in found]


def _outcome_lines(outcome: dict[str, Any]) -> Iterable[str]:
    yield f"{outcome['target']}: {outcome['message']}"
    if outcome["outcome"] in {"made", "would"}:
        folder = outcome["folder"] and f"{outcome['folder']}/"
        yield from (f"  {folder}{file}  {digest}" for file, digest in outcome["files"].items())
    yield from (f"  {fact}: {value}" for fact, value in outcome["evidence"].items())


class Publish(ConfirmedOperation):
    """Publish a server's release from a channel.

    The command publishes the checked bytes, never a rebuild.
    """

    command: ClassVar[str] = "publish"
    title: ClassVar[str] = "Publish"
    result: ClassVar[type[OperationResult]] = PublishResult
    question: ClassVar[str] = (
        "Publish {server} {version} (candidate {candidate}) of {channel}? It cannot be taken back."
    )
    destructive: ClassVar[bool] = True
    omit: ClassVar[Omitted] = {"dashboard": "tokens of targets are only available at a terminal or in CI"}

    server: Server
    targets: tuple[str, ...] = param(
        "Publish to this target (repeatable) [default: the candidate's own targets]",
        (),
        metavar="TARGET",
        names="targets",
    )
    channel: Channel = "production"
    options: tuple[str, ...] = param(
        "Override a target option of mcpfactory.toml (repeatable)",
        (),
        flags=("--set",),
        metavar="TARGET.OPTION=VALUE",
        omit={"mcp": "a person decides where releases and tokens are sent"},
    )
    check: bool = param(
        "Check without network access; change nothing",
        False,
        omit={"mcp": "a person is asked about the result of a dry run"},
    )
    candidate: str = param(
        "Candidate ID that the channel must offer [default: any]",
        "",
        omit={"cli": "a person at a terminal sees what the channel offers"},
    )

    def run(self, context: OperationContext) -> PublishResult:
        """Publish the release; in a dry run, only read the current state of the targets."""
        from mcpfactory_pipeline.delivery.publish.publish import publish

        if context.dry_run and self.check:
            raise OperationError(
                "--check and --dry-run cannot be combined", hint="leave out --dry-run, because --check needs no network"
            )
        found = publish(
            context.workspace,
            self.server,
            self.targets,
            channel=self.channel,
            candidate=self.candidate,
            mode="check" if self.check else "dry-run" if context.dry_run else "send",
            given=_target_options(self.options),
            clock=context.clock,
        )
        message = "; ".join(f"{one.target}: {one.message}" for one in found)
        return PublishResult(
            message=message,
            server=self.server,
            channel=self.channel,
            candidate=found[0].candidate,
            version=found[0].version,
            outcomes=tuple(one.to_json() for one in found),
            dry_run=self.check or context.dry_run,
        )

    def bind(self, tried: PublishResult) -> Self:
        """Return the operation, restricted to the candidate and the targets of the dry run."""
        targets = tuple(one["target"] for one in tried.outcomes)
        return self.model_copy(update={"candidate": tried.candidate, "targets": targets})


def _target_options(options: Iterable[str]) -> dict[str, dict[str, str]]:
    given: dict[str, dict[str, str]] = {}
    for option in options:
        place, equals, value = option.partition("=")
        target, dot, key = place.partition(".")
        if not equals or not dot:
            raise OperationError(
                f"--set {option!r} is not a valid option",
                hint="write TARGET.OPTION=VALUE, such as --set pypi.url=https://…",
            )
        given.setdefault(target, {})[key] = value
    return given
