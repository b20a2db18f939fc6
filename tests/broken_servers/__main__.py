"""Table of the broken servers: `python -m tests.broken_servers` prints the rules that catch each.

    python -m tests.broken_servers --url                      list servers that get other findings at a URL than by command
    python -m tests.broken_servers NAME [HANDSHAKES MODERNS]  run one server on stdio

Revisions are separated by commas [default: all]. The table ends with exit code 1 if a broken server gets other findings than it
names, or still gets them without its rule; if a rule has no server; or if a healthy server gets a finding.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout


def table() -> int:
    from mcpfactory_pipeline.checks.rules import RULES
    from tests.broken_servers.validation import SERVERS, examine

    wrong, caught, missed = 0, set(), set()
    for name, kind in SERVERS.items():
        with redirect_stdout(sys.stderr):  # output of package builds
            seen = examine(name)
        found = sorted({finding.rule for finding in seen.judged().findings})
        rest = {finding.rule for finding in seen.judged([rule for rule in RULES if rule.id != kind.rule]).findings}
        alone = kind.companions | kind.follows  # the findings without the cause
        missed |= {kind.rule} if rest == alone else set()
        good = found == sorted({kind.rule, *kind.companions} - {""}) and rest == alone
        wrong += not good
        caught |= set(found)
        told = "" if good else f"  WRONG: {kind.rule or 'none'} expected"
        print(f"{name:20} {', '.join(found) or 'none'}{told}", flush=True)
    broken = sum(bool(kind.rule) for kind in SERVERS.values())
    print(
        f"{broken} broken servers, {len(SERVERS) - broken} healthy ones, {len(caught)} rules that caught one, {wrong} wrong"
    )
    lonely = [rule.id for rule in RULES if rule.id not in missed]
    print(
        f"{len(RULES)} rules, each taken out in turn: {len(RULES) - len(lonely)} let a server get away"
        + (f", NOT {', '.join(lonely)}" if lonely else "")
    )
    return wrong > 0 or bool(lonely)


# Over HTTP, there is no session before initialize, no message after a response, and no process to end.
STDIO_ONLY = frozenset({"Guesser", "Sleepyhead", "Straggler", "Sensitive", "Squeamish", "Crosser"})


def compare() -> int:
    from tests.broken_servers.packages import Packaged
    from tests.broken_servers.validation import SERVERS, examine

    apart = [name for name, kind in SERVERS.items() if kind.own_process or kind.at_url or issubclass(kind, Packaged)]
    chosen = [name for name in SERVERS if name not in apart]
    other = 0
    for name in chosen:
        found = [{finding.rule for finding in examine(name, at_url=there).judged().findings} for there in (False, True)]
        if found[0] != found[1]:
            known = name in STDIO_ONLY
            other += not known
            print(
                f"{name:20} {sorted(found[0])} by command, {sorted(found[1])} by URL{' (as it must)' if known else '  WRONG'}"
            )
    print(f"{len(chosen)} servers by command and by URL: {other} judged otherwise")
    return other > 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--url"]:
        sys.exit(compare())
    if len(sys.argv) == 1:
        sys.exit(table())
    from tests.broken_servers.catalog import servers

    if sys.argv[1] not in servers():
        print(__doc__)
        sys.exit(
            0
            if sys.argv[1] in {"-h", "--help"}
            else f"error: unknown server {sys.argv[1]!r}\nhint: python -m tests.broken_servers lists all"
        )

    if len(sys.argv) == 2:
        from mcpfactory_pipeline.checks import exchange

        sys.argv += [",".join(exchange.HANDSHAKES), ",".join(exchange.MODERNS)]
    name, handshakes, moderns = sys.argv[1:4]
    servers()[name](handshakes.split(","), moderns.split(",")).run()
