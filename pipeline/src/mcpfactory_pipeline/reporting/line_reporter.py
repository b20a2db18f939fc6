from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, TextIO

from mcpfactory_pipeline.base import events
from mcpfactory_pipeline.base.text import pluralize, printable, terminal_width, wrap

# Marks must be readable without color.
OUTCOME_LABELS: Final = {
    "passed": ("ok", "green"), "failed": ("FAILED", "red"), "errored": ("ERROR", "red"),
    "interrupted": ("interrupted", "yellow"), "inconclusive": ("unclear", "yellow"),
    "blocked": ("blocked", "yellow"), "held": ("held", "yellow"),
    "up-to-date": ("up to date", "dim"), "running": ("running", "cyan"),
    "waiting": ("waiting", "dim"),
}  # fmt: skip
# Statuses (`_status`) of stages, worst first. A passed stage is stale here.
_WORST: Final = ("failed", "errored", "interrupted", "inconclusive", "running", "waiting", "passed", "")
_INDENT: Final = "    "


def event_lines(event: events.RunEvent, *, excerpt: bool = False) -> list[str]:
    """Return the lines that report an event; empty if no line reports the event.

    With `excerpt`, the report of a failed stage includes lines of its log.
    """
    lines = _lines_of(event)
    if excerpt and isinstance(event, events.FailedStageLog):
        lines = [*(f"  {event.stage} | {line}" for line in event.lines), *lines]
    return [printable(line) for line in lines]


def _lines_of(event: events.RunEvent) -> list[str]:
    match event:
        case events.RunStarted(servers=servers) if not servers:
            return ["no server yet; hint: mcpfactory new --from-openapi FILE"]
        case events.StageStarted(server, stage, reasons, attempt):
            again = f", attempt {attempt}" if attempt > 1 else ""
            return [f"{server}: {stage} starts{again} ({'; '.join(reasons)})"]
        case events.StageFinished(server, stage, outcome, message, seconds):
            return [f"{server}: {stage} {outcome} in {seconds:.1f} s: {message}"]
        case events.StageSkipped(server, stage, verdict, reasons) if verdict in {"blocked", "held", "waiting"}:
            return [f"{server}: {stage} {verdict}: {'; '.join(reasons)}"]
        case events.FailedStageLog(server, stage):
            return [f"  log: {_log_command(server, stage)}"]
        case events.RunWaiting(server, holder):
            stages = ", ".join(holder.get("stages", ()))
            who = f" (process {holder['pid']}{stages and f', running: {stages}'})" if holder else ""
            return [f"{server}: another mcpfactory runs it{who}; waiting"]
        case events.ServerUnusable(server, message, hint):
            return [f"{server}: error: {message}", *([f"{server}: hint: {hint}"] if hint else [])]
        case events.RunFinished(servers, ran, seconds, pruned, failed):
            return [*_summary(dict(servers), ran, seconds, failed), *pruned_lines(pruned)]
    return []


def _log_command(server: str, stage: str) -> str:
    return f"mcpfactory pipeline history {server} {stage}"


def _summary(servers: dict[str, str], ran: int, seconds: float, failed: Mapping[str, str]) -> list[str]:
    if not servers:
        return []
    counts = Counter(servers.values())
    outcomes = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOME_LABELS if counts[outcome])
    stages = f"{pluralize(ran, 'stage')} ran" if ran else "nothing to do: no stage ran"
    lines = [f"{pluralize(len(servers), 'server')}: {outcomes}; {stages} in {seconds:.1f} s"]
    if set(servers.values()) & {"failed", "blocked"}:
        cause = next((_log_command(*one) for one in failed.items()), "mcpfactory inbox")
        lines.append(
            f"hint: {cause} shows the cause; a failed stage runs again after its inputs change, or with --force"
        )
    return lines


def pruned_lines(pruned: Mapping[str, int]) -> list[str]:
    """Return a line about the deleted candidates; empty if no candidate was deleted."""
    if not pruned:
        return []
    size = sum(pruned.values()) / 1e6
    return [f"{pluralize(len(pruned), 'old candidate')} pruned, {size:.1f} MB ([artifacts] keep): {', '.join(pruned)}"]


class LineReporter(events.Reporter):
    """Reporter that writes lines of JSON or text.

    On a terminal, text is wrapped. Elsewhere, such as in CI, a failed stage comes with lines of its log.
    """

    def __init__(self, stream: TextIO, *, as_json: bool) -> None:
        self._stream, self._as_json = stream, as_json

    def emit(self, event: events.RunEvent) -> None:
        """Write the lines of one event.

        As JSON, each event is one line, and the last line is the event `run.finished`.
        """
        if self._as_json:
            lines = [json.dumps(event.to_json(), ensure_ascii=False)]
        elif self._stream.isatty():
            lines = [part for line in event_lines(event) for part in _wrap_line(line)]
        else:
            lines = event_lines(event, excerpt=True)
        self._stream.writelines(f"{line}\n" for line in lines)
        self._stream.flush()


def _wrap_line(line: str) -> list[str]:
    """Wrap a line for the terminal."""
    width = shutil.get_terminal_size().columns
    if terminal_width(line) <= width:
        return [line]
    first, *rest = wrap(line, width - len(_INDENT))
    return [first, *(_INDENT + part for part in rest)]


def status_table(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return header and cells from the rows of `status`.

    A cell of a stage is its outcome, or `stale` if the stage passed but must run again.
    """
    stages = list(dict.fromkeys(stage for row in rows for stage in row["stages"]))
    live = ("PUBLISHED",) if any(row.get("published") for row in rows) else ()
    header = ("SERVER", "CANDIDATE", *(stage.upper() for stage in stages), "CHANNELS", *live)
    return header, [(*_cells(row, stages), *(_live(row) for _ in live)) for row in rows]


def status_summary(rows: Sequence[Mapping[str, Any]]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return header and cells from the rows of `status`, with one cell for all stages of a server.

    The cell is `ok`, or the worst stage with its outcome and the number of other stages that are not ok.
    """
    return ("SERVER", "VERSION", "STAGES", "CHANNELS"), [
        (
            row["server"],
            row["version"] or "-",
            _stages_cell(row),
            "-" if row.get("problem") else _channels_cell(row, brief=True),
        )
        for row in rows
    ]


def _stages_cell(row: Mapping[str, Any]) -> str:
    if row.get("problem"):
        return "error"
    ok = OUTCOME_LABELS["passed"][0]
    open_stages = [name for name in row["stages"] if _cell(row, name) != ok]
    if not open_stages:
        return ok if row["stages"] else "-"
    name = min(open_stages, key=lambda one: _WORST.index(_status(row, one)))
    others = f" +{len(open_stages) - 1}" if len(open_stages) > 1 else ""
    return f"{name} {_cell(row, name) if _status(row, name) else 'not run'}{others}"


def _cells(row: Mapping[str, Any], stages: Sequence[str]) -> tuple[str, ...]:
    if problem := row.get("problem"):
        return (row["server"], "-", *("?" for _ in stages), f"error: {problem['message']}")
    newest = row["candidate"]
    return (
        row["server"],
        f"{row['version']} {newest[:8]}" if newest else "-",
        *(_cell(row, stage) for stage in stages),
        _channels_cell(row),
    )


def _channels_cell(row: Mapping[str, Any], *, brief: bool = False) -> str:
    """Return the releases of the channels; if `brief`, without the version of the newest candidate."""
    newest = row["candidate"]
    offers, holds = row["channels"], row["holds"]
    rejected = row.get("rejected", {})
    channels = ", ".join(
        _channel(name, offers.get(name), newest, held=name in holds, brief=brief)
        + (f" ({rejected[name]['version']} rejected)" if name in rejected else "")
        for name in {**offers, **holds, **rejected}
    )
    return channels or "-"


def _channel(name: str, release: Mapping[str, Any] | None, newest: str | None, *, held: bool, brief: bool) -> str:
    older = release is not None and release["candidate"] != newest
    words = f"{name} {release['version']}" if release and (older or not brief) else name
    other = f" ({release['candidate'][:8]})" if release and older and not brief else ""
    return words + other + (" held" if held else "")


def _live(row: Mapping[str, Any]) -> str:
    """Return the published release of each target. A star marks a release that differs from the channel's release."""
    offers = row.get("channels", {})
    return (
        ", ".join(
            f"{target} {live['version']}"
            + ("" if offers.get(live["channel"], {}).get("candidate") == live["candidate"] else "*")
            for target, live in row.get("published", {}).items()
        )
        or "-"
    )


def _status(row: Mapping[str, Any], name: str) -> str:
    """Return "running", "waiting", the outcome of the stage, or "" if the stage never ran."""
    if name in row["at_work"]:
        return "running"
    stage = row["stages"].get(name, {})
    return stage.get("outcome") or ("waiting" if stage.get("verdict") == "waiting" else "")


def _cell(row: Mapping[str, Any], name: str) -> str:
    status, stage = _status(row, name), row["stages"].get(name, {})
    label = OUTCOME_LABELS[status][0] if status else "-"
    if status != stage.get("outcome") or not stage["stale"]:
        return label
    return "stale" if status == "passed" else f"{label} (stale)"
