"""What came of the servers, as text: rows of a table, two columns of verdicts, and the page of the documentation."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers import home
from benchmarks.public_servers.examination import WRONG, Examined
from benchmarks.public_servers.table import Server
from benchmarks.public_servers.verdicts import Verdict

__all__ = ["HEAD", "compared", "differences", "line", "page", "total"]

HEAD = f"{'server':22} {'language':10} {'seconds':>7}  {'exit':>4} {'score':>5} verdict    findings by severity, rules from {WRONG}; ? not checked"
_LONGEST = 300


def line(server: Server, examined: Examined) -> str:
    """The row of a server."""
    begin = f"{server.name:22} {server.language:10} {examined.seconds:7.1f}  {examined.code:4}"
    if examined.crash:
        return f"{begin}       crashed    {examined.crash}"
    counts = Counter(one["severity"] for one in examined.findings())
    severities = " ".join(f"{severity}:{counts[severity]}" for severity in (5, 3, 2, 1))
    words = " ".join([*examined.rules(WRONG), *(f"?{rule}" for rule in examined.unchecked)])
    return f"{begin} {examined.report['score']:5} {examined.verdict:10} {severities}  {words}".rstrip()


def total(servers: Sequence[Server], found: Mapping[str, Examined]) -> str:
    """One line: how many servers, in which languages, with which verdicts."""
    verdicts = Counter(one.verdict for one in found.values())
    languages = sorted({one.language for one in servers})
    told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    return f"{len(servers)} servers in {len(languages)} languages ({', '.join(languages)}): {told}"


def compared(quiet: Mapping[str, Examined], busy: Mapping[str, Examined]) -> Iterator[str]:
    """Two columns of verdicts, and the rules on which they differ."""
    yield f"{'server':22} {'quiet':16} {'loaded':16} differs"
    differing = dict(differences(quiet, busy))
    for name in quiet:
        yield f"{name:22} {_short(quiet[name]):16} {_short(busy[name]):16} {differing.get(name, 'no')}"


def differences(quiet: Mapping[str, Examined], busy: Mapping[str, Examined]) -> Iterator[tuple[str, str]]:
    """Server and what differs under load: the exit code, a rule with findings, or one that could not be judged."""
    for name, before in quiet.items():
        after = busy[name]
        told = [] if before.code == after.code else [f"exit {before.code} became {after.code}"]
        for what, old, new in (
            ("finding", before.rules(), after.rules()),
            ("not checked", before.unchecked, after.unchecked),
        ):
            told += [f"{what} no more: {rule}" for rule in old if rule not in new]
            told += [f"{what} only under load: {rule}" for rule in new if rule not in old]
        if told:
            yield name, ", ".join(told)


def page(servers: Sequence[Server], found: Mapping[str, Examined], verdicts: Sequence[Verdict]) -> str:
    """The page of the documentation."""
    return "\n".join([*_introduction(servers, found), *_table(servers, found), *_defence(found, verdicts)]) + "\n"


def _introduction(servers: Sequence[Server], found: Mapping[str, Examined]) -> list[str]:
    return [
        "# Public servers, and each finding defended",
        "",
        "`python -m benchmarks.public_servers --page` wrote this page: it installs public servers from npm and the Python index, runs `mcpfactory",
        "validate --command` on each, unmodified, and fails when a finding of severity 3 or more has no verdict of ours in",
        "`benchmarks/public_servers/verdicts.py`. With `--load 4` it does so again beside four busy processes and fails on every difference.",
        "",
        f"{total(servers, found)}. Exit 0: every gate is open. 7: no fault was found, and something could not be shown without",
        "more knowledge (`--cases`, `--env`, `--allow-calls`): none of their APIs is reachable here, and keys are dummies. 1: refused.",
        "",
    ]


def _table(servers: Sequence[Server], found: Mapping[str, Examined]) -> Iterator[str]:
    yield "| server | package | language | exit | score | findings of severity ≥ 3 | of severity 2, 1 | not judged |"
    yield "|---|---|---|---|---|---|---|---|"
    for server in servers:
        examined = found[server.name]
        counts = Counter(one["severity"] for one in examined.findings())
        rules = ", ".join(f"`{rule}`" for rule in examined.rules(WRONG)) or "none"
        score = examined.report.get("score", "–")
        yield (
            f"| `{server.name}` | {server.registry}: `{server.package}` {server.version} | {server.language} | {examined.code} | {score} "
            f"| {rules} | {counts[2]}, {counts[1]} | {len(examined.unchecked)} |"
        )


def _defence(found: Mapping[str, Examined], verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield from ("", "## The findings of severity 3 and more", "")
    if not verdicts:
        yield "There is none."
    for verdict in verdicts:
        servers = ", ".join(f"`{one}`" for one in verdict.servers)
        yield from (f"### `{verdict.rule}`: {servers}", "", verdict.why, "")
        for name in verdict.servers:
            for finding in [one for one in found[name].findings(WRONG) if one["rule"] == verdict.rule][:1]:
                yield from (f"`{name}`, {finding['where']}: {finding['message']}", "", "```text")
                yield from _exchange(finding.get("evidence") or {})
                yield from ("```", "")


def _exchange(evidence: Mapping[str, Any]) -> Iterator[str]:
    """Who said what, without this machine's folders."""
    hidden = {os.environ.get("PATH", ""): "…", str(home()): "~", str(Path.home()): "~"}
    for part, said in evidence.items():
        text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        for path, shown in hidden.items():
            text = text.replace(path, shown) if len(path) > 1 else text
        text = " ".join(text.split())
        yield f"{part}: {text[:_LONGEST]}{' …' if len(text) > _LONGEST else ''}"


def _short(examined: Examined) -> str:
    return f"{examined.verdict} {examined.report.get('score', '')}".strip()
