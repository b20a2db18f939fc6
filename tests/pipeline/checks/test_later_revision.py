"""Servers of today keep all their rules when a later revision is released: asked in the newest, judged in their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

from mcpfactory_pipeline.checks.rules.modern import RULES
from tests.future_revision import trial
from tests.timeouts import TIMEOUT

SERVER = """
from mcpfactory_runtime import Server

server = Server("today", version="1")

@server.tool
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

server.run_stdio()
"""

VALIDATE = """
import asyncio, json, os, sys
from mcpfactory_pipeline.checks.validation import validate
from mcpfactory_pipeline.checks.exchange import ValidationTarget
from mcpfactory_runtime.revisions import LATEST

server, path = sys.argv[1:]
target = ValidationTarget(command=(sys.executable, server), environ={"PATH": os.environ["PATH"], "PYTHONPATH": path})
report = asyncio.run(validate(target))
print(json.dumps({"latest": LATEST.name, "revisions": report.revisions, "checked": report.checked}))
"""


def test_a_server_of_an_earlier_revision_is_judged_by_all_rules_of_its_lifecycle(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER, encoding="utf-8")
    (tmp_path / "validate.py").write_text(VALIDATE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "validate.py", "server.py", os.environ.get("PYTHONPATH", "")],
        cwd=tmp_path, env=trial(tmp_path / "later"), capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["latest"] == "2027-01-01"
    assert "2026-07-28" in told["revisions"]
    assert "2027-01-01" not in told["revisions"]
    unseen = {"modern.cache-pages", "modern.input-required", "modern.input-ends", "modern.request-state"}
    unseen |= {"modern.missing-capability", "modern.extension-names"}
    unseen |= {"modern.list-after-calls", "modern.notifications", "modern.unescaped-text"}  # it also has sessions
    of_its_lifecycle = {rule.id for rule in RULES} - unseen  # it has one page, and asks for nothing
    assert of_its_lifecycle <= set(told["checked"])
