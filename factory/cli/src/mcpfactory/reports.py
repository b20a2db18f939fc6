"""Reports in the forms that were asked for: on stdout, in a file, in several files of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcpfactory import output
from mcpfactory.exits import Exit

if TYPE_CHECKING:
    from mcpfactory_pipeline.checks import Report

__all__ = ["FORMATS", "Wanted", "give", "wanted"]

FORMATS: Final = (
    "text",
    "json",
    "junit",
    "sarif",
    "markdown",
    "html",
    "badge",
)  # those of checks.formats, which is not loaded for help

Wanted = list[tuple[str, Path | None]]


def wanted(formats: Sequence[str], outputs: Sequence[Path], *, as_json: bool) -> Wanted:
    """Return the forms to write, and where each goes (None: stdout). Ends the command when that does not go together."""
    from mcpfactory_pipeline.checks.formats import FORMATS as KNOWN
    from mcpfactory_pipeline.checks.formats import format_of

    if unknown := [name for name in formats if name not in KNOWN]:
        output.fail(f"there is no format {unknown[0]!r}", f"formats: {', '.join(KNOWN)}", Exit.USAGE)
    if not formats:
        named = [(format_of(path.name), path) for path in outputs]
        if nameless := [path for name, path in named if name is None]:
            output.fail(
                f"the name of {nameless[0]} does not say which format it has", f"--format {'|'.join(KNOWN)}", Exit.USAGE
            )
        found: Wanted = [(name, path) for name, path in named if name is not None]
    elif not outputs and len(formats) == 1 and not as_json:
        return [(formats[0], None)]
    elif len(outputs) == 1 and (len(formats) > 1 or outputs[0].is_dir()):
        found = [(name, outputs[0] / KNOWN[name].file) for name in formats]
    elif len(outputs) == len(formats):
        found = list(zip(formats, outputs, strict=True))
    else:
        output.fail(
            f"{len(formats)} formats and {len(outputs)} outputs",
            "one --output for each --format in the same order, or one that is a folder for all",
            Exit.USAGE,
        )
    return [*found, ("json" if as_json else "text", None)]


def give(report: Report, places: Wanted) -> None:
    """Write a report in each form. Ends the command when a file cannot be written."""
    from mcpfactory_pipeline.checks.formats import FORMATS as KNOWN

    for name, path in places:
        text = KNOWN[name].write(report)
        if path is None:
            output.raw(text.rstrip("\n") + "\n")
            continue
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            output.fail(
                f"{path} cannot be written: {error.strerror}", "name a file in a folder that you own", Exit.BROKEN
            )
        output.note(f"wrote {path}")
