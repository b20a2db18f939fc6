"""Examination of a server, done once; any table of rules can judge its observations."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from mcpfactory_pipeline.channels.candidate import build_candidate
from mcpfactory_pipeline.checks import call_comparisons
from mcpfactory_pipeline.checks.evaluation_calls import EvaluationSetup
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import HANDSHAKES, MODERNS, ValidationTarget
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.rule import Rule
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.transport import http_probes, stdio
from mcpfactory_pipeline.checks.validation import observe_server
from mcpfactory_pipeline.workspace.evaluation_case import EvaluationCase
from tests.broken_servers.catalog import servers
from tests.broken_servers.http_server import handler_of
from tests.broken_servers.memory_conversation import MemoryConnector
from tests.broken_servers.packages import Packaged
from tests.loopback_server import serving

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).with_name("cases.json")
SERVERS = servers()


@dataclass(frozen=True)
class Examination:
    """Observations of one server."""

    name: str
    evidence: Evidence
    secrets: dict[str, str]

    def judged(self, rules: Sequence[Rule] = RULES) -> ValidationReport:
        return evaluate_rules(self.evidence, rules, target=self.name, secrets=self.secrets)


def examine(name: str, *, own_process: bool = False, at_url: bool = False) -> Examination:
    """Examine a server in this process, or in its own process or at a URL if the server or the caller requires it."""
    kind = SERVERS[name]
    at_url = at_url or kind.at_url
    revisions = (",".join(HANDSHAKES), ",".join(MODERNS))
    command = (sys.executable, "-S", "-m", "tests.broken_servers", name, *revisions)
    environ = {"ZOO_API_KEY": "key-of-the-zoo-1234"}
    with ExitStack() as stack:
        temporary = stack.enter_context(TemporaryDirectory(prefix="mcpfactory-broken-"))
        package = wheel = None
        if issubclass(kind, Packaged):
            package = Path(temporary, "package")
            for path, text in kind.package().items():
                (package / path).parent.mkdir(parents=True, exist_ok=True)
                (package / path).write_text(text)
            if kind.built:
                made = build_candidate(package, Path(temporary, "work"))
                wheel = next(made.folder / name for name in made.files if name.endswith(".whl"))
        url = None
        if at_url:
            handler = handler_of(kind(list(HANDSHAKES), list(MODERNS)), events=True)
            url = f"{stack.enter_context(serving(handler))}/mcp"
        target = ValidationTarget(
            command=command if url is None else None,
            url=url,
            cwd=ROOT,
            environ=environ,
            headers={"Authorization": kind.credentials} if kind.credentials else {},
            cases=CASES if kind.with_cases else None,
            package=package,
            wheel=wheel,
            api_timeout=0.4,
            limits=kind.limits,
            drift=kind.drift,
        )
        inside = not kind.own_process and not own_process and not at_url
        connect = MemoryConnector(kind, list(HANDSHAKES), list(MODERNS)) if inside else None
        stack.enter_context(patch.object(http_probes, "LINGER", 0.2))  # streams of these servers end at once, or never
        stack.enter_context(patch.object(call_comparisons, "ANSWER", 4.0))
        stack.enter_context(patch.object(stdio, "END_PATIENCE", 2.5))  # and so do their processes
        cases = [EvaluationCase.model_validate(one) for one in kind.evaluations]
        evaluations = EvaluationSetup(cases, None, dict) if cases else None
        evidence, secrets = asyncio.run(observe_server(target, connect=connect, evaluations=evaluations))
    for session in evidence.sessions:
        session.milliseconds *= kind.haste
    return Examination(name, evidence, secrets)
