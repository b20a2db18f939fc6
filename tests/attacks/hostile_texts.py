"""Texts of third parties in our output: escape sequences, reordered and invisible text, CI commands."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

from mcpfactory import output
from mcpfactory_pipeline.base.text import printable
from mcpfactory_pipeline.checks.report import Finding, NotChecked, ValidationReport
from mcpfactory_pipeline.checks.report_formats import FORMATS
from mcpfactory_pipeline.delivery.ci.factory_origin import read_ci_settings
from mcpfactory_pipeline.delivery.ci.github import github_workflow
from tests.attacks.http_target import HarmError
from tests.pipeline.staged_workspace import settings_of

HOSTILE = (
    "ok\x1b]0;title\x07\x1b[2J\x1b[8mconcealed\x9b31m\r\n::error file=a::forged\n \u00a0::set-output name=x::y\n\x1b[0m::add-mask::a\n"
    "##[error]forged ##vso[task.setvariable variable=a]b\n\u202eevil\u2066\u200f\U000e0041\u200b\x00\ud800 end"
)
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
    r"|(?m:^\s*::[^\n]*::)|##\[|##vso\["
)


def harm_in(text: str) -> str:
    """Return the part of a text that affects a terminal, a reader or a CI system; "" for harmless text."""
    found = _ACTS.search(text)
    return repr(text[max(0, found.start() - 20) : found.end() + 20]) if found else ""


def _checked(text: str) -> str:
    if harm := harm_in(text):
        raise HarmError(harm)
    return f"{len(text)} characters, none of which acts"


def _report() -> ValidationReport:
    found = Finding(
        "process.stdout", 5, True, HOSTILE, HOSTILE, "mend it", "us", {"stderr": HOSTILE, HOSTILE: [HOSTILE]}
    )
    return ValidationReport(
        HOSTILE, 0, False, (found,), (NotChecked("process.starts", HOSTILE, True),), server={"name": HOSTILE}
    )


def _format(name: str) -> Callable[[Path], str]:
    return lambda _: _checked(FORMATS[name].write(_report()))


def _printed(show: Callable[[], None]) -> Callable[[Path], str]:
    def carry_out(_: Path) -> str:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            show()
        return _checked(out.getvalue()) and _checked(err.getvalue())

    return carry_out


def _json(_: Path) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        output.data({HOSTILE: HOSTILE})
    if json.loads(out.getvalue()) != {HOSTILE: HOSTILE}:
        raise HarmError("programs do not read what was written")
    return _checked(out.getvalue())


def _coloured(_: Path) -> str:
    shown = printable(f"\x1b[1;31mred\x1b[0m {HOSTILE}", color=True)
    if not shown.startswith("\x1b[1;31mred\x1b[0m "):
        raise HarmError("colours are lost")
    return _checked(re.sub("\x1b\\[(?:0|1;31)m", "", shown))


def _stopped(_: Path) -> str:
    text = github_workflow(read_ci_settings(settings_of()))
    steps = [
        step for step in text.split("      - ") if "mcpfactory ci run shard" in step or "mcpfactory ci fold" in step
    ]
    if len(steps) != 3 or not all("::stop-commands::" in step.partition("mcpfactory ci")[0] for step in steps):
        raise HarmError(f"a step prints what servers said while its commands count: {steps}")
    return "each step that prints what servers said stops commands first"


ROWS = {
    **{f"a report as {name}": ("only read", _format(name)) for name in FORMATS},
    "a line of an answer": ("only read", _printed(lambda: output.line(HOSTILE))),
    "a log in a pipe": ("only read", _printed(lambda: output.print_untrusted_text(HOSTILE))),
    "an error and its hint": ("only read", _printed(lambda: output.error(HOSTILE, HOSTILE))),
    "a table": ("only read", _printed(lambda: output.table((HOSTILE, "B"), [(HOSTILE, HOSTILE)]))),
    "a JSON document": ("only read, and the same data", _json),
    "a terminal that colours": ("colours only", _coloured),
    "a step of the CI": ("commands stopped", _stopped),
}
