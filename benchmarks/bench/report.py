"""Reports of measurements: text for a terminal, JSON, and the tables of docs/explanation/performance.md."""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
from pathlib import Path
from typing import Any

from benchmarks.bench.targets import TARGETS, Samples
from benchmarks.bench.workloads import ALL, OURS, QUANTITIES, Quantity

RESULTS = Path(__file__).resolve().parents[1] / "results"
PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/performance.md"


def facts() -> dict[str, Any]:
    """Return the facts about this machine that figures depend on."""
    model = (
        re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) if Path("/proc/cpuinfo").exists() else None
    )
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "processor": model[1] if model else platform.processor(),
    }


def as_text(samples: Samples) -> str:
    """Return the medians with their spread and ratio, then the targets."""
    lines = []
    for key, by_peer in samples.items():
        quantity = QUANTITIES[key]
        lines += ["", _label(quantity)]
        ours = statistics.median(by_peer[OURS])
        for name, values in by_peer.items():
            ratio = f"   ours / this = {ours / statistics.median(values):.2f}" if name != OURS else ""
            lines.append(f"  {name:18} {_number(statistics.median(values)):>10}   {_spread(values)}{ratio}")
    lines += ["", "Targets"]
    for text, bound, figure, verdict in _targets(samples):
        lines.append(f"  {verdict:8} {figure:>8}  (target {bound})  {text}")
    return "\n".join(lines)


def save(samples: Samples) -> Path:
    """Write all measurements to benchmarks/results/latest.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / "latest.json"
    path.write_text(json.dumps({"machine": facts(), "samples": samples}, indent=1))
    return path


def fill(samples: Samples) -> None:
    """Write the tables into docs/explanation/performance.md; rows of quantities that were not measured stay."""
    page = PAGE.read_text()
    for name, table in (("targets", _target_table(samples)), ("medians", _median_table(samples))):
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        old, end, after = rest.partition(f"<!-- /{name} -->")
        page = f"{before}{begin}{merged(old, table)}\n{end}{after}"
    PAGE.write_text(page)


def merged(old: str, new: str) -> str:
    """Return a Markdown table with its rows replaced by those of a newer one; rows of the newer one alone come last."""
    fresh = {_row_key(line): line for line in new.splitlines() if line.startswith("|")}
    kept = [line for line in old.splitlines() if line.startswith("|")]
    lines = [fresh.pop(_row_key(line), line) for line in kept]
    rest = [line for line in new.splitlines() if not line.startswith("|")]
    return "\n".join([*lines, *fresh.values(), *rest])


def _row_key(line: str) -> str:
    return line.split("|")[1].strip()


def _targets(samples: Samples) -> list[tuple[str, str, str, str]]:
    rows = []
    for target in TARGETS:
        figure = target.figure(samples)
        if figure is not None:
            rows.append((target.text, target.bound, f"{figure:.2f}", "met" if target.met(figure) else "NOT MET"))
    return rows


def _target_table(samples: Samples) -> str:
    head = ["| target | bound | measured | result |", "|---|---|---|---|"]
    return "\n".join(
        head + [f"| {text} | {bound} | {figure} | {met} |" for text, bound, figure, met in _targets(samples)]
    )


def _median_table(samples: Samples) -> str:
    """Return the medians of quantities that were measured for several SDKs or have no target."""
    judged = {key for target in TARGETS for key, _ in (target.numerator, target.denominator or target.numerator)}
    lines = [f"| quantity | {' | '.join(ALL)} |", f"|---|{'---|' * len(ALL)}"]
    for key, by_peer in samples.items():
        if len(by_peer.keys() & set(ALL)) > 1 or key not in judged:
            quantity = QUANTITIES[key]
            figures = [_number(statistics.median(by_peer[name])) if name in by_peer else "" for name in ALL]
            lines.append(f"| {_label(quantity)} | {' | '.join(figures)} |")
    return "\n".join([*lines, "", _machine()])


def _machine() -> str:
    found = facts()
    return f"Machine: {found['cores']} cores of {found['processor']}, {found['system']}, Python {found['python']}."


def _label(quantity: Quantity) -> str:
    return f"{quantity.title} ({quantity.unit})" if quantity.unit else quantity.title


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _spread(values: list[float]) -> str:
    """Return the interquartile range as a share of the median, which one disturbed round does not change."""
    if len(values) < 2:
        return "one value"
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"± {(high - low) / 2 / middle:.0%}"
