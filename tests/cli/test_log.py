"""`mcpfactory -v` and MCPFACTORY_LOG print on stderr what a command does."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import CliProcess, WorkspaceCache


def test_a_command_logs_what_it_reads_and_stdout_has_the_answer_alone(
    tmp_path: Path, workspace_cache: WorkspaceCache, document: str
) -> None:
    folder = workspace_cache.copy(tmp_path / "ws", ("--factory", "index"))
    new = ("new", "--from-openapi", document, "--dry-run", "--json", "--name")
    quiet, told = CliProcess(folder)(*new, "quiet"), CliProcess(folder)("-v", *new, "told")
    assert " INFO mcpfactory_codegen.read.document: read " in told.err
    assert " INFO " not in quiet.err
    assert told.data["server"] == "told"


def test_an_unknown_level_is_refused(shop: CliProcess) -> None:
    done = CliProcess(shop.folder, {"MCPFACTORY_LOG": "loud"})("doctor")
    assert (done.code, "unknown level 'loud'" in done.err) == (2, True)
