"""What became of the documents, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.staging.arrival import Arrival

__all__ = ["HEAD", "explained", "findings", "line", "total"]

HEAD = f"{'document':26} {'kind':14} {'operations':>10} {'tools':>6} {'seconds':>8}  in staging"


def line(one: Arrival) -> str:
    """The row of a document."""
    verdict = "yes" if one.arrived else f"hostile: {one.hostile}" if one.hostile else f"no: {', '.join(_rules(one))}"
    return f"{one.name:26} {one.kind:14} {one.operations:10} {one.tools:6} {one.seconds:8.1f}  {verdict}"


def explained(arrivals: Sequence[Arrival]) -> Iterator[str]:
    """For each document that does not arrive: the stage, the rule or test, what was found, and the line."""
    for one in arrivals:
        if one.arrived:
            continue
        yield f"{one.name} ({one.kind})"
        for obstacle in one.obstacles:
            rule = f" {obstacle.rule}" if obstacle.rule else ""
            yield f"  {obstacle.stage}{rule}: {obstacle.text}"
            if obstacle.place:
                yield f"    at {obstacle.place}"


def findings(arrivals: Sequence[Arrival]) -> Iterator[str]:
    """For each document what validate found in its server, of severity 2 and more: rule, how often, and the first with their lines."""
    for one in arrivals:
        yield f"{one.name}:" + ("" if one.findings else " no finding of severity 2 or more")
        for found in one.findings:
            yield f"  {found.severity} {found.rule}: {found.count}"
            for text, place in zip(found.texts, found.places, strict=True):
                yield f"    {text}" + (f" ({place})" if place else "")


def total(arrivals: Sequence[Arrival]) -> str:
    """One line: how many arrived of those that can."""
    able = [one for one in arrivals if one.expected]
    arrived = sum(one.arrived for one in arrivals)
    hostile = sum(not one.arrived for one in able)
    operations = sum(one.operations for one in arrivals)
    share = 100 * arrived / max(1, len(arrivals) - hostile)
    return (
        f"{arrived} of {len(arrivals)} documents with {operations} operations are in staging, {hostile} of the others are hostile: "
        f"{share:.0f} % of those that can arrive"
    )


def _rules(one: Arrival) -> list[str]:
    return list(dict.fromkeys(obstacle.rule or obstacle.stage for obstacle in one.obstacles))
