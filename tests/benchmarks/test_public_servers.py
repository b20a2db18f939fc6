"""The table of public servers, what is kept of examinations, what is printed, and that each finding has a verdict of ours."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.public_servers import __main__ as program
from benchmarks.public_servers import pages, verdicts
from benchmarks.public_servers.examination import Examined, keep, kept
from benchmarks.public_servers.installed import Start
from benchmarks.public_servers.table import SERVERS
from benchmarks.public_servers.verdicts import Verdict

FINDING = {
    "rule": "security.canary",
    "severity": 5,
    "where": "get-env",
    "message": "it is told",
    "evidence": {"request": {"id": 1}, "problem": "told"},
}
GOOD: Mapping[str, Any] = {"verdict": "passed", "score": 99, "findings": [], "not_checked": []}
BAD: Mapping[str, Any] = {**GOOD, "verdict": "refused", "score": 90, "findings": [FINDING]}


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No server is installed, and no verdict is known."""
    monkeypatch.setenv("MCPFACTORY_BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(program, "playground", lambda: tmp_path)
    monkeypatch.setattr(program, "start", lambda server, _folder: Start([server.name], []))
    monkeypatch.setattr(verdicts, "VERDICTS", ())


def _answers(monkeypatch: pytest.MonkeyPatch, *reports: Mapping[str, Any]) -> list[str]:
    """Each examination gives the next report; the names of those that were made."""
    made: list[str] = []
    left = iter(reports)

    def examine(start: Start, _limit: float) -> Examined:
        made.append(shlex.join(start.command))
        report = next(left)
        return Examined(int(report["verdict"] == "refused"), 1.0, report)

    monkeypatch.setattr(program, "examine", examine)
    return made


def test_there_are_25_servers_in_four_languages_each_of_one_version() -> None:
    assert len(SERVERS) >= 25
    assert len({one.language for one in SERVERS}) >= 4
    assert len({one.name for one in SERVERS}) == len(SERVERS)
    assert {one.registry for one in SERVERS} == {"npm", "pypi"}
    for one in SERVERS:
        assert one.version[0].isdigit(), one
        assert not set(one.version) & set("^~*<>= "), one
        values = dict.fromkeys(("node", "package", "python", "bin", "source", "playground"), "x")
        assert all(word.format(**values) for word in (*one.command, *one.environ))


def test_a_finding_without_a_verdict_is_exit_1_and_with_one_is_0(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _answers(monkeypatch, BAD, BAD)
    assert program.main(["memory"]) == 1
    assert "memory: security.canary has no verdict" in capsys.readouterr().out
    monkeypatch.setattr(verdicts, "VERDICTS", (Verdict("security.canary", ("memory",), "so it is"),))
    assert program.main(["memory"]) == 0


def test_a_verdict_about_a_finding_that_is_no_more_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "VERDICTS", (Verdict("security.canary", ("memory", "time"), "so it is"),))
    found = {"memory": Examined(1, 1.0, BAD), "time": Examined(0, 1.0, GOOD)}
    assert list(verdicts.stale(found)) == [("time", "security.canary")]
    assert list(verdicts.undefended(found)) == []


def test_what_was_examined_is_kept_and_not_examined_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = _answers(monkeypatch, GOOD, GOOD, BAD)
    told = tmp_path / "told.json"
    assert program.main(["time"]) == 0
    assert program.main(["time", "memory", "--continue", "--json", str(told)]) == 0
    assert made == ["time", "memory"]
    assert sorted(json.loads(told.read_text())["quiet"]) == ["memory", "time"]
    assert program.main(["time"]) == 1, "without --continue it is examined again"
    assert kept(SERVERS[0], 0) is None


def test_an_examination_that_crashed_is_exit_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "examine", lambda _start, _limit: Examined(70, 1.0, crash="Traceback"))
    assert program.main(["time"]) == 1


def test_another_verdict_under_load_is_exit_1_with_both_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verdicts, "VERDICTS", (Verdict("security.canary", ("memory",), "so it is"),))
    keep(next(one for one in SERVERS if one.name == "time"), 1, Examined(0, 1.0, GOOD))
    keep(next(one for one in SERVERS if one.name == "memory"), 1, Examined(1, 1.0, BAD))
    _answers(monkeypatch, GOOD)
    assert program.main(["time", "--continue", "--load", "1"]) == 0
    _answers(monkeypatch, GOOD)
    assert program.main(["memory", "--continue", "--load", "1"]) == 1
    assert "memory                 passed 99        refused 90       exit 0 became 1, " in capsys.readouterr().out


def test_the_page_tells_nothing_of_the_machine_that_wrote_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/opt/mine/bin:/usr/bin")
    evidence = {"response": json.dumps({"PATH": "/opt/mine/bin:/usr/bin", "file": f"{tmp_path}/home/a"})}
    report = {**BAD, "findings": [{**FINDING, "evidence": evidence}]}
    server = next(one for one in SERVERS if one.name == "memory")
    verdict = Verdict("security.canary", ("memory",), "So it is.")
    assert 'response: {"PATH": "…", "file": "~/a"}' in pages.page(
        [server], {"memory": Examined(1, 1.0, report)}, [verdict]
    )


def test_the_page_has_the_exchange_of_each_defended_finding() -> None:
    server = next(one for one in SERVERS if one.name == "memory")
    text = pages.page(
        [server], {"memory": Examined(1, 1.0, BAD)}, [Verdict("security.canary", ("memory",), "So it is.")]
    )
    assert "| `memory` | npm: `@modelcontextprotocol/server-memory`" in text
    assert "| 1 | 90 | `security.canary` |" in text
    assert 'So it is.\n\n`memory`, get-env: it is told\n\n```text\nrequest: {"id": 1}\nproblem: told\n```' in text
