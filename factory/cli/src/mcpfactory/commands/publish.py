from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mcpfactory import complete, output
from mcpfactory.options import AsJson, Channel, DryRun, Name, workspace_in
from mcpfactory_runtime.errors import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.delivery.publish.publish import PublishOutcome


def publish(
    name: Name,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Target to publish to (repeatable) [default: the candidate's own targets]",
            autocompletion=complete.targets,
        ),
    ] = None,
    channel: Channel = "production",
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="TARGET.OPTION=VALUE", help="Target option that overrides mcpfactory.toml (repeatable)"
        ),
    ] = None,
    dry_run: DryRun = False,
    check: Annotated[
        bool, typer.Option("--check", help="Check without contacting targets or the network; change nothing")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Publish a server's release from a channel.

    The published bytes are those that were checked, never a rebuild.
    """
    from mcpfactory_pipeline.delivery.publish.publish import publish as publish_release

    if dry_run and check:
        output.fail("use --check, which needs no network", "--check needs no network", Exit.USAGE)
    found = publish_release(
        workspace_in(),
        name,
        targets or (),
        channel=channel,
        given=_target_options(options or []),
        mode="check" if check else "dry-run" if dry_run else "send",
    )
    if as_json:
        output.data([outcome.to_json() for outcome in found])
    else:
        for outcome in found:
            _print_outcome(outcome)
    if any(outcome.outcome == "refused" for outcome in found):
        raise typer.Exit(Exit.NO)


def _target_options(options: list[str]) -> dict[str, dict[str, str]]:
    given: dict[str, dict[str, str]] = {}
    for option in options:
        place, equals, value = option.partition("=")
        target, dot, key = place.partition(".")
        if not equals or not dot:
            output.fail(f"--set {option!r} is not a valid option", "--set pypi.url=https://…", Exit.USAGE)
        given.setdefault(target, {})[key] = value
    return given


def _print_outcome(outcome: PublishOutcome) -> None:
    output.line(f"{outcome.target}: {outcome.message}")
    for problem in outcome.problems:
        words = f"{problem['rule']} {problem['message']}" if problem["rule"] else problem["message"]
        output.error(words)
        if problem["hint"]:
            output.hint(problem["hint"])
    if outcome.outcome in {"made", "would"}:
        for file, digest in outcome.files.items():
            output.line(f"  {outcome.folder + '/' if outcome.folder else ''}{file}  {digest}")
    for fact, value in outcome.evidence.items():
        output.line(f"  {fact}: {value}")
