"""The official conformance suite: our server in its hands, and our client."""

from __future__ import annotations

import re
import sys
from collections import Counter

from mcpfactory_runtime.revisions import REVISIONS

from .outcome import Outcome, judged, unavailable
from .places import ROOT, SHARED, everything, run

__all__ = ["client", "conformance"]

_COUNTS = re.compile(r"passed (\d+) failed (\d+) skipped (\d+) \(warnings (\d+)")
_KNOWN = list(REVISIONS)[1:]  # the suite does not know the first one
_LACKING = tuple(  # docs/reference/client.md, Servers that want a token, says so
    f"FAILURE auth/{scenario}:"
    for scenario in (
        "client-credentials-jwt",
        "dpop",
        "dpop-nonce",
        "enterprise-managed-authorization",
        "wif-jwt-bearer",
    )
)


def conformance() -> Outcome:
    """The everything server, one revision after the other, then the extensions; a line for each."""
    tool = SHARED / "tools" / "conformance.sh"
    if not tool.exists():
        return unavailable("the folder ../shared/tools is not here")
    with everything() as url:
        commands = {name: [url, name] for name in _KNOWN}
        commands["extensions"] = [url, _KNOWN[-1], "ext"]
        return _examine("conformance", {name: ["bash", str(tool), *rest] for name, rest in commands.items()})


def client() -> Outcome:
    """Our client, one revision after the other; a line for each, then what was not as it should be."""
    tool = SHARED / "tools" / "conformance_client.sh"
    if not tool.exists():
        return unavailable("the folder ../shared/tools is not here")
    command = f"{sys.executable} {ROOT / 'benchmarks/peers/conformance_client.py'}"
    commands = {name: ["bash", str(tool), command, name] for name in _KNOWN}
    return _examine("client", {**commands, "authorization": ["bash", str(tool), command, "ext"]})


def _examine(title: str, commands: dict[str, list[str]]) -> Outcome:
    sums: Counter[str] = Counter()
    good = True
    for name, command in commands.items():
        print(f"{title} {name}: ", end="", flush=True)
        code, lines = run(command)
        found = next((match for line in lines if (match := _COUNTS.search(line))), None)
        if found is None:
            return unavailable(lines[-1] if lines else f"the suite said nothing and ended with {code}")
        passed, failed, skipped, warnings = map(int, found.groups())
        lacking = sum(line.startswith(_LACKING) for line in lines)
        sums.update({"passed": passed, "failed": failed - lacking, "skipped": skipped, "warnings": warnings})
        if lacking:
            sums["of what we do not have"] += lacking
        good &= passed > 0 and failed == lacking and warnings == 0 and (code == 0 or lacking > 0)
    figure = ", ".join(f"{count} {what}" for what, count in sums.items())
    return judged(f"{figure}; {len(commands)} runs", good=good)
