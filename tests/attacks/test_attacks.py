"""No document makes the factory, or a server that it makes, do anything but its work; nor does anything else from outside."""

from __future__ import annotations

from pathlib import Path

from mcpfactory_codegen.servers.server_files import resolve_server_path
from mcpfactory_pipeline.delivery.ci import fold
from mcpfactory_pipeline.plan.plan import RUN, PlanStep
from mcpfactory_pipeline.serve.workspace_access import WorkspaceAccess
from mcpfactory_runtime.protocol.http import LOOPBACK, check_host_and_origin, declares_json_body
from tests.attacks import network_messages
from tests.attacks.attack_list import ATTEMPTS
from tests.attacks.document_runner import attempt
from tests.attacks.hostile_documents import ATTACKS
from tests.subtest_table import parametrize_subtests


def test_the_table_has_what_was_promised_and_what_is_honest_is_taken(tmp_path: Path) -> None:
    assert len(ATTACKS) + len(ATTEMPTS) >= 300
    (tmp_path / "a.yaml").touch()
    assert WorkspaceAccess(tmp_path).document("a.yaml") == str(tmp_path.resolve() / "a.yaml")
    assert WorkspaceAccess(tmp_path).document("https://8.8.8.8/x") == "https://8.8.8.8/x"
    assert fold.changed([PlanStep("books-2.x_y", "x", RUN)]) == (["books-2.x_y"], [])
    assert check_host_and_origin({"host": "localhost:8000", "origin": "http://localhost:3000"}, LOOPBACK, ()) is None
    assert declares_json_body({"content-type": "Application/JSON; charset=utf-8"})
    assert resolve_server_path(tmp_path, "src/a.py") == tmp_path / "src/a.py"
    assert network_messages._opened(tmp_path, {})


@parametrize_subtests("name", ATTACKS)
def test_an_attack_comes_to_nothing(name: str, tmp_path: Path) -> None:
    assert attempt(ATTACKS[name], tmp_path).harm == []


@parametrize_subtests("name", ATTEMPTS)
def test_an_attempt_from_outside_is_refused(name: str, tmp_path: Path) -> None:
    ATTEMPTS[name].carry_out(tmp_path)
