"""Observe a server, then evaluate the rules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcpfactory_pipeline.base.ids import utc_now
from mcpfactory_pipeline.checks.api_failures import observe_failures
from mcpfactory_pipeline.checks.call_plan import (
    api_variables,
    plan_calls,
    read_example_calls,
    read_stub_cases,
    required_variables,
)
from mcpfactory_pipeline.checks.canaries import Canaries
from mcpfactory_pipeline.checks.elicitation import observe_elicitations
from mcpfactory_pipeline.checks.evaluation_calls import EvaluationSetup, observe_evaluation_cases
from mcpfactory_pipeline.checks.evidence import Evidence
from mcpfactory_pipeline.checks.exchange import ValidationTarget, ValidationTargetError
from mcpfactory_pipeline.checks.package_inspection import inspect_package
from mcpfactory_pipeline.checks.prober import Connect, ServerProber
from mcpfactory_pipeline.checks.report import ValidationReport
from mcpfactory_pipeline.checks.rule_evaluation import evaluate_rules
from mcpfactory_pipeline.checks.rules import RULES
from mcpfactory_pipeline.checks.sandboxed_calls import side_effect_free_sandbox
from mcpfactory_pipeline.checks.transport.authorization_probes import corrupt_credentials
from mcpfactory_pipeline.workspace.settings import WaiverPolicy
from mcpfactory_pipeline.workspace.waivers import Waiver
from mcpfactory_runtime.oauth.steps_and_metadata import is_loopback
from mcpfactory_runtime.upstream.stub import StubUpstream

CANARY: Final = "mcpfactory-canary-5e1f0c7a94d2"  # a constant nonce, so that equal servers give equal reports
_SHORTEST_SECRET: Final = 8  # minimum characters of a masked secret; a shorter text may also occur in ordinary text
_A_CASE: Final = 2.0  # seconds per evaluation case, including the start of its processes
# Factor: an evaluation case gets at least this multiple of the first answer's duration.
_ITS_STARTS: Final = 12
_A_CALL: Final = 0.03  # seconds per case, so that a server with 10,000 tools gets enough time


async def validate(
    target: ValidationTarget,
    *,
    timeout: float = 60.0,  # noqa: ASYNC109  # the limit is part of the result: the report lists unfinished checks
    waivers: Sequence[Waiver] = (),
    policy: WaiverPolicy = WaiverPolicy(),  # noqa: B008 - frozen, so safe as a default
    today: date | None = None,
    evaluations: EvaluationSetup | None = None,
) -> ValidationReport:
    """Observe `target`, evaluate all rules, and return the report.

    `waivers` are the waivers of the server. `policy` selects the waivers that count; waivers expire by `today`
    (default: the current day in UTC). `evaluations` are cases with known answers.
    """
    evidence, secrets = await observe_server(target, timeout=timeout, evaluations=evaluations)
    today = today or utc_now().date()
    return evaluate_rules(
        evidence, RULES, target=target.name, secrets=secrets, waivers=waivers, policy=policy, today=today
    )


async def observe_server(
    target: ValidationTarget,
    *,
    timeout: float = 60.0,  # noqa: ASYNC109  # the limit is part of the result: the report lists unfinished checks
    connect: Connect | None = None,
    evaluations: EvaluationSetup | None = None,
) -> tuple[Evidence, dict[str, str]]:
    """Return the observations of `target`, and the values that a report must mask.

    `timeout` is the time limit in seconds; each case extends it. The API failures, and the expected calls of
    `evaluations`, each have the same time limit again. `connect` opens the connection to a server that has neither a
    command nor a URL.

    Each secret in the server's report gets the canary as its value, if the server is started here. If `target` has
    cases, the server's API is a stub. A bad server leads to findings, never to exceptions. An asyncio event loop must
    be running.

    Raises:
        ValidationTargetError: the cases or a report are unreadable.
    """
    cases = read_stub_cases(target.cases) if target.cases is not None else None
    examples = read_example_calls(target.examples) if target.examples is not None else ()
    environ = plain = _environ(target)
    api = api_variables(_place(target))
    addresses = api.variables_for_address("")
    secrets = {
        name: value for name, value in environ.items() if name not in addresses and len(value) >= _SHORTEST_SECRET
    }
    for name, value in target.headers.items():
        both = (value, corrupt_credentials(value))  # the authorization probes also send a corrupted value
        # A report may contain the credentials without the name of their scheme.
        words = [*both, *(one.rpartition(" ")[2] for one in both)]
        words = list(dict.fromkeys([*words, *(json.dumps(one)[1:-1] for one in words)]))
        secrets |= {f"header {name}" + at * "'": word for at, word in enumerate(words) if len(word) >= _SHORTEST_SECRET}
    evidence = Evidence(
        transport="stdio" if target.url is None else "http",
        secrets={} if target.url is not None else _guarded(secrets),
        with_cases=cases is not None,
        package=inspect_package(target.package, target.wheel, target.isolation) if target.package is not None else None,
        drift=target.drift,
        drift_offer=target.drift_offer,
        limits=target.limits,
    )
    async with AsyncExitStack() as stack:
        stub: StubUpstream | None = None
        if cases is not None:
            stub = await stack.enter_async_context(StubUpstream(cases, environ=environ))
            environ = api.with_api(environ, stub.base_url)
        here = target.url is None or is_loopback(urlsplit(target.url).hostname)
        canaries = await stack.enter_async_context(Canaries()) if here and stub is None else None
        secrets |= canaries.secrets if canaries is not None else {}
        alone = target.command is not None and stub is None
        sandbox = stack.enter_context(side_effect_free_sandbox()) if alone else None
        prober = ServerProber(
            target,
            evidence,
            timeout=timeout + _A_CALL * len(cases or ()),
            environ=environ,
            cases=cases,
            stub=stub,
            examples=examples,
            connect=connect,
            canaries=canaries,
            sandbox=sandbox,
        )
        await prober.run()
        if stub is not None and cases is not None and connect is None:
            await observe_elicitations(evidence, target, environ, cases, stub, seconds=timeout)
    _require_tools(evidence, examples, target.examples)
    if cases is not None:
        asking = {one.agreed.tool for one in evidence.persons}  # leave out tools that ask a person
        plan = [one for one in plan_calls(evidence.named_tools, cases)[0] if one.tool not in asking]
        await observe_failures(evidence, target, plan, environ, seconds=timeout)
    if evaluations is not None and target.command is not None and evidence.named_tools:
        pace = min((session.milliseconds for session in evidence.sessions if session.answered), default=0) / 1000
        enough = timeout + max(_A_CASE, _ITS_STARTS * pace) * len(evaluations.cases)
        await observe_evaluation_cases(target, plain, evaluations, evidence, seconds=enough)
    return evidence, secrets


def _require_tools(evidence: Evidence, examples: Sequence[Mapping[str, Any]], file: Path | None) -> None:
    """Refuse example calls of tools that the server does not list, because they would be skipped silently."""
    known = {name for name, _ in evidence.named_tools}
    strange = sorted({str(one["tool"]) for one in examples} - known)
    if known and strange:
        raise ValidationTargetError(
            f"{file} calls tools that the server does not list: {', '.join(strange[:5])}",
            hint=f"use tools that the server lists: {', '.join(sorted(known)[:10])}",
        )


def _place(target: ValidationTarget) -> Path | None:
    return target.cases.parent if target.cases is not None else target.cwd


def _environ(target: ValidationTarget) -> dict[str, str]:
    """Return environment variables: canaries for secrets, dummy values for other variables, and the caller's values."""
    wanted = required_variables(_place(target))
    dummies = {name: CANARY if secret else "dummy" for name, secret in wanted.items()}
    return {"MCPFACTORY_CANARY": CANARY} | dummies | dict(target.environ)


def _guarded(secrets: Mapping[str, str]) -> dict[str, str]:
    """Return the values that no output may show: the canary, and values whose names suggest secrets."""
    words = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")
    return {
        name: value for name, value in secrets.items() if value == CANARY or any(word in name.upper() for word in words)
    }
