"""The table of features against the peers: each is installed in an environment of its own, and looked at by its own interpreter."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from benchmarks.bench.peers.installations import environment
from benchmarks.exam.results import Outcome, judged, unavailable
from benchmarks.features.model import PEERS, FeaturePeer
from benchmarks.features.table import FEATURES

_PROBE = Path(__file__).resolve().parents[1] / "features/probe.py"


def features() -> Outcome:
    """Look whether every claim about the peers holds; a line for each that does not."""
    wrong = 0
    versions = []
    for at, peer in enumerate(PEERS):
        try:
            found = _looked(peer, {row.key: row.peers[at].probe for row in FEATURES})
        except (OSError, subprocess.SubprocessError) as error:
            return unavailable(f"{peer.name} cannot be looked at: {error}. hint: is a package index in reach?")
        versions.append(f"{peer.distribution} {found['versions'][peer.distribution]}")
        for row in FEATURES:
            if not found["answers"][row.key]:
                wrong += 1
                claim = row.peers[at]
                print(f"{peer.name}, {row.key}: the table says {claim.level}, and this does not hold: {claim.probe}")
    figure = f"{len(FEATURES) * len(PEERS)} claims about {' and '.join(versions)}: {wrong} that do not hold"
    return judged(figure, good=not wrong)


def _looked(peer: FeaturePeer, probes: dict[str, str]) -> dict[str, Any]:
    """Return the versions of a peer, and which probes hold. Raises OSError, SubprocessError."""
    python = environment(f"features-{peer.package}", (peer.requirement,))
    asked = {"package": peer.package, "distributions": [peer.distribution], "probes": probes}
    ran = subprocess.run([python, str(_PROBE)], input=json.dumps(asked), text=True, stdout=subprocess.PIPE, check=True)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer
