"""What is said about advisories: each with the package, and that nobody could be asked is no good news."""

from __future__ import annotations

import subprocess

import pytest

from benchmarks import audit

REPORT = '{"dependencies": [{"name": "a", "version": "1", "vulns": []}, {"name": "b", "version": "2", "vulns": [{"id": "X-1", "fix_versions": ["3"]}]}]}'


@pytest.mark.parametrize(
    ("stdout", "code", "said"),
    [
        (REPORT, 1, "b 2: X-1, mended in 3"),
        ('{"dependencies": [{"name": "a", "version": "1", "vulns": []}]}', 0, "2 locked packages, 0 advisories"),
        ("", 3, "nobody could be asked about requirements.lock: no route"),
    ],
)
def test_the_exit_code_tells_advisories_none_and_nobody_asked_apart(monkeypatch, capsys, stdout, code, said):
    done = subprocess.CompletedProcess((), 1, stdout, "first\nno route\n")
    monkeypatch.setattr(audit.subprocess, "run", lambda *_arguments, **_options: done)
    assert audit.main([]) == code
    assert said in capsys.readouterr().out
