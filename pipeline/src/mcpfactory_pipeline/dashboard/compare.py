"""Two candidates of a server, side by side: what changes for callers, findings, sizes, and what went in. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from mcpfactory_codegen.servers.diff import Change, diff
from mcpfactory_pipeline.base.errors import NotFoundError
from mcpfactory_pipeline.dashboard.candidates import CandidateView, candidates_of
from mcpfactory_pipeline.dashboard.facts import ServerDetail
from mcpfactory_pipeline.dashboard.findings import FindingView, findings_of
from mcpfactory_pipeline.dashboard.values import shorten

__all__ = [
    "ChangeView",
    "ComparePage",
    "ComparedFact",
    "OtherPair",
    "StoredCandidate",
    "change_view",
    "compare_page",
    "findings_between",
    "pairs",
]

_CHANGES: Final = 100  # shown
_TEXT: Final = 240


@dataclass(frozen=True, slots=True)
class StoredCandidate:
    """What of one candidate is on this machine: its manifest, its validation's report, the bytes of its files."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change that callers meet: `breaking`, `additive` or `cosmetic`."""

    kind: str
    code: str
    tool: str
    argument: str
    message: str


@dataclass(frozen=True, slots=True)
class ComparedFact:
    """One fact of both, as text; "" where one does not have it."""

    name: str
    old: str
    new: str
    same: bool


@dataclass(frozen=True, slots=True)
class OtherPair:
    """Another pair of candidates, from the older to the newer."""

    old: str
    new: str
    text: str


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Two candidates. `contract` and `judged` say whether what is compared of both is on this machine; if not, the lists are empty."""

    workspace: str
    server: str
    old: str
    new: str
    old_version: str
    new_version: str
    contract: bool
    breaking: int
    changes_total: int
    changes: tuple[ChangeView, ...]
    judged: bool
    gone: tuple[FindingView, ...]
    gone_total: int
    come: tuple[FindingView, ...]
    come_total: int
    stayed: int
    facts: tuple[ComparedFact, ...]
    others: tuple[OtherPair, ...]


def pairs(state: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the pairs that pages link to: each candidate with the one before it, and what each channel offers with the newest."""
    known = sorted(state.get("candidates", {}), key=lambda name: int(state["candidates"][name].get("number", 0)))
    found = list(pairwise(known))
    newest = state.get("candidate")
    offered = [str(release["candidate"]) for release in state.get("channels", {}).values()]
    found += [(name, newest) for name in offered if newest in known and name in known and name != newest]
    return tuple(dict.fromkeys(reversed(found)))


def compare_page(
    detail: ServerDetail, old: str, new: str, before: StoredCandidate, after: StoredCandidate
) -> ComparePage:
    """Return the candidates `old` and `new` of a server.

    Raises:
        NotFoundError: for a candidate that is not kept.
    """
    known = {candidate.id: candidate for candidate in candidates_of(detail.state, detail.history)}
    for name in (old, new):
        if name not in known:
            raise NotFoundError(
                f"{detail.facts.name} has no candidate {name}", hint=f"candidates: {', '.join(known) or 'none'}"
            )
    contract = bool(before.manifest and after.manifest)
    changes = diff(before.manifest, after.manifest) if contract else ()
    judged = bool(before.report and after.report)
    gone, come, stayed = findings_between(before.report, after.report) if judged else ([], [], 0)
    return ComparePage(
        workspace=detail.facts.workspace,
        server=detail.facts.name,
        old=old,
        new=new,
        old_version=known[old].version,
        new_version=known[new].version,
        contract=contract,
        breaking=sum(change.kind == "breaking" for change in changes),
        changes_total=len(changes),
        changes=tuple(change_view(one, after.manifest) for one in changes[:_CHANGES]),
        judged=judged,
        gone=findings_of(gone),
        gone_total=len(gone),
        come=findings_of(come),
        come_total=len(come),
        stayed=stayed,
        facts=tuple(_facts(known[old], known[new], before, after)),
        others=tuple(
            OtherPair(a, b, f"{known[a].version} ({a[:8]}) → {known[b].version} ({b[:8]})")
            for a, b in pairs(detail.state)
            if (a, b) != (old, new)
        ),
    )


def change_view(change: Change, manifest: Mapping[str, Any]) -> ChangeView:
    """Return a change for a list that names its tool beside it: of a new one what it says of itself in `manifest`, else what changed."""
    tools = (tool for tool in manifest.get("tools", ()) if isinstance(tool, dict) and tool.get("name") == change.tool)
    described = next((str(tool.get("description") or "") for tool in tools), "") if change.code == "tool-added" else ""
    words = change.message.removeprefix(change.tool).removeprefix(":").strip()
    if change.argument:
        words = words.removeprefix(change.argument).removeprefix(":").strip()
    message = shorten(" ".join(described.split()) or words, _TEXT)
    return ChangeView(change.kind, change.code, change.tool, change.argument, message)


def findings_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[Any], list[Any], int]:
    """Return findings that are gone, that came, and how many stayed; what they prove themselves with does not count."""
    old, new = ([_plain(one) for one in report.get("findings", ())] for report in (before, after))
    gone, come = _beyond(old, new), _beyond(new, old)
    return gone, come, len(new) - len(come)


def _beyond(some: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the findings that `others` has not, or not as often."""
    left, found = Counter(map(_key, others)), []
    for one in some:
        left[_key(one)] -= 1
        found += [one] if left[_key(one)] < 0 else []
    return found


def _key(finding: Mapping[str, Any]) -> tuple[str, str, str]:
    return str(finding.get("rule")), str(finding.get("where")), str(finding.get("message"))


def _plain(finding: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in finding.items() if key != "evidence"}


def _facts(
    old: CandidateView, new: CandidateView, before: StoredCandidate, after: StoredCandidate
) -> Iterator[ComparedFact]:
    sides = [dict(_side(one, kept)) for one, kept in ((old, before), (new, after))]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        a, b = sides[0].get(name, ""), sides[1].get(name, "")
        yield ComparedFact(name, a, b, a == b)


def _side(candidate: CandidateView, kept: StoredCandidate) -> Iterator[tuple[str, str]]:
    yield "version", candidate.version
    yield "built", candidate.at
    yield from ((fact.name, fact.value) for fact in candidate.facts)
    if kept.report:
        yield "score", str(kept.report.get("score", ""))
    for check in candidate.checks:
        yield check.stage, check.status.word
    if kept.sizes:
        yield "bytes", f"{sum(kept.sizes.values()):,}"
    yield from ((f"made from {fact.name}", fact.value) for fact in candidate.made_from)
