"""The page `docs/reference/features.md`, generated from the table when the site is built. Pure."""

from __future__ import annotations

from collections import Counter

from benchmarks.features.model import PEERS, Feature, Ours, PeerClaim
from benchmarks.features.table import CHECKED, FEATURES, GROUPS


def features_page() -> str:
    """Return the page."""
    peers = ", ".join(f"{peer.name} ({peer.requirement.replace('==', ' ')})" for peer in PEERS)
    lines = [
        "# Features",
        "",
        f"Features here, in {PEERS[0].name} and in the official {PEERS[1].name}, as of {CHECKED}: {peers}. **Our column** links to the section that shows",
        "how to use the feature. A test uses each of its rows in this way (`benchmarks/features` has the table, `tests/features` the tests).",
        "**The peers' columns** are checked against their installed code by `python -m benchmarks.exam features`: what they have is imported, and names of",
        "what they lack are not in their sources. This shows what exists, not how well it works. If a peer has a feature under a name that we did not",
        "search for, the row is wrong: please report it.",
        "",
        _summary(),
    ]
    for title, rows in GROUPS.items():
        lines += ["", f"## {title}", "", f"| | here | {' | '.join(peer.name for peer in PEERS)} |", "|---|---|---|---|"]
        lines += [_row(row) for row in rows]
    return "\n".join(lines) + "\n"


def _summary() -> str:
    columns = [("here", [row.ours.level for row in FEATURES])]
    columns += [(peer.name, [row.peers[at].level for row in FEATURES]) for at, peer in enumerate(PEERS)]
    counted = [(name, Counter(levels)) for name, levels in columns]
    lines = [f"| of {len(FEATURES)} rows | yes | partly | no |", "|---|---|---|---|"]
    lines += [f"| {name} | {found['yes']} | {found['partly']} | {found['no']} |" for name, found in counted]
    return "\n".join(lines)


def _row(row: Feature) -> str:
    return f"| {row.what} | {_ours(row.ours)} | {' | '.join(_peer(claim) for claim in row.peers)} |"


def _ours(ours: Ours) -> str:
    level = f"[{ours.level}]({_target(ours.docs)})" if ours.docs else ours.level
    return f"{level}: {ours.words}" if ours.words else level


def _target(docs: str) -> str:
    return docs.removeprefix("reference/") if docs.startswith("reference/") else f"../{docs}"


def _peer(claim: PeerClaim) -> str:
    return f"{claim.level}: {claim.words}" if claim.words else claim.level
