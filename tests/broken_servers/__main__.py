"""`python -m tests.broken_servers` prints which rule caught which animal; `python -m tests.broken_servers --url` looks at each by command and by URL and prints
those that are caught otherwise there; `python -m tests.broken_servers NAME [HANDSHAKES MODERNS]` is one animal on stdio.

Revisions are separated by commas; all of them by default. The table ends with exit code 1 when a sick animal was not caught by
the rule that it names, or by another one that it does not name, when it is caught also without that rule, when a rule has no
animal, or when a healthy one got a finding.
"""

from __future__ import annotations

import sys
from contextlib import redirect_stdout


def table() -> int:
    from mcpfactory_pipeline.checks.rules import RULES
    from tests.broken_servers.validation import ANIMALS, visit

    wrong, caught, missed = 0, set(), set()
    for name, kind in ANIMALS.items():
        with redirect_stdout(sys.stderr):  # what building a package prints
            seen = visit(name)
        found = sorted({finding.rule for finding in seen.judged().findings})
        rest = {finding.rule for finding in seen.judged([rule for rule in RULES if rule.id != kind.rule]).findings}
        alone = kind.companions | kind.follows  # what is left when nobody sees the cause
        missed |= {kind.rule} if rest == alone else set()
        good = found == sorted({kind.rule, *kind.companions} - {""}) and rest == alone
        wrong += not good
        caught |= set(found)
        told = "" if good else f"  WRONG: {kind.rule or 'none'} expected"
        print(f"{name:20} {', '.join(found) or 'none'}{told}", flush=True)
    sick = sum(bool(kind.rule) for kind in ANIMALS.values())
    print(
        f"{sick} sick animals, {len(ANIMALS) - sick} healthy ones, {len(caught)} rules that caught one, {wrong} wrong"
    )
    lonely = [rule.id for rule in RULES if rule.id not in missed]
    print(
        f"{len(RULES)} rules, each taken out in turn: {len(RULES) - len(lonely)} let an animal get away"
        + (f", NOT {', '.join(lonely)}" if lonely else "")
    )
    return wrong > 0 or bool(lonely)


# What is different at a URL: there is no session before initialize, nothing after an answer, and no process to end.
STDIO_ONLY = frozenset({"Guesser", "Sleepyhead", "Straggler", "Sensitive", "Squeamish"})


def compare() -> int:
    from tests.broken_servers.packages import Packaged
    from tests.broken_servers.validation import ANIMALS, visit

    apart = [name for name, kind in ANIMALS.items() if kind.own_process or kind.at_url or issubclass(kind, Packaged)]
    chosen = [name for name in ANIMALS if name not in apart]
    other = 0
    for name in chosen:
        found = [{finding.rule for finding in visit(name, at_url=there).judged().findings} for there in (False, True)]
        if found[0] != found[1]:
            known = name in STDIO_ONLY
            other += not known
            print(
                f"{name:20} {sorted(found[0])} by command, {sorted(found[1])} by URL{' (as it must)' if known else '  WRONG'}"
            )
    print(f"{len(chosen)} animals by command and by URL: {other} judged otherwise")
    return other > 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--url"]:
        sys.exit(compare())
    if len(sys.argv) == 1:
        sys.exit(table())
    from tests.broken_servers.catalog import animals

    if sys.argv[1] not in animals():
        print(__doc__)
        sys.exit(
            0
            if sys.argv[1] in {"-h", "--help"}
            else f"error: there is no animal {sys.argv[1]!r}\nhint: python -m tests.broken_servers lists all"
        )

    if len(sys.argv) == 2:
        from mcpfactory_pipeline.checks import exchange

        sys.argv += [",".join(exchange.HANDSHAKES), ",".join(exchange.MODERNS)]
    name, handshakes, moderns = sys.argv[1:4]
    animals()[name](handshakes.split(","), moderns.split(",")).run()
